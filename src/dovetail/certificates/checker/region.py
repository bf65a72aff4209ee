"""The inputs of a part on each leaf: a box, and possibly one row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Region:
    """N boxes, (N, d), with least <= row x <= side if there is a row."""

    lower: FloatArray
    upper: FloatArray
    row: FloatArray | None = None
    side: float = 0.0
    """Infinity without a row."""
    least_side: float = -np.inf

    @property
    def size(self) -> FloatArray:
        """(N, d) the largest absolute values."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def least(self, slopes: FloatArray, offset: FloatArray) -> FloatArray:
        """(N, S) lower bounds of slopes x + offset, (N, S, d) and (N, S)."""
        best = self._least_in_box(slopes, offset)
        if self.row is None:
            return best
        for row, side in ((self.row, self.side), (-self.row, -self.least_side)):
            if np.isfinite(side):
                best = np.fmax(best, self._least_by(row, side, slopes, offset))
        return np.asarray(best)

    def _least_by(self, row: FloatArray, side: float, slopes: FloatArray, offset: FloatArray) -> FloatArray:
        """The bound with row x <= side, at the best multiplier."""
        weight = self._multiplier(row, side, slopes)
        moved = slopes + weight[:, :, None] * row
        value = self._least_in_box(moved, offset - weight * side)
        inexact = (np.abs(slopes) + np.abs(weight)[:, :, None] * np.abs(row)) @ self.size[:, :, None]
        noise = gamma(4) * (inexact[:, :, 0] + np.abs(offset) + np.abs(weight * side))
        return np.asarray(value - noise)

    def _least_in_box(self, slopes: FloatArray, offset: FloatArray) -> FloatArray:
        best = np.minimum(slopes * self.lower[:, None], slopes * self.upper[:, None]).sum(2)
        size = (np.abs(slopes) @ self.size[:, :, None])[:, :, 0] + np.abs(offset)
        return np.asarray(best + offset - gamma(slopes.shape[2]) * size)

    def _multiplier(self, row: FloatArray, side: float, slopes: FloatArray) -> FloatArray:
        """(N, S) the multiplier of the row with the best bound: any nonnegative number is valid. With a
        larger multiplier the best corner of the box moves, column by column, until it satisfies the row."""
        lower, upper = self.lower[:, None], self.upper[:, None]
        down = (slopes > 0.0) | ((slopes == 0.0) & (row > 0.0))  # columns without cost serve the row
        corner = np.where(down, lower, upper)
        beyond = corner @ row - side
        turns = np.where(row != 0.0, -slopes / np.where(row != 0.0, row, 1.0), -1.0)
        turns = np.where(turns > 0.0, turns, np.inf)
        order = np.argsort(turns, axis=2)
        moved = np.abs(row) * (upper - lower)
        left = beyond[:, :, None] - np.cumsum(
            np.take_along_axis(np.broadcast_to(moved, turns.shape), order, 2), axis=2
        )
        met = np.argmax(left <= 0.0, axis=2)[:, :, None]
        weight = np.take_along_axis(np.take_along_axis(turns, order, 2), met, 2)[:, :, 0]
        return np.where((beyond > 0.0) & np.isfinite(weight), weight, 0.0)


Chosen = IntArray | BoolArray | slice
"""Indices or flags of a selection."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """The boxes of leaves: bounds of the part's columns and, if a tree divides some, of its neurons."""

    lower: FloatArray
    """(N, columns), or (N, columns and neurons)."""
    upper: FloatArray

    @property
    def size(self) -> FloatArray:
        """(N, columns) the largest absolute values."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def take(self, chosen: Chosen) -> Boxes:
        """A selection of the boxes."""
        return Boxes(self.lower[chosen], self.upper[chosen])


UNIT = 2.0**-53
MORE = 8
"""Number of operations in addition to a sum."""


def gamma(terms: int) -> float:
    """The relative rounding of this number of operations in sequence; doubled, because this number is
    computed in floating point, too."""
    return 2.0 * (terms + MORE) * UNIT / (1.0 - (terms + MORE) * UNIT)


def down(values: FloatArray) -> FloatArray:
    """The next float below."""
    return np.nextafter(values, -np.inf)


def up(values: FloatArray) -> FloatArray:
    """The next float above."""
    return np.nextafter(values, np.inf)
