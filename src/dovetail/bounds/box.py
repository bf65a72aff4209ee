"""Bound propagation: bounds on every variable that hold for every feasible solution.

Lower bounds that a user gives must not exceed the upper bounds. *Computed* bounds may cross when a problem
is infeasible, and large numbers may make them infinite or NaN. `common` alone decides how such computed
bounds are treated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.deadline import require_time
from dovetail.core.mip import INFINITY, TOLERANCE, Mip
from dovetail.core.sparse import entries_of, joined_ranges, row_of_entries, sums_of_others

ROUNDS = 10
"""Number of passes over the rows; later ones seldom improve a bound."""
MOVED = 1e-3
"""Relative to max(1, |bound|): smaller improvements are not worth another pass."""
PAD = 1e-7
"""Derived bounds are relaxed by this, times max(1, |bound|)."""
UNIT = 2.0**-53
"""Largest relative error of a float64 operation."""
ROUNDING = 8.0 * UNIT
"""Relative: the rounding of the few sums that add a slack to a bound. Other rounding is part of computed
ranges."""


class CrossedBounds(NamedTuple):
    """A column whose computed bounds cross."""

    column: int
    least: float
    most: float


@dataclass(frozen=True, eq=False)
class Box:
    """Bounds for every column, at least as tight as the program's own; they never cross."""

    lower: FloatArray
    upper: FloatArray
    complete: bool = True
    """False if time ran out before every open input was bounded."""
    empty: CrossedBounds | None = None
    """Proves that no point satisfies the rows and bounds that the box was made of. Points within the check's
    tolerance are excluded only if rows and bounds were relaxed before (`Mip.loosened`)."""

    @property
    def finite(self) -> np.ndarray:
        """The columns that are bounded on both sides."""
        return np.isfinite(self.lower) & np.isfinite(self.upper)


