"""Where the inputs of a part can be on a leaf: a box, and perhaps one row more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.certificates.checker.rounding import gamma
from dovetail.core.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Region:
    """N boxes, (N, d), cut by row x <= side where there is a row."""

    lower: FloatArray
    upper: FloatArray
    row: FloatArray | None = None
    side: float = 0.0

    @property
    def size(self) -> FloatArray:
        """(N, d) the largest absolute values."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def least(self, slopes: FloatArray, offset: FloatArray) -> FloatArray:
        """(N, S) what slopes x + offset, (N, S, d) and (N, S), is never below."""
        if self.row is None:
            return self._least_in_box(slopes, offset)
        weight = self._multiplier(slopes)
        moved = slopes + weight[:, :, None] * self.row
        value = self._least_in_box(moved, offset - weight * self.side)
        inexact = (np.abs(slopes) + np.abs(weight)[:, :, None] * np.abs(self.row)) @ self.size[:, :, None]
        noise = gamma(4) * (inexact[:, :, 0] + np.abs(offset) + np.abs(weight * self.side))
        return np.asarray(np.fmax(value - noise, self._least_in_box(slopes, offset)))

    def _least_in_box(self, slopes: FloatArray, offset: FloatArray) -> FloatArray:
        best = np.minimum(slopes * self.lower[:, None], slopes * self.upper[:, None]).sum(2)
        size = (np.abs(slopes) @ self.size[:, :, None])[:, :, 0] + np.abs(offset)
        return np.asarray(best + offset - gamma(slopes.shape[2]) * size)

    def _multiplier(self, slopes: FloatArray) -> FloatArray:
        """(N, S) of the row, where the bound is best: any number that is not negative gives one.

        With more weight the best corner of the box moves, column by column, until the row holds at it.
        """
        row = self.row
        assert row is not None
        lower, upper = self.lower[:, None], self.upper[:, None]
        down = (slopes > 0.0) | ((slopes == 0.0) & (row > 0.0))  # what costs nothing helps the row
        corner = np.where(down, lower, upper)
        beyond = corner @ row - self.side
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
