"""A box of cells on its way through the search."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Split:
    """Where a box is cut in two: after a cell of a column, or after a whole number of an integer column."""

    place: int
    """Of a column among those of the cells (`by_cells`), or its number in the host."""
    after: int
    by_cells: bool


@dataclass(order=True)
class Node:
    """Cells from `low` to `high`, what is known of the outputs there, and where to split."""

    bound: float
    number: int
    low: IntArray = field(compare=False)
    high: IntArray = field(compare=False)
    lower: FloatArray = field(compare=False)
    """(columns,) bounds of the host: integers as they were split, outputs as the trees have them."""
    upper: FloatArray = field(compare=False)
    split: Split | None = field(default=None, compare=False)
    reach: dict[int, BoolArray] = field(default_factory=dict, compare=False)
    """Leaves that can be reached, by the number of the sample: while the box is being looked at."""

    def halves(self) -> list[Node]:
        """Both sides of the split, outputs not looked at yet."""
        assert self.split is not None
        place, after = self.split.place, self.split.after
        left = Node(self.bound, self.number, self.low, self.high.copy(), self.lower.copy(), self.upper.copy())
        right = Node(
            self.bound, self.number, self.low.copy(), self.high, self.lower.copy(), self.upper.copy()
        )
        if self.split.by_cells:
            left.high[place], right.low[place] = after, after + 1
        else:
            left.upper[place], right.lower[place] = after, after + 1
        return [left, right]

    @property
    def empty(self) -> bool:
        """Whether some column has nothing left."""
        return bool(np.any(self.low > self.high) or np.any(self.lower > self.upper))
