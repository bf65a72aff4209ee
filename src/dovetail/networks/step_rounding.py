"""The largest difference between each step of a graph and the deployed network, given the same inputs of the
step.

`Program.errors` passes errors on from operation to operation by the largest possible weights, which adds up
to whole logits for a float32 network of six layers. A bound that follows the network backwards knows the
effect of each step's own error on the outputs: hardly more than the network's slopes, since neurons with a
fixed sign pass errors on or stop them. Therefore each step has its own error, without the errors of earlier
steps:

    affine         |computed - exact|  <=  rate (|W| |v| + |b|) + more      v as computed before
    function                           <=  more
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.networks.arithmetic import MORE, Arithmetic
from dovetail.networks.elementwise import Functions, function_error
from dovetail.networks.graph import Affine, Elementwise, Graph, GraphStep
from dovetail.networks.operation import Operation
from dovetail.networks.program import Program
from dovetail.networks.sums import Sums


@dataclass(frozen=True, eq=False)
class StepRounding:
    """The error of every vector of a graph, the inputs first."""

    rate: tuple[FloatArray, ...]
    """Per value: relative to the absolute terms of a sum for affine steps, to the size for inputs, otherwise
    0."""
    more: tuple[FloatArray, ...]
    """The absolute error of each value."""
    largest: float
    """Sums beyond this may overflow, so that no bound is known."""


def step_rounding(program: Program, graph: Graph) -> StepRounding | None:
    """The errors for a chain of layers, one operation per step; a graph may end in an additional identity.
    Biases of the graph may differ, because a threshold is included. None if a step has no operation with the
    same error for all inputs."""
    arithmetic = program.arithmetic
    if arithmetic is None or program.provenance != "layers":
        return None
    rate = [np.full(graph.inputs, arithmetic.roundoff)]
    more = [np.full(graph.inputs, arithmetic.smallest)]
    operations = program.operations
    for number, step in enumerate(graph.steps):
        found = _identity_error(step) if number == len(operations) else None
        if number < len(operations) and step.sources == (number,):
            found = _own_error(operations[number], arithmetic, step)
        if found is None:
            return None
        rate.append(found[0])
        more.append(found[1])
    if len(operations) > len(graph.steps):
        return None
    return StepRounding(tuple(rate), tuple(more), arithmetic.largest)


def _own_error(
    one: Operation, arithmetic: Arithmetic, step: GraphStep
) -> tuple[FloatArray, FloatArray] | None:
    nothing = np.zeros(step.size)
    if isinstance(one, Functions):
        if step.operation != Elementwise(one.kind) or not (one.function.bounded or one.kind == "relu"):
            return None
        return nothing, function_error(one.function, arithmetic, nothing, nothing)
    if not isinstance(one, Sums) or not isinstance(step.operation, Affine):
        return None
    if len(step.operation.weights) > 1 or not np.array_equal(one.weight, step.operation.weights[0]):
        return None
    count = one.terms + MORE
    rate = arithmetic.gamma(count)
    if not np.all(np.isfinite(rate)):
        return None
    beyond = np.maximum(np.abs(one.bias) - np.abs(step.operation.bias), 0.0)
    return rate, rate * beyond + count * arithmetic.smallest


def _identity_error(step: GraphStep) -> tuple[FloatArray, FloatArray] | None:
    """An identity step without any computation."""
    operation = step.operation
    if not isinstance(operation, Affine) or len(operation.weights) > 1:
        return None
    if not np.array_equal(operation.weights[0], np.eye(step.size)):
        return None
    return np.zeros(step.size), np.zeros(step.size)
