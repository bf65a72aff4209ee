"""Whether open columns can meet the rows at all, where the others stay: a look before an LP is asked.

Rows pass limits on to the columns that are open, once; where a row cannot be met within these, no LP finds a
point. It takes a tenth of what an LP takes that finds none, and most candidates of a loop are of that kind.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import Mip

CLEARLY = 1e-5
"""Relative: what is missed by less is left to an LP, whose tolerance is a tenth of it."""


class RepairBounds:
    """Of one program, and the columns of it that stay."""

    def __init__(self, host: Mip, kept: BoolArray) -> None:
        self._host, self._kept = host, kept
        entries = host.A.tocoo()
        mine = ~kept[entries.col] & (entries.data != 0.0)
        self._row, self._column, self._a = entries.row[mine], entries.col[mine], entries.data[mine]

    def exclude(self, x: FloatArray) -> bool:
        """Whether no values of the open columns will do beside those that `x` has in the others."""
        host = self._host
        fixed = host.A @ np.where(self._kept, x, 0.0)
        low, high = host.row_lower - fixed, host.row_upper - fixed
        lower, upper = host.lower.copy(), host.upper.copy()
        least, most = self._terms(lower, upper)
        # a x of an entry is at most what its row allows, less the least of the row's other entries
        allowed = high[self._row] - self._of_others(least, -np.inf)
        needed = low[self._row] - self._of_others(most, np.inf)
        rises = self._a > 0.0
        np.maximum.at(lower, self._column, np.where(rises, needed, allowed) / self._a)
        np.minimum.at(upper, self._column, np.where(rises, allowed, needed) / self._a)
        smallest, largest = (np.bincount(self._row, of, len(low)) for of in self._terms(lower, upper))
        room = CLEARLY * (1.0 + np.abs(fixed))
        missed = (smallest - high > room) | (low - largest > room)
        crossed = (lower - upper > CLEARLY * (1.0 + np.abs(lower))) & ~self._kept
        return bool(np.any(missed) or np.any(crossed))

    def _terms(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the most that each entry comes to."""
        ends = self._a * lower[self._column], self._a * upper[self._column]
        return np.minimum(*ends), np.maximum(*ends)

    def _of_others(self, terms: FloatArray, endless: float) -> FloatArray:
        """For each entry the sum of the others of its row, some of which may be endless."""
        endless_ones = terms == endless
        finite, rows = np.where(endless_ones, 0.0, terms), len(self._host.row_lower)
        total = np.bincount(self._row, finite, rows)[self._row] - finite
        others = np.bincount(self._row, endless_ones, rows)[self._row] - endless_ones
        return np.where(others > 0, endless, total)
