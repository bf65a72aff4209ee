"""Boxes: bounds for every column that hold for every feasible point, by passing rows on to columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.sparse import row_of_entries

ROUNDS = 10
"""Passes over the rows; later ones seldom move a bound any more."""
MOVED = 1e-3
"""Relative to max(1, |bound|): less is not worth another pass; rows may creep towards a limit for ever."""
PAD = 1e-7
"""Derived bounds are widened by this much, times max(1, |bound|): nothing is gained by cutting that close."""
UNIT = 2.0**-53
"""A float64 operation is off by at most this much, relative to its result."""


@dataclass(frozen=True, eq=False)
class Box:
    """Bounds for every column, at least as tight as the host's own."""

    lower: FloatArray
    upper: FloatArray
    complete: bool = True
    """False where time ran out before every open input was asked about."""

    @property
    def finite(self) -> np.ndarray:
        """Which columns are bounded on both sides."""
        return np.isfinite(self.lower) & np.isfinite(self.upper)


def propagate(mip: Mip) -> Box:
    """Bounds implied by single rows, passed on from row to row for a few rounds."""
    lower, upper = mip.lower.copy(), mip.upper.copy()
    if mip.A.nnz == 0:
        return Box(lower, upper)
    a, column = mip.A.data, mip.A.indices
    row = row_of_entries(mip.A)
    sides = mip.sides_as_checked
    for _ in range(ROUNDS):
        before = (lower.copy(), upper.copy())
        with np.errstate(invalid="ignore"):
            least = np.where(a > 0, a * lower[column], a * upper[column])
            most = np.where(a > 0, a * upper[column], a * lower[column])
            below, noise_below = _others(least, row, mip.n_rows)
            above, noise_above = _others(most, row, mip.n_rows)
            room_up, room_down = sides[1][row] - below, sides[0][row] - above
            cap = np.where(a > 0, room_up, room_down) / a
            floor = np.where(a > 0, room_down, room_up) / a
        noise_up = np.where(a > 0, noise_below, noise_above) / np.abs(a)
        noise_down = np.where(a > 0, noise_above, noise_below) / np.abs(a)
        cap[np.isnan(cap)], floor[np.isnan(floor)] = np.inf, -np.inf
        np.minimum.at(upper, column, cap + PAD * np.maximum(1.0, np.abs(cap)) + noise_up)
        np.maximum.at(lower, column, floor - PAD * np.maximum(1.0, np.abs(floor)) - noise_down)
        tidy(mip, lower, upper)
        if _converged(before, (lower, upper)):
            break
    return Box(lower, upper)


def least_cost(mip: Mip, lower: FloatArray, upper: FloatArray) -> float:
    """What no point between these bounds costs less than, rows left aside; rounded outward."""
    used = np.flatnonzero(mip.cost)
    cost = mip.cost[used]
    parts = cost * np.where(cost > 0.0, lower[used], upper[used])
    if not np.all(np.isfinite(parts)):
        return -math.inf
    parts -= 2.0 * UNIT * np.abs(parts)  # each product is rounded once
    total = math.fsum((*parts.tolist(), mip.offset))
    return total - 2.0 * UNIT * abs(total)


def _others(contribution: FloatArray, row: IntArray, rows: int) -> tuple[FloatArray, FloatArray]:
    """For each entry, the sum of its row's other contributions, which may be infinite, and its rounding.

    Large contributions that cancel leave rounding behind that a small entry would multiply.
    """
    infinite = ~np.isfinite(contribution)
    finite = np.where(infinite, 0.0, contribution)
    total = np.bincount(row, finite, rows)[row] - finite
    others_infinite = np.bincount(row, infinite, rows)[row] - infinite > 0
    sign = np.sign(contribution[infinite][0]) if np.any(infinite) else 1.0
    sizes = np.bincount(row, np.abs(finite), rows)
    noise = 2.0 * UNIT * (np.bincount(row, minlength=rows) + 2) * sizes
    return np.where(others_infinite, sign * np.inf, total), np.asarray(noise[row], dtype=np.float64)


def tidy(mip: Mip, lower: FloatArray, upper: FloatArray) -> None:
    """Integers get whole bounds; nothing gets looser than the host, and rounding never crosses bounds."""
    whole = mip.integer
    lower[whole] = np.ceil(lower[whole] - TOLERANCE)
    upper[whole] = np.floor(upper[whole] + TOLERANCE)
    np.maximum(lower, mip.lower, out=lower)
    np.minimum(upper, mip.upper, out=upper)
    crossed = lower > upper  # an infeasible host, or rounding: the host's own bounds are left to say so
    lower[crossed], upper[crossed] = mip.lower[crossed], mip.upper[crossed]


def _converged(before: tuple[FloatArray, FloatArray], after: tuple[FloatArray, FloatArray]) -> bool:
    with np.errstate(invalid="ignore"):
        moved = [
            np.abs(new - old) > MOVED * np.maximum(1.0, np.abs(new))
            for old, new in zip(before, after, strict=True)
        ]
    return not any(bool(np.any(change)) for change in moved)
