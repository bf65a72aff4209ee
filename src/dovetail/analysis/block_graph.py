"""What a bound has to know of a block: its network as a graph."""

from __future__ import annotations

import numpy as np

from dovetail.core.block import Block
from dovetail.core.class_rounding import handed_on, logit, plain_layers
from dovetail.core.errors import UnsupportedError
from dovetail.core.graph import Graph
from dovetail.core.layers import thresholded
from dovetail.core.probe import agrees, computes
from dovetail.core.problem import Problem
from dovetail.core.program_graph import graph_of

POINTS = 64
"""At so many points of its box the predictor is asked whether a recorded program says the same."""


def block_graph(problem: Problem, block: Block) -> Graph | None:
    """The graph of a block's values; of a class, of the logits that decide it, with the threshold at 0.

    None where the network is not known operation by operation.
    """
    try:
        return required_graph(problem, block)
    except UnsupportedError:
        return None


def required_graph(problem: Problem, block: Block) -> Graph:
    """The same, or an `UnsupportedError` that says which operation is missing."""
    layers, width = plain_layers(block), block.inputs.shape[1]
    if layers is None:
        return _recorded(problem, block, width)
    if not computes(problem.mip, block, layers):
        raise UnsupportedError(f"{block.name}: the predictor does not compute what its layers say")
    if block.classifies:
        layers = layers or handed_on(width)
        layers = thresholded(layers, block.outputs.shape[1], block.threshold, 0.0)
    return Graph.of_layers(layers, width)


def _recorded(problem: Problem, block: Block, width: int) -> Graph:
    """Of what the predictor is seen to do with a row."""
    if block.description.program is None:
        raise UnsupportedError(f"{block.name}: {block.description.name} does not say what it computes")
    program = block.description.program(width)
    shift = 0.0
    with np.errstate(all="ignore"):
        if not agrees(problem.mip, block, program.values, POINTS):
            raise UnsupportedError(f"{block.name}: the predictor does not compute what was recorded of it")
    if block.classifies:
        program, kind = program.without_last(block.threshold)
        if block.outputs.shape[1] == 1:
            shift = -logit(block.threshold) if kind else -block.threshold
    return graph_of(program, shift)
