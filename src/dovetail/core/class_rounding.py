"""Which classes a network may give that rounds: by how much the losing logit may still win.

In exact numbers tanh, a sigmoid or a softmax rises strictly and changes no class. In floats it ties where it
is flat (tanh(20) is 1.0, and so is tanh(21)), and the first of the tied classes wins. A proof must hold for
the class that the deployed network gives. So the conditions on logits that `thresholded` leaves are loosened
by what saturation and rounding can do:

    class k of several:   logit_k - logit_j >= -slack[k, j]  for every j
    class 1 of one:       logit >= -slack[0],     class 0:  logit <= slack[1]

Every point that the network can give satisfies them, ties included; where logits may be deep in saturation
they say nothing at all, which is all that is true.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.layers import Activation, Dense, Layer, dropped, propagated
from dovetail.core.program import Program
from dovetail.core.program_rounding import program_errors
from dovetail.core.rounding import OURS, ULPS, Arithmetic, Computation, activation_error
from dovetail.networks.functions import FUNCTIONS

Slack = Callable[[FloatArray, FloatArray], FloatArray]
"""Of samples with inputs between (n, d) bounds."""


def block_slack(block: Block, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """How far the deployed predictor may be from its layers, for samples with inputs between (n, d) bounds.

    Per output, (n, q), or of a class as `class_slack` says. Infinity where nothing is known for sure.
    """
    return slack_of(block)(lower, upper)


def tie_slack(block: Block) -> FloatArray:
    """(2,) of a class by one output, (1,) of values: what is left where logits are known as computed.

    The threshold is taken into a bias, and a sigmoid may tie with it.
    """
    known = block.description.computation_if_known()
    if not block.classifies:
        return np.zeros(1)
    if known is None:
        return np.full(2, np.inf)
    kind = dropped(known.layers, 1, block.threshold) if known.layers else ""
    return _threshold_slack(kind, known.arithmetic, block.threshold)


def slack_of(block: Block) -> Slack:
    """The same for any bounds: the predictor is looked at once, and must not change meanwhile."""
    outputs, features = block.outputs.shape[1], block.inputs.shape[1]
    found: Slack | None = None
    layers = plain_layers(block)
    if layers is not None:
        known = block.description.computation_if_known()
        found = None if known is None else _layers_slack(block, known)
    else:
        program = block.description.program_if_known(features)
        if program is not None and program.arithmetic is not None:
            found = _program_slack(block, program, program.arithmetic)

    def slack(lower: FloatArray, upper: FloatArray) -> FloatArray:
        if found is None or not np.all(np.isfinite(upper - lower)):
            one = (2,) if outputs == 1 else (outputs, outputs)
            return np.full((len(lower), *(one if block.classifies else (outputs,))), np.inf)
        with np.errstate(all="ignore"):  # of numbers too large for float64
            return np.nan_to_num(found(lower, upper), nan=np.inf, posinf=np.inf)

    return slack


def plain_layers(block: Block) -> tuple[Layer, ...] | None:
    """The layers of a block that are functions of single values, but for one at the end that is dropped."""
    layers = block.description.layers_if_known()
    if layers is None or not layers:
        return layers
    kept = layers
    if block.classifies and dropped(layers, block.outputs.shape[1], block.threshold):
        kept = layers[:-1]
    return None if any(isinstance(one, Activation) and one.kind == "softmax" for one in kept) else layers


def _layers_slack(block: Block, known: Computation) -> Slack:
    if not block.classifies:
        return known.error
    filled = Computation(known.layers or handed_on(block.inputs.shape[1]), known.arithmetic)
    return lambda low, high: class_slack(filled, block.outputs.shape[1], block.threshold, low, high)


def _program_slack(block: Block, program: Program, arithmetic: Arithmetic) -> Slack:
    if not block.classifies:
        return lambda low, high: program_errors(program, arithmetic, low, high)[2]
    decisive, kind = program.without_last(block.threshold)

    def slack(lower: FloatArray, upper: FloatArray) -> FloatArray:
        low, high, error = program_errors(decisive, arithmetic, lower, upper)
        return _with_ties(kind, arithmetic, block.threshold, low - error, high + error, error)

    return slack


def handed_on(width: int) -> tuple[Layer, ...]:
    """The layers of an empty network, which hands its inputs on."""
    return (Dense(np.eye(width), np.zeros(width)),)


def class_slack(
    computation: Computation, outputs: int, threshold: float, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """The slack of each sample, (n, 2) for one output or (n, q, q), for inputs between (n, d) bounds.

    `computation` has at least one layer. Infinity where the class is anybody's guess.
    """
    kind = dropped(computation.layers, outputs, threshold)
    layers = computation.layers[:-1] if kind else computation.layers
    error = Computation(layers, computation.arithmetic).error(lower, upper)
    low, high, _ = propagated(layers, lower, upper)
    return _with_ties(kind, computation.arithmetic, threshold, low - error, high + error, error)


def _with_ties(
    kind: str,
    arithmetic: Arithmetic,
    threshold: float,
    low: FloatArray,
    high: FloatArray,
    error: FloatArray,
) -> FloatArray:
    """The slack of logits that are off by `error`, before a function of some kind that was dropped."""
    if error.shape[1] == 1:
        return np.asarray(error + _threshold_slack(kind, arithmetic, threshold))
    pairs = error[:, :, None] + error[:, None, :]
    return np.asarray(pairs + _order_slack(kind, arithmetic, low, high))


def _threshold_slack(kind: str, arithmetic: Arithmetic, threshold: float) -> FloatArray:
    """How far below and above the threshold's own logit a sigmoid may be taken for it."""
    if not kind:
        return np.full(2, 4.0 * OURS * abs(threshold))  # the threshold is taken into a bias
    relative = ULPS * (arithmetic.roundoff + OURS)
    least = (threshold - arithmetic.smallest) / (1.0 + relative)
    most = (threshold + arithmetic.smallest) / (1.0 - relative)
    centre = logit(threshold)
    rounding = 4.0 * OURS * (1.0 + abs(centre))
    return np.array([centre - logit(least) + rounding, logit(most) - centre + rounding])


def logit(p: float) -> float:
    """Where a sigmoid is p: infinite at 0 and 1, and beyond."""
    if p <= 0.0:
        return -np.inf
    return np.inf if p >= 1.0 else float(np.log(p) - np.log1p(-p))


def _order_slack(kind: str, arithmetic: Arithmetic, low: FloatArray, high: FloatArray) -> FloatArray:
    """By how much a smaller logit may come out as large as a larger one, for each pair; (n, q, q)."""
    pairs = (*high.shape, high.shape[1])
    if not kind:
        return np.zeros(pairs)
    unit = arithmetic.roundoff + OURS
    if kind in ("softmax", "log_softmax"):  # of rounded differences; a winner never underflows
        width = high.max(axis=1) - low.min(axis=1)
        rounded = 2.0 if kind == "softmax" else 4.0  # the logarithm is taken off of each, and rounded
        return np.broadcast_to((4.0 * ULPS * unit + rounded * unit * width)[:, None, None], pairs)
    off = 2.0 * activation_error(kind, arithmetic, low, high)
    slope = FUNCTIONS[kind].least_slope(low, high)
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.maximum(off[:, :, None], off[:, None, :]) / np.minimum(slope[:, :, None], slope[:, None, :])
        )
