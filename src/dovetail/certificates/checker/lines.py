"""A line below and a line above each nonlinear function between two bounds, from what is known of its bend.

A ReLU touches its lines at its kink and its ends. Other functions are evaluated on a grid: between two of its
points, h apart, a function whose second derivative is at most M in size is within M h^2 / 8 of its chord, so
the ends of a cell say what happens in it. One rule for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dovetail.certificates.checker.rounding import UNIT, up
from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.networks.functions import FUNCTIONS

CELLS = 24
"""Of the grid; what it loses is a 24th squared of the distance of a parabola from its chord."""
ULPS = 32.0 * UNIT
"""Relative: what evaluating one of these functions, and a line, may be off by."""

Function = Callable[[FloatArray], FloatArray]
Bend = Callable[[FloatArray, FloatArray], FloatArray]

STEEP = 1.03
"""The line below a ReLU rises where about as much is above 0 as below. Not quite 1: half of a box is often
just as large as the other, and lines must not hang on the last digit."""


@dataclass(frozen=True, eq=False)
class Lines:
    """below_slope z + below_offset <= f(z) <= above_slope z + above_offset, value by value."""

    below_slope: FloatArray
    below_offset: FloatArray
    above_slope: FloatArray
    above_offset: FloatArray
    least: FloatArray
    """What f is never below between the bounds."""
    most: FloatArray


BENDS: dict[str, Bend] = {
    "sigmoid": lambda low, high: np.full_like(low, 0.0963),
    "tanh": lambda low, high: np.full_like(low, 0.77),
    "softplus": lambda low, high: np.full_like(low, 0.2501),
    "silu": lambda low, high: np.full_like(low, 0.5001),
    "mish": lambda low, high: np.full_like(low, 0.6443),
    "gelu": lambda low, high: np.full_like(low, 0.7980),
    "gelu_tanh": lambda low, high: np.full_like(low, 0.81),
    "erf": lambda low, high: np.full_like(low, 0.9681),
    "atan": lambda low, high: np.full_like(low, 0.6496),
    "asinh": lambda low, high: np.full_like(low, 0.3850),
    "elu": lambda low, high: np.ones_like(low),
    "square": lambda low, high: np.full_like(low, 2.0),
    "exp": lambda low, high: np.exp(high),
    "log": lambda low, high: _positive(low) ** -2.0,
    "sqrt": lambda low, high: 0.25 * _positive(low) ** -1.5,
    "rsqrt": lambda low, high: 0.75 * _positive(low) ** -2.5,
    "reciprocal": lambda low, high: 2.0 * _positive(np.maximum(low, -high)) ** -3.0,
}
"""What the second derivative never exceeds in size between two bounds."""


def _positive(nearest: FloatArray) -> FloatArray:
    """Where a function is not defined all over, nothing is known: NaN makes everything after it NaN."""
    return np.where(nearest > 0.0, nearest, np.nan)


def lines(kind: str, lower: FloatArray, upper: FloatArray) -> Lines:
    """Of one function, for values between two bounds of the same shape; they are finite."""
    if kind == "relu":
        return _rectified(lower, upper)
    if kind not in BENDS:
        raise UnsupportedError(f"the checker has no lines for {kind}")
    with np.errstate(all="ignore"):
        return _curved(FUNCTIONS[kind].value, BENDS[kind](lower, upper) * (1.0 + ULPS), lower, upper)


def _rectified(lower: FloatArray, upper: FloatArray) -> Lines:
    """The function is convex: above it is any line that is so at both ends, below it any tangent at 0."""
    crossing = (lower < 0.0) & (upper > 0.0)
    sure = np.where(lower >= 0.0, 1.0, 0.0)
    width = np.where(crossing, upper - lower, 1.0)
    chord = np.where(crossing, np.clip(upper / width, 0.0, 1.0), sure)
    rise = np.maximum(-chord * lower, upper - chord * upper) + ULPS * (np.abs(lower) + np.abs(upper))
    below = np.where(crossing, np.where(upper > -STEEP * lower, 1.0, 0.0), sure)
    nothing = np.zeros_like(lower)
    rise = np.where(crossing, rise, nothing)
    return Lines(below, nothing, chord, rise, np.maximum(lower, 0.0), np.maximum(upper, 0.0))


def _curved(function: Function, bend: FloatArray, lower: FloatArray, upper: FloatArray) -> Lines:
    """Of a few slopes, those whose lines are nearest in the middle."""
    width = upper - lower
    grid = lower[..., None] + width[..., None] * np.linspace(0.0, 1.0, CELLS + 1)
    grid[..., -1] = upper
    values = function(grid)
    step = up(width / CELLS)
    lost = up(0.126 * bend * step * step)  # 1/8, and what the grid's own rounding moves
    size = np.abs(values).max(-1) + np.abs(grid).max(-1) + 1.0
    middle = 0.5 * (lower + upper)
    best: list[FloatArray] = []
    for slope in _slopes(grid, values):
        apart = values - slope[..., None] * grid
        noise = ULPS * size * (1.0 + np.abs(slope)) + lost
        below, above = apart.min(-1) - noise, apart.max(-1) + noise
        if not best:
            best = [slope, below, slope, above]
            continue
        nearer = slope * middle + below > best[0] * middle + best[1]
        best[0], best[1] = np.where(nearer, slope, best[0]), np.where(nearer, below, best[1])
        nearer = slope * middle + above < best[2] * middle + best[3]
        best[2], best[3] = np.where(nearer, slope, best[2]), np.where(nearer, above, best[3])
    noise = ULPS * size + lost
    return Lines(best[0], best[1], best[2], best[3], values.min(-1) - noise, values.max(-1) + noise)


def _slopes(grid: FloatArray, values: FloatArray) -> list[FloatArray]:
    """The whole chord, and chords of single cells: at the ends, and along the way."""
    found = []
    for first, last in ((0, CELLS), *((k, k + 1) for k in range(0, CELLS, CELLS // 6)), (CELLS - 1, CELLS)):
        run = grid[..., last] - grid[..., first]
        rise = values[..., last] - values[..., first]
        found.append(np.where(run > 0.0, rise / np.where(run > 0.0, run, 1.0), 0.0))
    return found
