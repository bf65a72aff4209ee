"""The graph of a block's network, for bounds."""

from __future__ import annotations

import numpy as np

from dovetail.core.block import Block
from dovetail.core.class_rounding import logit
from dovetail.core.errors import UnsupportedError
from dovetail.core.probe import PROBES, difference
from dovetail.core.problem import Problem
from dovetail.networks.graph import Graph

POINTS = 64
"""Number of points at which a traced program is compared with the predictor; layers, whose types are exact,
need fewer."""


def block_graph(problem: Problem, block: Block) -> Graph | None:
    """The graph of a block's values, or of the logits that decide its class with the threshold at 0. None if
    the operations are not known."""
    try:
        return required_graph(problem, block)
    except UnsupportedError:
        return None


def required_graph(problem: Problem, block: Block) -> Graph:
    """The graph of a block, or an `UnsupportedError` that names the missing operation."""
    if block.description.program is None:
        raise UnsupportedError(f"{block.name}: {block.description.name} has operations that are not known")
    program = block.description.program(block.inputs.shape[1])
    points = PROBES if program.provenance == "layers" else POINTS
    with np.errstate(all="ignore"):
        found = difference(problem.mip, block, program.values, points)
    if found:
        source = "its layers" if program.provenance == "layers" else "a recording of its operations"
        raise UnsupportedError(
            f"{block.name}: the predictor does not compute what {source} gives: it answers {found}. If its "
            "code looks at values or was replaced (a hook, say), write it with torch operations alone"
        )
    shift = 0.0
    if block.classifies:
        program, kind = program.without_last(block.threshold)
        if block.outputs.shape[1] == 1:
            shift = -logit(block.threshold) if kind else -block.threshold
    return program.graph(shift)
