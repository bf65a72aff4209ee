"""What a bound has to know of a block: its network as a graph."""

from __future__ import annotations

from dovetail.core.block import Block
from dovetail.core.class_rounding import handed_on
from dovetail.core.graph import Graph
from dovetail.core.layers import thresholded
from dovetail.core.probe import computes
from dovetail.core.problem import Problem


def block_graph(problem: Problem, block: Block) -> Graph | None:
    """The graph of a block's values; of a class, of the logits that decide it, with the threshold at 0.

    None where the network is not known operation by operation.
    """
    layers = block.description.layers_if_known()
    if layers is None or not computes(problem.mip, block, layers):
        return None
    if block.classifies:
        layers = layers or handed_on(block.inputs.shape[1])
        layers = thresholded(layers, block.outputs.shape[1], block.threshold, 0.0)
    return Graph.of_layers(layers, block.inputs.shape[1])
