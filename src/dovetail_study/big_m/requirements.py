"""What a network must be to become rows, and what the rows' bound leaves out: the network's own rounding."""

from __future__ import annotations

import numpy as np

from dovetail.bounds.box import Box, narrow
from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.errors import UnsupportedError
from dovetail.core.probe import computes
from dovetail.core.problem import Problem
from dovetail.networks.layers import Layer, program_of
from dovetail.reformulations.relu_big_m import read_elsewhere

MEANINGLESS = 1e15
"""Neuron bounds beyond this make rows whose coefficients SCIP cannot compute with."""
CLOSE = 1e-9
"""SCIP takes numbers that are no further apart for the same."""


def layers_of(block: Block) -> tuple[Layer, ...]:
    """The block's network as layers, or an error."""
    if block.description.layers is None:
        raise UnsupportedError(
            f"{block.name}: {block.description.name} cannot be written out as layers; "
            'method="auto" takes it as it is.'
        )
    return block.description.layers()


def require_truth(problem: Problem, block: Block, layers: tuple[Layer, ...]) -> None:
    """The block's layers, checked against the predictor itself."""
    if not computes(problem.mip, block, layers):
        raise UnsupportedError(
            f"{block.name}: {block.description.name} does not compute what its layers say (a hook, perhaps); "
            "it cannot be written out."
        )


def rounding_of_bound(problem: Problem, networks: dict[str, tuple[Layer, ...]], box: Box) -> float:
    """What the networks' own arithmetic may take off SCIP's bound, which is one of their exact layers.

    Infinity where that cannot be said: the arithmetic is not known, or what it moves is a class, or an
    output that rows or other networks read.
    """
    box, read, total = Box(box.lower.copy(), box.upper.copy()), read_elsewhere(problem), 0.0
    for stage in problem.stages:
        for block, samples in stage:
            inputs, outputs = block.inputs[samples], block.outputs[samples]
            slack = block_slack(block, box.lower[inputs], box.upper[inputs])
            if np.any(slack > (CLOSE if block.classifies else np.where(read[outputs], CLOSE, MEANINGLESS))):
                return np.inf
            if not block.classifies:
                total += float(np.sum(np.abs(problem.mip.cost[outputs]) * slack))
                lower, upper, _ = propagated(networks[block.name], box.lower[inputs], box.upper[inputs])
                narrow(box.lower, box.upper, outputs, lower - slack, upper + slack)
    return total


def one_binary_decides(problem: Problem, box: Box) -> bool:
    """Whether, in some sample, one binary column decides a whole network: no bound of SCIP's is taken then.

    SCIP's probing follows such a network through, makes every neuron a multiple of the binary, and now and
    then fixes it to the value that is cut off (SCIP 10.0.2; "Its word" in docs/method.md).
    """
    integer = problem.mip.integer
    deciding: list[set[int]] = [set() if fixed else {j} for j, fixed in enumerate(box.lower == box.upper)]
    for stage in problem.stages:
        for block, samples in stage:
            for inputs, outputs in zip(block.inputs[samples], block.outputs[samples], strict=True):
                columns = set[int]().union(*(deciding[j] for j in inputs))
                if len(columns) == 1 and all(
                    integer[j] and box.upper[j] - box.lower[j] <= 1 for j in columns
                ):
                    return True
                for j in outputs:
                    deciding[j] = columns
    return False


def require_bounds(
    problem: Problem, block: Block, layers: tuple[Layer, ...], box: Box, samples: np.ndarray
) -> None:
    """Finite inputs, neurons of a size that can be computed with; outputs get bounds for the next stage."""
    inputs, outputs = block.inputs[samples], block.outputs[samples]
    endless = inputs[~box.finite[inputs]]
    if endless.size:
        raise UnsupportedError(
            f"{block.name}: input {problem.mip.column_name(int(endless.flat[0]))} has no finite bounds, "
            'and big-M rows need them; give it bounds, or use BigM(formulation="sos").'
        )
    lower, upper, widest = propagated(layers, box.lower[inputs], box.upper[inputs])
    if widest > MEANINGLESS:
        raise UnsupportedError(
            f"{block.name}: bounds of neurons grow to {widest:.0e} through {len(layers)} layers, and rows "
            'with such coefficients mean nothing to SCIP; use BigM(formulation="sos").'
        )
    if not block.classifies:
        narrow(box.lower, box.upper, outputs, lower, upper)


def propagated(
    layers: tuple[Layer, ...], lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Bounds of the outputs, and the largest bound of any neuron on the way; NaN counts as infinite."""
    program = program_of(layers, lower.shape[1])
    low, high = program.ranges(lower, upper)
    neurons = np.maximum(np.abs(low), np.abs(high))[:, program.inputs :]
    widest = float(np.max(np.nan_to_num(neurons, nan=np.inf, posinf=np.inf), initial=0.0))
    return low[:, program.outputs], high[:, program.outputs], widest
