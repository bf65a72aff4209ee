"""How far a network's own arithmetic can take it from what its layers say in exact numbers.

A bound is a statement about the network as it is deployed, in its own dtype, in any batch, on any
processor. The layers that a proof writes out are exact; the two differ by rounding, and this file says by
how much at most, before anything is computed (Higham, Accuracy and Stability, chapter 3):

    z = W v + b,  summed in any order, with or without fused operations:
    |computed z - z|  <=  |W| e  +  gamma (|W| (|v| + e) + |b|)        gamma = m r / (1 - m r)

where v is known up to e, r is the largest relative error of one operation and m the number of operations a
term passes through at most. Activations pass errors on by their slope and add a few units of their own.

These are worst cases, for all inputs between two bounds at once. What is seen in practice is smaller, by a
factor of five to fifty; but seen is not proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.deadline import require_time
from dovetail.core.layers import Activation, Layer
from dovetail.networks.functions import LAYERS

MORE = 3
"""Operations beside the sum itself: a bias, the factors of a Gemm, a division where we multiply."""
OURS = 2.0**-52
"""Two roundings of float64: layers and bounds are multiplied out in it, once."""
ULPS = 8.0
"""Units of roundoff that an implementation of exp, tanh or a sigmoid may be off by; the libraries in use
promise 1 to 4."""


@dataclass(frozen=True)
class Arithmetic:
    """A floating-point format, as far as errors go."""

    roundoff: float
    """Largest relative error of one operation."""
    smallest: float
    """The least normal number: what is smaller may become 0."""
    largest: float


FLOAT64 = Arithmetic(2.0**-53, 2.0**-1022, float(np.finfo(np.float64).max))
FLOAT32 = Arithmetic(2.0**-24, 2.0**-126, float(np.finfo(np.float32).max))
FORMATS: dict[str, Arithmetic] = {
    "float64": FLOAT64,
    "float32": FLOAT32,
    "float16": Arithmetic(2.0**-11, 2.0**-14, 65504.0),
    "bfloat16": Arithmetic(2.0**-8, 2.0**-126, 3.38e38),
}
"""By the names that torch and numpy have for them."""


@dataclass(frozen=True, eq=False)
class Computation:
    """A predictor known operation by operation: what a proof may rest on."""

    layers: tuple[Layer, ...]
    """As it computes them, one after the other; nothing multiplied out."""
    arithmetic: Arithmetic
    """The coarsest that any part of it computes in."""

    def error(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """`rounding_error` of these layers."""
        return rounding_error(self.layers, self.arithmetic, lower, upper)


def rounding_error(
    layers: Sequence[Layer], arithmetic: Arithmetic, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Per output, how far the network may be from its layers for inputs between `lower` and `upper`.

    Bounds of shape (d,) or (n, d) give errors of shape (q,) or (n, q); equal bounds give the error at a
    point. Infinity where nothing can be said: too long a sum for the format, or numbers it cannot hold.
    """
    size = np.maximum(np.abs(lower), np.abs(upper))
    cast = arithmetic.roundoff * size + arithmetic.smallest  # inputs are cast to the format
    error = np.where(size <= arithmetic.largest, cast, np.inf)
    for layer in layers:
        require_time()
        error = _passed_on(layer, arithmetic, lower, upper, error)
        lower, upper = layer.range(lower, upper)
    return error


def _passed_on(
    layer: Layer, arithmetic: Arithmetic, lower: FloatArray, upper: FloatArray, error: FloatArray
) -> FloatArray:
    """The error after a layer, given the bounds of what goes in and the error before it."""
    if isinstance(layer, Activation):
        return _activated(layer.kind, arithmetic, lower, upper, error)
    weight = np.abs(layer.weight)
    size = np.maximum(np.abs(lower), np.abs(upper)) + error
    terms = np.count_nonzero(layer.weight, axis=1)  # what is multiplied by 0 is exactly 0
    total = _spread(size, weight) + np.abs(layer.bias)
    own = gamma(arithmetic, terms + MORE) * total + (terms + MORE) * arithmetic.smallest
    held = total <= 0.5 * arithmetic.largest  # no sum on the way can be too large
    return np.where(held, _spread(error, weight) + own, np.inf)


def gamma(arithmetic: Arithmetic, operations: np.ndarray) -> FloatArray:
    """The largest relative error of so many operations in a row; infinity where it is no small number."""
    one = arithmetic.roundoff + OURS
    total = operations * one
    with np.errstate(divide="ignore"):
        return np.where(total < 0.5, total / (1.0 - total), np.inf)


def _spread(size: FloatArray, weight: FloatArray) -> FloatArray:
    """|W| size, where infinity times 0 is 0."""
    endless = ~np.isfinite(size)
    total = np.where(endless, 0.0, size) @ weight.T
    return np.where(endless.astype(np.float64) @ (weight > 0.0).T.astype(np.float64) > 0.0, np.inf, total)


def _activated(
    kind: str, arithmetic: Arithmetic, lower: FloatArray, upper: FloatArray, error: FloatArray
) -> FloatArray:
    own = activation_error(kind, arithmetic, lower, upper)
    if kind == "relu":  # exact, and 0 whatever the error where it is off for sure
        return np.where(upper + error <= 0.0, 0.0, error)
    if kind == "softmax":  # each share moves by at most half of the largest change before it
        return np.broadcast_to(0.5 * error.max(axis=-1, keepdims=True), error.shape) + own
    return np.asarray(LAYERS[kind].steepest(lower - error, upper + error) * error + own)


def activation_error(kind: str, arithmetic: Arithmetic, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """By how much a computed activation may be off, for inputs that are exact."""
    unit = arithmetic.roundoff + OURS
    own = np.full_like(lower, ULPS * unit + arithmetic.smallest)
    if kind == "softmax":  # differences to the largest are rounded before they become exponents
        width = upper.max(axis=-1, keepdims=True) - lower.min(axis=-1, keepdims=True)
        return np.asarray(own + (lower.shape[-1] + width) * unit)
    if kind == "relu":
        return np.zeros_like(lower)
    function = LAYERS[kind]
    size = 1.0 if function.bounded else 1.0 + np.abs(function.value(upper))
    return np.asarray(own * size + function.off)
