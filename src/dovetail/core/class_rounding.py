"""The classes that a network may give because of rounding: by how much a smaller logit may be rounded above a
larger one.

In exact arithmetic tanh, a sigmoid or a softmax is strictly increasing and changes no class. In floating
point an activation has ties where it is flat (tanh(20) is 1.0, and so is tanh(21)), and the first of the tied
classes is chosen. A proof must hold for the class that the deployed network gives, so the conditions on
logits are relaxed by the effect of saturation and rounding: class k of several: logit_k - logit_j >=
-slack[k, j] for every j; class 1 of one: logit >= -slack[0], class 0: logit <= slack[1]. Every point that the
network can give satisfies these conditions, ties included. Where logits may be deep in saturation the slack
is infinite.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.networks.arithmetic import OURS, ULPS, Arithmetic
from dovetail.networks.elementwise import function_error
from dovetail.networks.functions import FUNCTIONS
from dovetail.networks.graph import Graph
from dovetail.networks.program import Program
from dovetail.networks.step_rounding import StepRounding, step_rounding

Slack = Callable[[FloatArray, FloatArray], FloatArray]
"""The slack of samples with inputs between (n, d) bounds."""


def block_slack(block: Block, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """How far the deployed predictor may be from its program, for samples with inputs between (n, d) bounds.

    Per output, (n, q), or for a class as in `class_slack`. Infinity where no valid limit is known.
    """
    return slack_of(block)(lower, upper)


def tie_slack(block: Block) -> FloatArray:
    """(2,) for a class by one output, (outputs,) for values: the slack if logits are exact. The threshold is
    part of a bias, and a sigmoid may tie with it."""
    if not block.classifies:
        return np.zeros(block.outputs.shape[1])
    program = block.description.program_if_known(block.inputs.shape[1])
    if program is None or program.arithmetic is None:
        return np.full(2, np.inf)
    return _threshold_slack(program.without_last(block.threshold)[1], program.arithmetic, block.threshold)


def block_steps(block: Block, graph: Graph) -> StepRounding | None:
    """The rounding error of each step of a block's graph (`step_rounding`); None if not known."""
    program = block.description.program_if_known(block.inputs.shape[1])
    if program is None:
        return None
    return step_rounding(program.without_last(block.threshold)[0] if block.classifies else program, graph)


def slack_of(block: Block) -> Slack:
    """The slack as a function of the bounds. The predictor is analysed once and must not change meanwhile."""
    outputs = block.outputs.shape[1]
    program = block.description.program_if_known(block.inputs.shape[1])
    arithmetic = None if program is None else program.arithmetic

    def slack(lower: FloatArray, upper: FloatArray) -> FloatArray:
        if program is None or arithmetic is None or not np.all(np.isfinite(upper - lower)):
            one = (2,) if outputs == 1 else (outputs, outputs)
            return np.full((len(lower), *(one if block.classifies else (outputs,))), np.inf)
        with np.errstate(all="ignore"):  # of numbers too large for float64
            if block.classifies:
                found = class_slack(program, arithmetic, block.threshold, lower, upper)
            else:
                found = program.errors(arithmetic, lower, upper)[2]
            return np.nan_to_num(found, nan=np.inf, posinf=np.inf)

    return slack


def class_slack(
    program: Program, arithmetic: Arithmetic, threshold: float, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """The slack of each sample, (n, 2) for one output or (n, q, q), for inputs between (n, d) bounds.
    Infinity if any class is possible."""
    decisive, kind = program.without_last(threshold)
    low, high, error = decisive.errors(arithmetic, lower, upper)
    if error.shape[1] == 1:
        return np.asarray(error + _threshold_slack(kind, arithmetic, threshold))
    pairs = error[:, :, None] + error[:, None, :]
    return np.asarray(pairs + _order_slack(kind, arithmetic, low - error, high + error))


def _threshold_slack(kind: str, arithmetic: Arithmetic, threshold: float) -> FloatArray:
    """How far below and above the threshold's own logit a sigmoid may round to the threshold."""
    if not kind:
        return np.full(2, 4.0 * OURS * abs(threshold))  # the threshold is taken into a bias
    relative = ULPS * arithmetic.unit
    least = (threshold - arithmetic.smallest) / (1.0 + relative)
    most = (threshold + arithmetic.smallest) / (1.0 - relative)
    centre = logit(threshold)
    rounding = 4.0 * OURS * (1.0 + abs(centre))
    return np.array([centre - logit(least) + rounding, logit(most) - centre + rounding])


def logit(p: float) -> float:
    """The logit of a probability p; infinite at 0 and 1 and beyond."""
    if p <= 0.0:
        return -np.inf
    return np.inf if p >= 1.0 else float(np.log(p) - np.log1p(-p))


def _order_slack(kind: str, arithmetic: Arithmetic, low: FloatArray, high: FloatArray) -> FloatArray:
    """By how much a smaller logit may be rounded to the value of a larger one, for each pair; (n, q, q)."""
    pairs = (*high.shape, high.shape[1])
    if not kind:
        return np.zeros(pairs)
    if kind in ("softmax", "log_softmax"):  # of rounded differences; a winner never underflows
        width = high.max(axis=1) - low.min(axis=1)
        rounded = 2.0 if kind == "softmax" else 4.0  # the logarithm is taken off of each, and rounded
        return np.broadcast_to((arithmetic.unit * (4.0 * ULPS + rounded * width))[:, None, None], pairs)
    off = 2.0 * function_error(FUNCTIONS[kind], arithmetic, low, high)
    slope = FUNCTIONS[kind].least_slope(low, high)
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.maximum(off[:, :, None], off[:, None, :]) / np.minimum(slope[:, :, None], slope[:, None, :])
        )
