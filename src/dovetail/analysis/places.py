"""Where the columns of blocks are among all columns of a problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from dovetail.core.arrays import IntArray


class Places(Protocol):
    """Of N blocks with c columns each."""

    @property
    def table(self) -> IntArray:
        """(N, c)."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """(N, c)."""
        ...

    def column(self, j: int, first: int, last: int) -> slice | IntArray:
        """Of column `j` of the blocks from `first` to before `last`."""
        ...


@dataclass(frozen=True, eq=False)
class Listed:
    """One by one."""

    table: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """(N, c)."""
        return self.table.shape[0], self.table.shape[1]

    def column(self, j: int, first: int, last: int) -> IntArray:
        """Of some blocks."""
        return self.table[first:last, j]


@dataclass(frozen=True, eq=False)
class Strided:
    """At equal distances: column j of block i is `start[j] + i * step[j]`, as families of a template are."""

    count: int
    start: IntArray
    step: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """(N, c)."""
        return self.count, len(self.start)

    @cached_property
    def table(self) -> IntArray:
        """(N, c), for those who want one by one."""
        return np.asarray(self.start + np.arange(self.count)[:, None] * self.step)

    def column(self, j: int, first: int, last: int) -> slice:
        """Of some blocks: a view of a point, and no list."""
        start, step = int(self.start[j]), int(self.step[j])
        return slice(start + first * step, start + (last - 1) * step + 1, step)
