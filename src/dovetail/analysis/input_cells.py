"""Cells: the stretches of an input between two cuts, within which no tree can tell its values apart.

Cell k of a column holds the numbers above its (k-1)-th cut and up to its k-th one; the first begins at the
lower end of the host's box and the last ends at the upper. A whole number above a cut is at least the next
whole number, so that cells of integers are closed on both sides, and no margin is needed.

A *bound* is proved of closed cells: they overlap in their common cut, which takes nothing away. A *point* is
looked for a margin above the cut, where engines' tolerances do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray

MARGIN = 1e-7
"""Of points above a cut, relative to max(1, |cut|), but no more than half a cell: a hundred times what
engines hold bounds to, a tenth of what the check accepts."""


@dataclass(frozen=True, eq=False)
class InputCells:
    """Cells of some columns, one column after the other."""

    columns: IntArray
    """(J,) which columns of the problem."""
    first: IntArray
    """(J + 1,) where the cells of each begin in the lists below."""
    low: FloatArray
    """(cells,) the lower end of each, closed."""
    inner: FloatArray
    """(cells,) the lower end for points."""
    high: FloatArray
    """(cells,)."""

    @classmethod
    def of(
        cls,
        columns: IntArray,
        cuts: list[FloatArray],
        lower: FloatArray,
        upper: FloatArray,
        whole: np.ndarray,
    ) -> InputCells:
        """Of columns with these cuts, between these bounds; `whole` says which hold integers."""
        lows, inners, highs = [], [], []
        for k in range(columns.size):
            cut = np.unique(np.floor(cuts[k])) if whole[k] else np.unique(cuts[k])
            cut = cut[(cut >= lower[k]) & (cut < upper[k])]
            above = cut + 1.0 if whole[k] else cut
            low, high = np.concatenate([[lower[k]], above]), np.concatenate([cut, [upper[k]]])
            lows.append(low)
            highs.append(high)
            inners.append(low if whole[k] else np.concatenate([low[:1], _inside(cut, high[1:])]))
        first = np.cumsum([0, *(part.size for part in lows)])
        empty = np.empty(0)
        joined = (np.concatenate([empty, *parts]) for parts in (lows, inners, highs))
        return cls(columns, first, *joined)

    @property
    def counts(self) -> IntArray:
        """(J,) how many each column has."""
        return np.diff(self.first)

    @property
    def cuts(self) -> int:
        """All together: what a program that tells cells apart has a binary for."""
        return int(self.high.size - self.columns.size)

    def of_point(self, x: FloatArray) -> IntArray:
        """(J,) the cell of each column at a point of the problem."""
        return np.minimum(self.first_up_to(x[self.columns]), self.counts - 1)

    def first_up_to(self, values: FloatArray) -> IntArray:
        """(J,) the first cell of each column that does not end below a value: how many do."""
        return self._count(self.high < values[self._owner])

    def last_from(self, values: FloatArray) -> IntArray:
        """(J,) the last cell of each column that does not begin, closed, above a value."""
        return self._count(self.low <= values[self._owner]) - 1

    def _count(self, which: BoolArray) -> IntArray:
        if self.columns.size == 0:
            return np.zeros(0, dtype=np.int64)
        return np.add.reduceat(which, self.first[:-1], dtype=np.int64)

    @cached_property
    def _owner(self) -> IntArray:
        """(cells,) the place of each one's column."""
        return np.repeat(np.arange(self.columns.size), self.counts)

    def moved_into(self, x: FloatArray, cells: IntArray) -> FloatArray:
        """A point of the problem with its inputs in these cells, where points may be."""
        flat, moved = self.flat(cells), x.copy()
        moved[self.columns] = np.clip(x[self.columns], self.inner[flat], self.high[flat])
        return moved

    def flat(self, cells: IntArray) -> IntArray:
        """(J,) where they are in the lists."""
        return np.asarray(self.first[:-1] + cells)


def _inside(cut: FloatArray, high: FloatArray) -> FloatArray:
    """A little above each cut, and always above it."""
    margin = np.minimum(MARGIN * np.maximum(1.0, np.abs(cut)), 0.5 * (high - cut))
    return np.minimum(np.maximum(cut + margin, np.nextafter(cut, np.inf)), high)
