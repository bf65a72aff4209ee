"""How far a network's own arithmetic can take it from its program in exact numbers, operation by operation.

What `core/rounding.py` says of layers, said of all operations: each passes the errors of what it reads on,
by the steepest slope between their bounds, and adds its own.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.program import (
    Functions,
    Maxima,
    Normalised,
    Operation,
    Products,
    Program,
    Softmax,
    Sums,
)
from dovetail.core.rounding import MORE, OURS, ULPS, Arithmetic, gamma
from dovetail.networks.functions import FUNCTIONS

MOMENTS = 4.0
"""Sums that a mean and a variance pass through, and one more to be safe."""


def program_errors(
    program: Program, arithmetic: Arithmetic, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of each output, for inputs between (n, d) bounds: its bounds, and how far the network may be off.

    Infinity where nothing can be said.
    """
    size = np.maximum(np.abs(lower), np.abs(upper))
    cast = arithmetic.roundoff * size + arithmetic.smallest
    low, high, error = [lower], [upper], [np.where(size <= arithmetic.largest, cast, np.inf)]
    with np.errstate(all="ignore"):  # what is not a number counts as unknown
        for one in program.operations:
            before = [np.concatenate(parts, axis=1) for parts in (low, high, error)]
            least, most, off = _passed_on(one, arithmetic, *before)
            low, high = [before[0], least], [before[1], most]
            error = [before[2], np.where(np.isnan(off), np.inf, off)]
    at = program.outputs
    found = [np.concatenate(parts, axis=1)[:, at] for parts in (low, high, error)]
    return found[0], found[1], found[2]


