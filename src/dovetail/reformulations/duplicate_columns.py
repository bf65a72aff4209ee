"""Columns with proportional entries in all rows and in the objective: the sum of two is one column.

    first + ratio second        in the place of both, with the sum of their bounds

    both continuous             the sum takes every value between its bounds
    both integer                so does the integer sum, where the ratio is whole and the first has at least
                                as many values as the ratio says: y_0 + 2 y_1 + 4 y_2 counts from 0 to 7
    continuous and integer      the sum is continuous, where the first is as wide as one step of the second

What a modeller splits in two, counts by binaries, or has twice (two items that are the same) is one column
then. Values of the sum have a way back to values of the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import HAIR
from dovetail.core.sparse import row_of_entries
from dovetail.reformulations.parallel_rows import ROUNDED, first_entries, snapped, staying


@dataclass(frozen=True)
class JoinedColumn:
    """first + ratio second, in the place of first."""

    first: int
    second: int
    ratio: float
    ends: tuple[float, float]
    """Of first."""
    other_ends: tuple[float, float]
    """Of second."""
    whole: bool
    """Whether first is an integer, and the sum with it."""
    other_whole: bool

    def parts(self, value: float) -> tuple[float, float]:
        """Values of the two, between their bounds; what the sum is beyond its own is left to the first."""
        at = float(np.round(value)) if self.whole else value
        least, most = sorted(((at - self.ends[0]) / self.ratio, (at - self.ends[1]) / self.ratio))
        if self.other_whole:
            least, most = float(np.ceil(least - HAIR)), float(np.floor(most + HAIR))
        other = min(max(0.0, least), max(least, most))  # as little of it as there may be
        other = min(max(other, self.other_ends[0]), self.other_ends[1])
        return value - self.ratio * other, other


def duplicate_columns(
    A: sp.csr_array, cost: FloatArray, free: BoolArray, ends: tuple[FloatArray, FloatArray], whole: BoolArray
) -> list[JoinedColumn]:
    """Joins of some columns, one after the other; the bounds of what stays are changed in place.

    `free` says which columns may be joined: those that no predictor knows.
    """
    places = _alike(A, cost, free)
    if not places.size:
        return []
    columns = sp.csr_array(sp.hstack([sp.csr_array(cost[places][:, None]), A.T[places]]))
    columns.sort_indices()
    first, head = staying(columns, shortest=1), first_entries(columns)
    sizes = np.bincount(first, minlength=places.size)
    joins: list[JoinedColumn] = []
    for group in np.flatnonzero(sizes > 1):
        same = np.flatnonzero(first == group)
        same = same[np.argsort(np.abs(head[same]), kind="stable")]
        joins += _joins(places[same], head[same], ends, whole)
    return joins


def _alike(A: sp.csr_array, cost: FloatArray, free: BoolArray) -> IntArray:
    """Columns that may be proportional to another one: a random row of weights makes the same number of both,
    in units of their first entries."""
    head, sizes = np.zeros(cost.size), np.bincount(A.indices, minlength=cost.size) + (cost != 0.0)
    head[A.indices[::-1]] = A.data[::-1]
    head = np.where(cost != 0.0, cost, head)
    places = np.flatnonzero(free & (head != 0.0))
    if places.size < 2:
        return places[:0]
    mark = np.random.default_rng(0).standard_normal(A.shape[0] + 1)
    weight = mark[row_of_entries(A)] * A.data
    key = (np.bincount(A.indices, weight, cost.size) + mark[-1] * cost)[places] / head[places]
    size = np.bincount(A.indices, np.abs(weight), cost.size) + np.abs(mark[-1] * cost)
    room = ROUNDED * sizes[places] * size[places] / np.abs(head[places])
    order = np.argsort(key)
    near = np.diff(key[order]) <= np.maximum(room[order[1:]], room[order[:-1]])
    same = np.append(near, False) | np.append(False, near)
    return np.sort(places[order[same]])


def _joins(
    columns: IntArray, head: FloatArray, ends: tuple[FloatArray, FloatArray], whole: BoolArray
) -> Iterator[JoinedColumn]:
    """Of columns with proportional entries, the least first: integers, then all that is continuous."""
    lower, upper = ends
    taken: set[int] = set()
    for of_integers, others in ((True, whole[columns]), (False, ~whole[columns]), (False, whole[columns])):
        base = np.flatnonzero(whole[columns] == of_integers)
        if not base.size:
            continue
        k, j = int(base[0]), int(columns[base[0]])
        for i in np.flatnonzero(others).tolist():
            other = int(columns[i])
            ratio = float(snapped(np.array([head[i] / head[k]]))[0])
            if other == j or other in taken or not _fits(upper[j] - lower[j], ratio, whole[[j, other]]):
                continue
            taken.add(other)
            own, more = (float(lower[j]), float(upper[j])), (float(lower[other]), float(upper[other]))
            yield JoinedColumn(j, other, ratio, own, more, bool(whole[j]), bool(whole[other]))
            added = sorted((ratio * more[0], ratio * more[1]))
            lower[j], upper[j] = own[0] + added[0], own[1] + added[1]


def _fits(wide: float, ratio: float, whole: BoolArray) -> bool:
    """Whether the sum takes every value (whole value) between its bounds."""
    if whole[0]:
        return bool(ratio == np.round(ratio) and wide + 1.0 >= abs(ratio))
    return bool(not whole[1] or wide >= abs(ratio))
