"""How far each step of a graph may be from what the deployed network computes there, given what it reads.

`core/rounding.py` passes errors on from layer to layer by the largest weights that there can be, which for a
network of six layers in float32 comes to whole logits. A bound that follows the network backwards knows what
each step's own error can do to its outputs: hardly more than the network's slopes, since neurons that keep
their sign pass errors on or stop them. So here errors are given step by step, and nothing is passed on:

    affine         |computed - exact|  <=  rate (|W| |v| + |b|) + more      v as computed before
    activation                         <=  more
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import handed_on, plain_layers
from dovetail.core.graph import Affine, Elementwise, Graph, GraphStep
from dovetail.core.layers import Activation, Dense, Layer, dropped
from dovetail.core.rounding import MORE, Arithmetic, activation_error, gamma

BOUNDED = frozenset(("relu", "sigmoid", "tanh"))
"""Activations whose own error is the same for all inputs."""


@dataclass(frozen=True, eq=False)
class StepRounding:
    """Of every vector of a graph, the inputs first."""

    rate: tuple[FloatArray, ...]
    """Per value; of an affine step relative to what its sum adds up, of inputs to their size, else 0."""
    more: tuple[FloatArray, ...]
    """Per value."""
    largest: float
    """Sums that may be beyond it are anybody's guess."""


def step_rounding(block: Block, graph: Graph) -> StepRounding | None:
    """Of a block and its graph (`block_graph`); None where not every step is a layer of such a kind."""
    known = None if plain_layers(block) is None else block.description.computation_if_known()
    if known is None:
        return None
    layers = known.layers or handed_on(block.inputs.shape[1])
    if block.classifies and dropped(layers, block.outputs.shape[1], block.threshold):
        layers = layers[:-1]
    return of_layers(layers, known.arithmetic, graph)


def of_layers(layers: tuple[Layer, ...], arithmetic: Arithmetic, graph: Graph) -> StepRounding | None:
    """Of layers computed in some arithmetic, one per step; a graph may hand on once more at the end.

    Biases of the graph may be others: a threshold is taken into them.
    """
    rate = [np.full(graph.inputs, arithmetic.roundoff)]
    more = [np.full(graph.inputs, arithmetic.smallest)]
    for number, step in enumerate(graph.steps):
        found = _handed_on(step) if number == len(layers) else None
        if number < len(layers) and step.sources == (number,):
            found = _own(layers[number], arithmetic, step)
        if found is None:
            return None
        rate.append(found[0])
        more.append(found[1])
    if len(layers) > len(graph.steps):
        return None
    return StepRounding(tuple(rate), tuple(more), arithmetic.largest)


def _own(layer: Layer, arithmetic: Arithmetic, step: GraphStep) -> tuple[FloatArray, FloatArray] | None:
    nothing = np.zeros(step.size)
    if isinstance(layer, Activation):
        if step.operation != Elementwise(layer.kind) or layer.kind not in BOUNDED:
            return None
        return nothing, activation_error(layer.kind, arithmetic, nothing, nothing)
    if not isinstance(step.operation, Affine) or not _same_weights(layer, step.operation):
        return None
    operations = np.count_nonzero(layer.weight, axis=1) + MORE
    rate = gamma(arithmetic, operations)
    if not np.all(np.isfinite(rate)):
        return None
    beyond = np.maximum(np.abs(layer.bias) - np.abs(step.operation.bias), 0.0)
    return rate, rate * beyond + operations * arithmetic.smallest


def _same_weights(layer: Dense, operation: Affine) -> bool:
    return len(operation.weights) == 1 and np.array_equal(layer.weight, operation.weights[0])


def _handed_on(step: GraphStep) -> tuple[FloatArray, FloatArray] | None:
    """A step that is no layer's, and that nobody computes: the identity."""
    operation = step.operation
    if not isinstance(operation, Affine) or len(operation.weights) > 1:
        return None
    if not np.array_equal(operation.weights[0], np.eye(step.size)):
        return None
    return np.zeros(step.size), np.zeros(step.size)
