"""Boxes narrowed by rows, many at a time: the root boxes of certificates, and their leaves."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dovetail.certificates.checker.region import gamma
from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import Mip
from dovetail.core.sparse import row_of_entries

ROUNDS = 10
"""Passes over all rows for the first box."""
PAD = 1e-9
"""Relative: limits are relaxed by this."""
WHOLE = 1e-7
"""An integer's limit within this distance of a whole number keeps this number."""

Box = tuple[FloatArray, FloatArray]


def root_box(mip: Mip) -> Box:
    """Bounds of every point within rows and bounds, which are relaxed as in the check."""
    rows = Narrowing(mip.A, mip.row_lower, mip.row_upper, mip.integer)
    lower, upper = rows.narrowed(mip.lower[None], mip.upper[None], ROUNDS)
    return lower[0], upper[0]


class Narrowing:
    """The limits of each column by each row alone, given the ranges of the others."""

    def __init__(
        self, A: sp.csr_array, row_lower: FloatArray, row_upper: FloatArray, integer: BoolArray
    ) -> None:
        kept = A.data != 0.0
        row, self._column, self._a = row_of_entries(A)[kept], A.indices[kept], A.data[kept]
        first = np.append(True, np.diff(row) > 0)[: row.size]
        self._start, self._group = np.flatnonzero(first), np.cumsum(first) - 1
        self._sides = row_lower[row[first]], row_upper[row[first]]
        self._noise = gamma(int(np.max(np.bincount(row), initial=0)))
        self._order = np.argsort(self._column, kind="stable")
        ordered = self._column[self._order]
        self._first = np.flatnonzero(np.append(True, np.diff(ordered) > 0)[: row.size])
        self._columns, self._whole = ordered[self._first], np.flatnonzero(integer)

    def narrowed(self, lower: FloatArray, upper: FloatArray, rounds: int) -> Box:
        """N boxes (N, columns), narrowed; bounds that cross mean an empty box."""
        for _ in range(rounds if self._a.size else 0):
            before = lower, upper
            lower, upper = self._one_pass(lower, upper)
            if np.array_equal(before[0], lower) and np.array_equal(before[1], upper):
                break
        return lower, upper

    def _one_pass(self, lower: FloatArray, upper: FloatArray) -> Box:
        a, low, high = self._a, lower[:, self._column], upper[:, self._column]
        most = self._side_minus_others(self._sides[1], np.where(a > 0.0, a * low, a * high), 1.0)
        least = self._side_minus_others(self._sides[0], np.where(a > 0.0, a * high, a * low), -1.0)
        above, below = np.where(a > 0.0, most, least) / a, np.where(a > 0.0, least, most) / a
        above = np.where(np.isnan(above), np.inf, above + PAD * (1.0 + np.abs(above)))
        below = np.where(np.isnan(below), -np.inf, below - PAD * (1.0 + np.abs(below)))
        lower, upper, at, whole = lower.copy(), upper.copy(), self._columns, self._whole
        upper[:, at] = np.minimum(
            upper[:, at], np.minimum.reduceat(above[:, self._order], self._first, axis=1)
        )
        lower[:, at] = np.maximum(
            lower[:, at], np.maximum.reduceat(below[:, self._order], self._first, axis=1)
        )
        upper[:, whole], lower[:, whole] = (
            np.floor(upper[:, whole] + WHOLE),
            np.ceil(lower[:, whole] - WHOLE),
        )
        return lower, upper

    def _side_minus_others(self, side: FloatArray, parts: FloatArray, outward: float) -> FloatArray:
        """(N, entries) the side minus the parts of all other entries; infinite if one of those is."""
        endless = ~np.isfinite(parts)
        finite = np.where(endless, 0.0, parts)
        total, size, count = (
            np.add.reduceat(one, self._start, axis=1)[:, self._group]
            for one in (finite, np.abs(finite), endless.astype(np.int64))
        )
        left = side[self._group] - (total - finite)
        sides = np.where(np.isfinite(side), np.abs(side), 0.0)[self._group]
        left = left + outward * self._noise * (size + sides)
        return np.where(count - endless > 0, outward * np.inf, left)
