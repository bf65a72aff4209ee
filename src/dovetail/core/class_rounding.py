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

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.layers import Dense, Layer, dropped, propagated
from dovetail.core.rounding import OURS, ULPS, Arithmetic, Computation, activation_error


def block_slack(block: Block, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """How far the deployed predictor may be from its layers, for samples with inputs between (n, d) bounds.

    Per output, (n, q), or of a class as `class_slack` says. Infinity where nothing is known for sure.
    """
    outputs = block.outputs.shape[1]
    known = block.description.computation_if_known()
    if known is None or not np.all(np.isfinite(upper - lower)):
        one = (2,) if outputs == 1 else (outputs, outputs)
        return np.full((len(lower), *(one if block.classifies else (outputs,))), np.inf)
    if not block.classifies:
        return known.error(lower, upper)
    known = Computation(known.layers or handed_on(lower.shape[1]), known.arithmetic)
    return class_slack(known, outputs, block.threshold, lower, upper)


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
    low, high = low - error, high + error
    if outputs == 1:
        return error + _threshold_slack(kind, computation.arithmetic, threshold)
    pairs = error[:, :, None] + error[:, None, :]
    return np.asarray(pairs + _order_slack(kind, computation.arithmetic, low, high))


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
    if kind == "softmax":  # both are exponents of rounded differences; a winner never underflows
        width = high.max(axis=1) - low.min(axis=1)
        return np.broadcast_to((4.0 * ULPS * unit + 2.0 * unit * width)[:, None, None], pairs)
    off = 2.0 * activation_error(kind, arithmetic, low, high)
    slope = _least_slope(kind, low, high)
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.maximum(off[:, :, None], off[:, None, :]) / np.minimum(slope[:, :, None], slope[:, None, :])
        )


def _least_slope(kind: str, low: FloatArray, high: FloatArray) -> FloatArray:
    """The least slope between two bounds, of functions that are steepest in the middle (or on the right)."""
    far = low if kind == "softplus" else np.maximum(np.abs(low), np.abs(high))
    with np.errstate(over="ignore"):
        if kind == "tanh":
            return np.asarray(1.0 / np.cosh(far) ** 2)
        rising = 1.0 / (1.0 + np.exp(-far))
        return np.asarray(rising if kind == "softplus" else rising / (1.0 + np.exp(far)))