def _passed_on(
    one: Operation, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bounds and errors of what an operation gives."""
    if isinstance(one, Sums):
        return _summed(one, arithmetic, low, high, error)
    if isinstance(one, Functions):
        at = one.read
        return _function(one.kind, arithmetic, low[:, at], high[:, at], error[:, at])
    unit = arithmetic.roundoff + OURS
    if isinstance(one, Products):
        (a, b, e), (c, d, f) = ((low[:, at], high[:, at], error[:, at]) for at in (one.left, one.right))
        corners = np.stack([a * c, a * d, b * c, b * d])
        corners = np.where(np.isnan(corners), 0.0, corners)  # 0 times infinity
        x, y = np.maximum(np.abs(a), np.abs(b)), np.maximum(np.abs(c), np.abs(d))
        own = 2.0 * unit * (x + e) * (y + f) + arithmetic.smallest
        return corners.min(axis=0), corners.max(axis=0), x * f + y * e + e * f + own
    if isinstance(one, Maxima):
        at = one.read
        return low[:, at].max(axis=2), high[:, at].max(axis=2), error[:, at].max(axis=2)
    if isinstance(one, Normalised):
        return _normalised(one, arithmetic, low, high, error)
    return _shares(one, arithmetic, low, high, error)


def _normalised(
    one: Normalised, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A change of c, as long as d in all, changes the result by at most d / sqrt(mean of c^2 + eps).

    What rounding does on the way (to the mean, to c, to the squares) is a change of c, however it is
    computed: in two rounds or in one, with sums of squares of what is left of a running mean.
    """
    samples, (rows, count) = len(low), one.read.shape
    a, b, e = low[:, one.read], high[:, one.read], error[:, one.read]
    least = a * (1.0 - 1.0 / count) - (b.sum(axis=2, keepdims=True) - b) / count
    most = b * (1.0 - 1.0 / count) - (a.sum(axis=2, keepdims=True) - a) / count
    nearest = np.maximum(np.maximum(least, -most), 0.0)
    size = np.maximum(np.abs(a), np.abs(b)).max(axis=2, keepdims=True) + e.max(axis=2, keepdims=True)
    moved = 2.0 * e.max(axis=2, keepdims=True) + MOMENTS * gamma(arithmetic, np.array(count + MORE)) * size
    left = np.maximum(nearest - moved, 0.0)  # also of what is changed
    rate = 1.0 / np.sqrt(np.square(left).mean(axis=2, keepdims=True) + one.eps)
    root = np.sqrt(count)
    own = gamma(arithmetic, np.array(count + MORE + ULPS)) * root + arithmetic.smallest  # of the variance
    off = root * moved * rate * (1.0 + 4.0 * arithmetic.roundoff) + own
    off = np.where(count * np.square(size) <= 0.5 * arithmetic.largest, off, np.inf)
    slowest = 1.0 / np.sqrt(
        np.square(np.maximum(np.abs(least), np.abs(most))).mean(axis=2, keepdims=True) + one.eps
    )
    low_end = np.clip(least * np.where(least < 0.0, rate, slowest), -root, root)
    high_end = np.clip(most * np.where(most > 0.0, rate, slowest), -root, root)
    shape = (samples, rows, count)
    found = [np.broadcast_to(part, shape).reshape(samples, -1) for part in (low_end, high_end, off)]
    return found[0], found[1], found[2]


def _summed(
    one: Sums, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    weight = abs(one.matrix)
    centre, reach = (one.matrix @ middle.T).T + one.bias, (weight @ half.T).T
    terms = np.diff(one.matrix.indptr)
    size = np.maximum(np.abs(low), np.abs(high)) + error
    total = (weight @ size.T).T + np.abs(one.bias) + one.bulk
    own = gamma(arithmetic, terms + MORE) * total + (terms + MORE) * arithmetic.smallest
    off = (weight @ error.T).T + (0.0 if one.exact else own)
    off = np.where(total <= 0.5 * arithmetic.largest, off, np.inf)
    if one.exact:  # constants are cast to the format, and may be numbers that it cannot hold
        off = off + arithmetic.roundoff * np.abs(one.bias)
    return centre - reach, centre + reach, off


def _function(
    kind: str, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    if kind == "relu":  # exact, and 0 whatever the error where it is off for sure
        off = np.where(high + error <= 0.0, 0.0, error)
        return np.maximum(low, 0.0), np.maximum(high, 0.0), off
    function = FUNCTIONS[kind]
    known = low - error > function.above
    a, b = np.where(known, low, 1.0), np.where(known, high, 1.0)
    e = np.where(known, error, 0.0)
    f = function.value
    least, most = function.range(a, b)
    size = 1.0 + np.maximum(np.abs(a), np.abs(b)) + e
    values = np.maximum(np.abs(f(a - e)), np.abs(f(b + e)))
    own = ULPS * (arithmetic.roundoff + OURS) * (size + values) + arithmetic.smallest + function.off
    off = np.where(values <= 0.5 * arithmetic.largest, function.steepest(a - e, b + e) * e + own, np.inf)
    endless = np.full(low.shape, np.inf)
    return np.where(known, least, -endless), np.where(known, most, endless), np.where(known, off, endless)


def _shares(
    one: Softmax, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Each share moves by at most half of the largest change before it, its logarithm by twice that."""
    samples, (rows, count) = len(low), one.read.shape
    unit = arithmetic.roundoff + OURS
    a, b, e = low[:, one.read], high[:, one.read], error[:, one.read].max(axis=2, keepdims=True)
    width = b.max(axis=2, keepdims=True) - a.min(axis=2, keepdims=True) + 2.0 * e
    own = (ULPS + count + width) * unit + arithmetic.smallest
    shape = (samples, rows, count)
    near = (ULPS + count + width) * OURS  # what these sums are off themselves
    least = np.fmax(a - np.logaddexp.reduce(b, axis=2, keepdims=True) - near, -width - np.log(count))
    most = np.fmin(b - np.logaddexp.reduce(a, axis=2, keepdims=True) + near, 0.0)
    if one.logarithm:
        off = 2.0 * e + 2.0 * own + ULPS * unit * (1.0 + width)
    else:
        least, most, off = np.exp(least) - near, np.minimum(np.exp(most) + near, 1.0), 0.5 * e + own
    found = [np.broadcast_to(part, shape).reshape(samples, -1) for part in (least, most, off)]
    return found[0], found[1], found[2]