def common(
    lower: FloatArray, upper: FloatArray, least: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """The bounds `lower` and `upper`, tightened by the computed ones `least` and `most`.

    A computed bound that is NaN, or infinite on its wrong side, is ignored. If the two intervals are
    disjoint, the first one is kept. The third array marks bounds that cross by more than the rounding of
    their sums: there no value is possible.
    """
    low = np.fmax(lower, np.where(least == np.inf, np.nan, least))
    high = np.fmin(upper, np.where(most == -np.inf, np.nan, most))
    crossed = low > high
    with np.errstate(invalid="ignore"):  # both infinite
        apart = low - high > ROUNDING * np.maximum(np.abs(low), np.abs(high))
    return np.where(crossed, lower, low), np.where(crossed, upper, high), crossed & apart


def narrow(
    lower: FloatArray, upper: FloatArray, columns: IntArray, least: FloatArray, most: FloatArray
) -> CrossedBounds | None:
    """Tighten the bounds of some columns by computed ones, in place; returns a column without any value, if
    there is one."""
    low, high, apart = common(lower[columns], upper[columns], least, most)
    found = _first(columns, apart, np.fmax(lower[columns], least), np.fmin(upper[columns], most))
    lower[columns], upper[columns] = low, high
    return found


def _first(columns: IntArray, apart: BoolArray, least: FloatArray, most: FloatArray) -> CrossedBounds | None:
    if not np.any(apart):
        return None
    at = np.unravel_index(int(np.argmax(apart)), apart.shape)
    return CrossedBounds(int(columns[at]), float(least[at]), float(most[at]))


def propagate(mip: Mip) -> Box:
    """Bounds implied by single rows, propagated for a few rounds."""
    lower, upper = mip.lower.copy(), mip.upper.copy()
    empty: CrossedBounds | None = None
    row_lower, row_upper = mip.sides_as_checked
    says = (np.diff(mip.A.indptr) > 0) & (np.isfinite(row_lower) | np.isfinite(row_upper))
    rows = whole = RowEntries.of(mip.A, np.flatnonzero(says))
    rounds = 0
    while rows.number.size and rounds < ROUNDS:
        rounds += 1
        require_time()
        before = (lower.copy(), upper.copy())
        ends = (before[0][rows.column], before[1][rows.column])
        rows.pass_on(rows.a, row_upper[rows.number], ends, lower, upper)
        rows.pass_on(-rows.a, -row_lower[rows.number], ends, lower, upper)
        empty = tidy(mip, lower, upper) or empty
        moved = (before[0] != lower) | (before[1] != upper)
        if not _has_moved(before, (lower, upper), np.flatnonzero(moved)):
            break
        rows = whole.touching(moved)
    return Box(lower, upper, empty=empty)


def needed_ends(
    A: sp.csr_array,
    sides: tuple[FloatArray, FloatArray],
    cost: FloatArray,
    free: BoolArray,
    lower: FloatArray,
    upper: FloatArray,
) -> bool:
    """Bounds of continuous columns that have none, of some best point, in place; whether there are any.

    If the cost of a column is not negative, the column needs no more than the largest value that one of its
    rows requires: from any higher value it can be lowered to that without violating a row. This bounds an
    epigraph variable that was written without an upper bound. Columns whose increase never hurts get a lower
    bound in the same way. `free` marks the columns that no predictor reads or writes.
    """
    rows, columns, a = row_of_entries(A), A.indices, A.data
    ends = np.sort([a * lower[columns], a * upper[columns]], axis=0)
    least, most = (sums_of_others(end, rows, A.shape[0]) for end in ends)
    size = np.bincount(rows, np.where(np.isinf(ends), 0.0, np.abs(ends)).max(0), A.shape[0])
    noise = (2.0 * UNIT * (np.bincount(rows, minlength=A.shape[0]) + 2) * size)[rows] / np.abs(a)
    found = False
    for way, bound, other in ((1.0, upper, lower), (-1.0, lower, upper)):
        up = way * a > 0.0
        side, others = np.where(up, sides[0][rows], sides[1][rows]), np.where(up, least, most)
        with np.errstate(invalid="ignore"):
            asked = np.where(np.isinf(others), np.inf, way * (side - others) / a + noise)
        asked = np.where(np.isinf(side), -np.inf, asked)
        end = way * other
        np.maximum.at(end, columns, asked)
        open_ones = free & (way * cost >= 0.0) & np.isinf(bound) & np.isfinite(end)
        end = end[open_ones]
        bound[open_ones] = way * (end + PAD * np.maximum(1.0, np.abs(end)))
        found |= bool(open_ones.any())
    return found


def needed_pair_ends(
    A: sp.csr_array,
    sides: tuple[FloatArray, FloatArray],
    cost: FloatArray,
    free: BoolArray,
    lower: FloatArray,
    upper: FloatArray,
) -> bool:
    """Bounds of pairs of columns that make up for each other in an equation, as `needed_ends`.

    The parts p and q of a difference, x - w = p - q, have one bound each. If decreasing both never hurts, one
    of them is at its bound in some best point, and the equation bounds the other.
    """
    half = free & (np.isinf(lower) != np.isinf(upper))
    if np.count_nonzero(half) < 2:
        return False
    rows = row_of_entries(A)
    endless = np.bincount(rows, np.isinf(lower[A.indices]) | np.isinf(upper[A.indices]), A.shape[0])
    apart = np.bincount(rows, half[A.indices], A.shape[0])
    found, by_column = False, None
    for i in np.flatnonzero((sides[0] == sides[1]) & (endless == 2) & (apart == 2)).tolist():
        by_column = A.tocsc() if by_column is None else by_column
        columns, a = entries_of(A, i)
        two = np.flatnonzero(half[columns])
        up = np.isinf(upper[columns[two]])
        if np.any(up == np.isinf(lower[columns[two]])):  # another equation has already bounded one of them
            continue
        way = np.where(up, 1.0, -1.0)
        if np.sign(a[two]) @ way != 0.0:
            continue
        if not _never_worse(by_column, columns[two], way / np.abs(a[two]), i, sides, cost):
            continue
        rest = np.delete(np.arange(columns.size), two)
        ends = np.sort(a[rest] * np.stack([lower[columns[rest]], upper[columns[rest]]]), axis=0).sum(axis=1)
        at = a[two] * np.where(up, lower[columns[two]], upper[columns[two]])
        noise = 2.0 * UNIT * (columns.size + 2) * (np.abs(ends).sum() + np.abs(at).sum() + abs(sides[0][i]))
        for k in (0, 1):  # the other column is at its bound
            p, reach = columns[two[k]], np.sort((sides[0][i] - at[1 - k] - ends) / a[two[k]])
            room = noise / abs(a[two[k]]) + PAD * max(1.0, *np.abs(reach))
            if up[k]:
                upper[p] = max(lower[p], reach[1] + room)
            else:
                lower[p] = min(upper[p], reach[0] - room)
        found = True
    return found


def _never_worse(
    columns: sp.csc_array,
    two: IntArray,
    way: FloatArray,
    row: int,
    sides: tuple[FloatArray, FloatArray],
    cost: FloatArray,
) -> bool:
    """Whether lowering two columns together costs nothing, and no other row prevents it."""
    if cost[two] @ way < 0.0:
        return False
    less = np.zeros(columns.shape[0])
    for j, by in zip(two, way, strict=True):
        rows, a = entries_of(columns, j)
        less[rows] += by * a
    less[row] = 0.0
    return bool(np.all(np.isinf(sides[0][less > 0.0])) and np.all(np.isinf(sides[1][less < 0.0])))


class RowEntries(NamedTuple):
    """Some nonempty rows of a program, entry by entry."""

    number: IntArray
    """Numbers of the rows in the program."""
    a: FloatArray
    column: IntArray
    row: IntArray
    """The row of each entry, as its position among these rows."""
    first: IntArray
    """Where the entries of each row begin."""

    @classmethod
    def of(cls, A: sp.csr_array, rows: IntArray) -> RowEntries:
        """The entries of the rows with these numbers."""
        begin, end = A.indptr[rows], A.indptr[rows + 1]
        entries = joined_ranges(begin, end) if rows.size < A.shape[0] else slice(None)
        lengths = end - begin
        row, first = np.repeat(np.arange(rows.size), lengths), np.cumsum(lengths) - lengths
        return cls(rows, A.data[entries], A.indices[entries].astype(np.intp), row, first)

    @classmethod
    def filled(cls, A: sp.csr_array) -> RowEntries:
        """The rows with entries."""
        return cls.of(A, np.flatnonzero(np.diff(A.indptr)))

    def least(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, rows) the least activity of each row between (N, columns) bounds, rounded down."""
        if self.first.size == 0:
            return np.zeros((len(lower), 0))
        parts = self.a * np.where(self.a > 0.0, lower[:, self.column], upper[:, self.column])
        total, size = (np.add.reduceat(of, self.first, axis=1) for of in (parts, np.abs(parts)))
        entries = np.bincount(self.row)
        return np.where(np.isfinite(total), total - 2.0 * UNIT * (entries + 2) * size, -np.inf)

    def touching(self, moved: BoolArray) -> RowEntries:
        """The rows with an entry in a column whose bounds moved."""
        chosen = np.logical_or.reduceat(moved[self.column], self.first)
        if np.all(chosen):
            return self
        kept = chosen[self.row]
        row = (np.cumsum(chosen) - 1)[self.row[kept]]
        lengths = np.diff(self.first, append=self.a.size)[chosen]
        first = np.cumsum(lengths) - lengths
        return RowEntries(self.number[chosen], self.a[kept], self.column[kept], row, first)

    def pass_on(
        self,
        a: FloatArray,
        side: FloatArray,
        ends: tuple[FloatArray, FloatArray],
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        """The bounds that rows a'x <= side imply for each column, given the least values of all others; in
        place.

        For one box or for N boxes: `ends` are the bounds of the entries' columns, (entries,) or (N, entries)
        each, and `lower` and `upper` have the same number of axes. Large contributions that cancel leave
        rounding errors, which a small entry would multiply.
        """
        least = a * np.where(a > 0.0, *ends)
        endless = np.isinf(least)
        ends_everywhere = not endless.any()
        finite = least if ends_everywhere else np.where(endless, 0.0, least)
        total = np.add.reduceat(finite, self.first, axis=-1)
        size = np.add.reduceat(np.abs(finite), self.first, axis=-1)
        noise = 2.0 * UNIT * (np.bincount(self.row) + 2) * size
        row, column, known = self.row, self.column, np.isfinite(side)[self.row]
        if not ends_everywhere:
            others = np.add.reduceat(endless, self.first, axis=-1, dtype=np.int64)[..., row] - endless
            known = (others == 0) & known
        useful = known.reshape(-1, a.size).any(axis=0)
        if not np.all(useful):
            known, a, row, column = known[..., useful], a[useful], row[useful], column[useful]
            finite = finite[..., useful]
        limit = (side[row] - (total[..., row] - finite)) / a
        room = PAD * np.maximum(1.0, np.abs(limit)) + noise[..., row] / np.abs(a)
        known = known & (np.abs(limit) < INFINITY)  # larger bounds are useless to engines
        above = a > 0.0
        most = np.where(known, limit + room, np.inf)[..., above]
        least = np.where(known, limit - room, -np.inf)[..., ~above]
        _best_per_column(np.minimum, upper, column[above], most)
        _best_per_column(np.maximum, lower, column[~above], least)


def _best_per_column(
    least_or_most: np.ufunc, bounds: FloatArray, column: IntArray, found: FloatArray
) -> None:
    """The least or the largest of bounds and of entries' results by column, in place."""
    if column.size:
        order = np.argsort(column, kind="stable")
        columns = column[order]
        first = np.flatnonzero(np.append(True, columns[1:] != columns[:-1]))
        columns = columns[first]
        ends = least_or_most.reduceat(found[..., order], first, axis=-1)
        bounds[..., columns] = least_or_most(bounds[..., columns], ends)


def least_cost(mip: Mip, lower: FloatArray, upper: FloatArray) -> float:
    """A lower bound of the cost between these bounds, without rows; rounded outward."""
    used = np.flatnonzero(mip.cost)
    cost = mip.cost[used]
    parts = cost * np.where(cost > 0.0, lower[used], upper[used])
    if not np.all(np.isfinite(parts)):
        return -math.inf
    parts -= 2.0 * UNIT * np.abs(parts)  # each product is rounded once
    total = math.fsum((*parts.tolist(), mip.offset))
    return total - 2.0 * UNIT * abs(total)


def tidy(mip: Mip, lower: FloatArray, upper: FloatArray) -> CrossedBounds | None:
    """Round bounds of integers; no bound is looser than the program's, and none cross. Where they crossed,
    the program's own are restored; returns a column without any value, if there is one."""
    whole = mip.integer
    lower[whole] = np.ceil(lower[whole] - TOLERANCE)
    upper[whole] = np.floor(upper[whole] + TOLERANCE)
    low, high, apart = common(mip.lower, mip.upper, lower, upper)
    empty = _first(np.arange(lower.size), apart, np.fmax(mip.lower, lower), np.fmin(mip.upper, upper))
    lower[:], upper[:] = low, high
    return empty


def _has_moved(
    before: tuple[FloatArray, FloatArray], after: tuple[FloatArray, FloatArray], moved: IntArray
) -> bool:
    """Whether a bound moved by more than justifies another pass."""
    with np.errstate(invalid="ignore"):  # the other bound may also be infinite
        return any(
            bool(np.any(np.abs(new[moved] - old[moved]) > MOVED * np.maximum(1.0, np.abs(new[moved]))))
            for old, new in zip(before, after, strict=True)
        )
