"""Redundant rows and columns: parallel rows, duplicate columns, sums of other rows.

Rows that limit the same sum, joined into one: an equation written as two inequalities is an equation.

    a'x >= 1,  2 a'x <= 2,  -a'x >= -3      becomes      a'x = 1

Of each group the row with the largest entries is kept, since a tolerance is smallest in its units. It takes
the tightest sides of all rows of the group.

Columns with proportional entries in all rows and in the objective: the sum of two is one column.

    first + ratio second        in the place of both, with the sum of their bounds

    both continuous             the sum takes every value between its bounds
    both integer                so does the integer sum, where the ratio is whole and the first has at least
                                as many values as the ratio says: y_0 + 2 y_1 + 4 y_2 counts from 0 to 7
    continuous and integer      the sum is continuous, where the first is as wide as one step of the second

A quantity that a modeller splits in two, counts by binaries, or has twice (two equal items) then is one
column. Values of the sum have a way back to values of the two.

Rows with fewer entries once a multiple of an equation is subtracted:

    a'x = 1,  (2 a + b)'x <= 4          becomes      b'x <= 2

Sides of rows that other rows imply: the sum of two constraints adds nothing.

    a'x <= 1,  b'x <= 2,  (a + b)'x <= 4        the last row is left out

A side is left out where it is a sum of other sides with weights of at least 0; non-negative least squares
finds the weights. Only rows whose columns all stand in other rows within them are looked at. A side that is
left out is not used to remove another one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from dovetail.bounds.box import UNIT
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import HAIR
from dovetail.core.sparse import entries_of, row_of_entries

ROUNDED = 8.0 * UNIT
"""Relative: numbers that differ by less are the same number, multiplied and divided by a factor."""


def snapped(values: FloatArray) -> FloatArray:
    """Integers that were computed by dividing by the unit of a row, rounded back to integers."""
    whole = np.round(values)
    return np.where(np.abs(values - whole) <= ROUNDED * np.abs(whole), whole, values)


@dataclass(frozen=True, eq=False)
class JoinedRows:
    """The sides of all rows after joining, and which rows are part of another one now."""

    lower: FloatArray
    upper: FloatArray
    joined: BoolArray


def parallel_rows(A: sp.csr_array, lower: FloatArray, upper: FloatArray) -> JoinedRows | None:
    """Join rows of proportional entries; None where no two rows are parallel.

    Contradictory rows stay as they are, so that a solve reports the rows themselves.
    """
    A = A if A.has_sorted_indices else A.sorted_indices()
    own = np.arange(A.shape[0])
    first = kept_rows(A, shortest=2)  # rows with one entry are bounds
    low, high = _sides(A, lower, upper, first)
    first = np.where(low[first] > high[first], own, first)
    if np.array_equal(first, own):
        return None
    low, high = _sides(A, lower, upper, first)
    return JoinedRows(low, high, first != own)


def first_entries(A: sp.csr_array) -> FloatArray:
    """(rows,) the first entry of each; 1 of an empty row."""
    heads = np.ones(A.shape[0])
    full = np.diff(A.indptr) > 0
    heads[full] = A.data[A.indptr[:-1][full]]
    return heads


def kept_rows(A: sp.csr_array, *, shortest: int) -> IntArray:
    """(rows,) for each row the one of its group that stays, which may be itself; shorter rows are alone."""
    sizes, rows = np.diff(A.indptr), row_of_entries(A)
    first = np.arange(A.shape[0])
    heads = first_entries(A)
    if np.any(heads == 0.0):
        return first
    scaled = A.data / heads[rows]
    # one number for each row: parallel rows have nearly the same; neighbours are compared entry by entry
    mark = np.random.default_rng(0).standard_normal(A.shape[1])
    key = np.bincount(rows, scaled * mark[A.indices], minlength=A.shape[0])
    size = np.bincount(rows, np.abs(scaled * mark[A.indices]), minlength=A.shape[0])
    order = np.lexsort((np.arange(key.size), key, sizes))
    order = order[sizes[order] >= shortest]
    near = np.abs(key[order[1:]] - key[order[:-1]]) <= ROUNDED * sizes[order[1:]] * size[order[1:]]
    near &= sizes[order[1:]] == sizes[order[:-1]]
    for here, there in zip(order[1:][near], order[:-1][near], strict=True):
        one, other = (slice(A.indptr[i], A.indptr[i + 1]) for i in (here, first[there]))
        if np.array_equal(A.indices[one], A.indices[other]) and np.all(
            np.abs(scaled[one] - scaled[other]) <= ROUNDED * np.abs(scaled[other])
        ):
            first[here] = first[there]
    largest = np.lexsort((-np.abs(heads), first))
    _, start = np.unique(first[largest], return_index=True)
    return largest[start][np.unique(first, return_inverse=True)[1]]


def _sides(
    A: sp.csr_array, lower: FloatArray, upper: FloatArray, first: IntArray
) -> tuple[FloatArray, FloatArray]:
    """(rows,) lower and upper sides: the kept row has the tightest of its group."""
    more = np.flatnonzero(first != np.arange(A.shape[0]))
    heads = first_entries(A)
    ratio = heads[more] / heads[first[more]]
    ends = np.sort([lower[more] / ratio, upper[more] / ratio], axis=0)
    lower, upper = lower.copy(), upper.copy()
    np.maximum.at(lower, first[more], ends[0])
    np.minimum.at(upper, first[more], ends[1])
    meet = np.isfinite(lower) & np.isfinite(upper)
    meet[meet] = np.abs(upper[meet] - lower[meet]) <= ROUNDED * np.maximum(
        np.abs(lower[meet]), np.abs(upper[meet])
    )
    upper[meet] = lower[meet]
    return lower, upper


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
        """Values of the two, between their bounds; the part of the sum beyond the second's range goes to the
        first."""
        at = float(np.round(value)) if self.whole else value
        least, most = sorted(((at - self.ends[0]) / self.ratio, (at - self.ends[1]) / self.ratio))
        if self.other_whole:
            least, most = float(np.ceil(least - HAIR)), float(np.floor(most + HAIR))
        other = min(max(0.0, least), max(least, most))  # as small as possible
        other = min(max(other, self.other_ends[0]), self.other_ends[1])
        return value - self.ratio * other, other


def duplicate_columns(
    A: sp.csr_array, cost: FloatArray, free: BoolArray, ends: tuple[FloatArray, FloatArray], whole: BoolArray
) -> list[JoinedColumn]:
    """Joins of some columns, one after the other; the bounds of the remaining columns are changed in place.

    `free` says which columns may be joined: those that no predictor knows.
    """
    places = _alike(A, cost, free)
    if not places.size:
        return []
    columns = sp.csr_array(sp.hstack([sp.csr_array(cost[places][:, None]), A.T[places]]))
    columns.sort_indices()
    first, head = kept_rows(columns, shortest=1), first_entries(columns)
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
            if (
                other == j
                or other in taken
                or not _sum_is_exact(upper[j] - lower[j], ratio, whole[[j, other]])
            ):
                continue
            taken.add(other)
            own, more = (float(lower[j]), float(upper[j])), (float(lower[other]), float(upper[other]))
            yield JoinedColumn(j, other, ratio, own, more, bool(whole[j]), bool(whole[other]))
            added = sorted((ratio * more[0], ratio * more[1]))
            lower[j], upper[j] = own[0] + added[0], own[1] + added[1]


def _sum_is_exact(wide: float, ratio: float, whole: BoolArray) -> bool:
    """Whether the sum takes every value (whole value) between its bounds."""
    if whole[0]:
        return bool(ratio == np.round(ratio) and wide + 1.0 >= abs(ratio))
    return bool(not whole[1] or wide >= abs(ratio))


MOST_PAIRS = 1_000_000
"""Largest number of pairs of entries in one column: beyond that, comparing rows takes longer than the first
descent (0.1 s)."""
PIVOT = 0.01
"""Relative to the largest entry of an equation: a smaller coefficient neither defines a column nor decides
which multiple is subtracted, because rounding would be amplified. HiGHS uses the same value
(`presolve_pivot_threshold`)."""
SAME = 1e-12
"""Relative: a sum that differs from a row by less equals the row."""


def implied_sides(A: sp.csr_array, lower: FloatArray, upper: FloatArray) -> tuple[BoolArray, BoolArray]:
    """(rows,) which lower and upper limits other rows imply; of an equation both or none."""
    ends = np.stack([-lower, upper])  # -a'x <= -lower, a'x <= upper
    gone = np.zeros(ends.shape, dtype=bool)
    for i, within in _candidates(A):
        columns = A.indices[A.indptr[i] : A.indptr[i + 1]]
        rows = A[within][:, columns].toarray()
        others = np.concatenate([-rows, rows]), ends[:, within].ravel()
        entries = A.data[A.indptr[i] : A.indptr[i + 1]]
        implied = [_implied(others, row, ends[k, i]) for k, row in enumerate((-entries, entries))]
        if ends[0, i] == -ends[1, i] and not all(implied):
            continue
        gone[:, i] = implied
        ends[implied, i] = math.inf
    return gone[0], gone[1]


def sparser_rows(A: sp.csr_array, equal: BoolArray) -> list[tuple[int, int, float]]:
    """Rows, equations and factors: row minus factor times equation has fewer entries, and most entries of
    the equation cancel. No row is changed twice, or changed and used."""
    if (np.bincount(A.indices, minlength=A.shape[1]).astype(float) ** 2).sum() > MOST_PAIRS:
        return []
    sizes, equations = np.diff(A.indptr), np.flatnonzero(equal)
    pattern = sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    common = sp.csr_array(pattern[equations] @ pattern.T)
    which, rows = equations[row_of_entries(common)], common.indices
    near = (2.0 * common.data > sizes[which]) & (which != rows)
    found, changed, used = list[tuple[int, int, float]](), set[int](), set[int]()
    for e, i in sorted(zip(which[near].tolist(), rows[near].tolist(), strict=True)):
        if i in changed or i in used or e in changed:
            continue
        columns, a = entries_of(A, e)
        others, b = entries_of(A, i)
        both, here, there = np.intersect1d(columns, others, return_indices=True)
        ratios = b[there] / a[here]
        firm = np.abs(a[here]) >= PIVOT * np.abs(a).max()
        if not firm.any():
            continue
        gone = np.abs(ratios[:, None] - ratios[firm]) <= SAME * np.abs(ratios[firm])
        best = int(np.argmax(gone.sum(axis=0)))
        most = int(gone[:, best].sum())
        if most > columns.size - both.size and 2 * most > columns.size:
            found.append((i, e, float(ratios[firm][best])))
            changed.add(i)
            used.add(e)
    return found


def _implied(others: tuple[FloatArray, FloatArray], row: FloatArray, end: float) -> bool:
    """Whether `row` @ x <= `end` is a sum of rows with finite limits."""
    finite = np.isfinite(others[1])
    if not math.isfinite(end) or not finite.any():
        return False
    rows, ends = others[0][finite], others[1][finite]
    try:
        weights, missed = nnls(rows.T, row)
    except RuntimeError:  # not converged within its iterations
        return False
    return bool(missed <= SAME * np.linalg.norm(row) and weights @ ends <= end + HAIR * max(1.0, abs(end)))


def _candidates(A: sp.csr_array) -> list[tuple[int, IntArray]]:
    """Rows, the longest first, with the other rows that have no column outside them and together cover their
    columns."""
    if (np.bincount(A.indices, minlength=A.shape[1]).astype(float) ** 2).sum() > MOST_PAIRS:
        return []
    sizes = np.diff(A.indptr)
    pattern = sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    common = sp.csr_array(pattern @ pattern.T)
    outer, inner = row_of_entries(common), common.indices
    within = (common.data == sizes[inner]) & (inner != outer)
    outer, inner = outer[within], inner[within]
    covered = (sp.csr_array((np.ones(outer.size), (outer, inner)), shape=common.shape) @ pattern).sign()
    whole = np.asarray(covered.sum(axis=1)).ravel() == sizes
    found = np.flatnonzero(whole & (np.bincount(outer, minlength=A.shape[0]) > 1))
    return [(int(i), inner[outer == i]) for i in found[np.argsort(-sizes[found], kind="stable")]]
