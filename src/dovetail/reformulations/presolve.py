"""One form for problems that are written in different ways: the presolve that the default method begins with.

A modeller may write bounds as rows, an equation as two inequalities, an output through a column of its own,
an integer as one binary for each value. The presolve takes all of that back:

    a x <= b                            a bound of x
    a'x >= 1 and 2 a'x <= 2             a'x = 1                               (`parallel_rows`)
    l <= a'x <= u that bounds imply     no row
    the same that other rows imply      no row                                (`implied_sides`)
    a row plus a multiple of an equation  the row alone                       (`sparser_rows`)
    u x + v d = c                       d is replaced by x, and its bounds become bounds of x
    z = a'x + b, nothing limits z       z is replaced, in the objective too
    a'x + s = b, s a slack              a row with two sides
    a >= s'x, and less of a is better   a = s'x, and a is replaced
    several such rows                   a has an upper bound: the most that one of them asks for
    x - w = p - q, p + q costs          p and q have upper bounds: one of them is 0
    x = x_1 + 2 x_2, nothing else       one column is their sum               (`duplicate_columns`)
    x = sum k b_k, sum b_k = 1          x is an integer, and the binaries go  (`states`)
    x = sum y_k, y_k >= y_(k+1)         the same

A column that a predictor reads or writes is never replaced, but for one that copies another: the predictor
then reads the original. The rules are applied until none changes anything. Each step that removes columns
keeps how they follow from those that are left (`_Step`), so that every point can be mapped back.

Bounds that are proved of the presolved problem hold for points that meet the rows exactly (`Scope.WRITTEN`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import UNIT, needed_ends, needed_pair_ends
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import HAIR, SMALLEST, TOLERANCE, Mip
from dovetail.core.problem import Problem
from dovetail.core.sparse import entries_of, row_of_entries, sums_of_others
from dovetail.core.words import several
from dovetail.reformulations.redundant import (
    PIVOT,
    JoinedColumn,
    duplicate_columns,
    implied_sides,
    parallel_rows,
    snapped,
    sparser_rows,
)
from dovetail.reformulations.reformulated import Reformulated, picked
from dovetail.reformulations.states import Regrouped, regrouped

CANCELLED = 64.0 * UNIT
"""Relative to the terms of a sum: smaller results are rounding."""


@dataclass(frozen=True)
class Presolve:
    """The presolve."""

    name = "presolve"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The simpler problem; None if no rule applies, or if the rows are contradictory."""
        problem = given.problem
        if not problem.blocks:
            return None
        form = _Form.of(problem)
        try:
            form.simplify()
        except (_ContradictionError, _UnusableError):  # a solve takes the rows as they are written
            return None
        if not form.changed or not form.cost.size:
            return None
        mip = problem.mip
        fewer = {"constraint": mip.n_rows - form.A.shape[0], "variable": mip.n_columns - form.cost.size}
        removed = " and ".join(several(count, what) for what, count in fewer.items() if count)
        note = f"{removed} removed" if removed else "limits removed, or variables found to be integer"
        return Reformulated(form.problem(problem), given, into=form.into, back=form.back, note=note)


class _ContradictionError(Exception):
    """Two rows or bounds contradict each other."""


class _UnusableError(Exception):
    """An entry becomes smaller than engines keep."""


@dataclass(frozen=True, eq=False)
class _Step:
    """A step that removed columns at once: columns before = onto @ z + constant."""

    onto: sp.csr_array
    constant: FloatArray
    into: sp.csr_array
    """z from the columns before."""
    joins: tuple[JoinedColumn, ...] = ()
    regrouped: tuple[tuple[IntArray, Regrouped], ...] = ()
    """The groups that were joined, with their places in z."""

    def back(self, z: FloatArray) -> FloatArray:
        """All columns before, from z."""
        x = np.asarray(self.onto @ z + self.constant)
        for join in reversed(self.joins):
            x[join.first], x[join.second] = join.parts(float(x[join.first]))
        for places, group in self.regrouped:
            x[group.members] = group.binaries(z[places])
        return x


def _blocks(
    shape: tuple[int, int],
    rows: IntArray,
    columns: IntArray,
    parts: list[tuple[IntArray, IntArray, FloatArray]],
) -> sp.csr_array:
    """A matrix with ones at these places, and dense blocks at given rows and columns."""
    at = [
        np.stack([rows, columns]),
        *(np.stack(np.meshgrid(i, j, indexing="ij")).reshape(2, -1) for i, j, _ in parts),
    ]
    values = np.concatenate([np.ones(rows.size), *(part.ravel() for _, _, part in parts)])
    made = sp.csr_array((values, tuple(np.concatenate(at, axis=1))), shape=shape)
    made.eliminate_zeros()
    return made


def _product(one: sp.csr_array, other: sp.csr_array) -> sp.csr_array:
    """A product of matrices, in which the rounding of a zero is 0."""
    size, made = sp.csr_array(abs(one) @ abs(other)), sp.csr_array(one @ other)
    made = sp.csr_array(made.multiply((abs(made) - CANCELLED * size) > 0.0))
    made.eliminate_zeros()
    made.sort_indices()
    if np.any(np.abs(made.data) < SMALLEST):
        raise _UnusableError
    return made


@dataclass(eq=False)
class _Form:
    """A problem during the presolve."""

    sign: float
    """1 when minimising, -1 when maximising."""
    cost: FloatArray
    offset: float
    A: sp.csr_array
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray
    inputs: list[IntArray]
    outputs: list[IntArray]
    kept: IntArray
    """(columns,) places among the original columns; for a sum, the place of its first column."""
    rows: IntArray
    """(rows,) places among the original rows."""
    steps: list[_Step] = field(default_factory=list)
    """The steps that removed columns, in order."""
    changed: bool = False

    @classmethod
    def of(cls, problem: Problem) -> _Form:
        """The unchanged problem."""
        mip, n = problem.mip, problem.mip.n_columns
        return cls(
            mip.sign, mip.cost.copy(), mip.offset, mip.A.copy(), mip.row_lower.copy(), mip.row_upper.copy(),
            mip.lower.copy(), mip.upper.copy(), mip.integer.copy(),
            [block.inputs for block in problem.blocks], [block.outputs for block in problem.blocks],
            np.arange(n), np.arange(mip.n_rows),
        )  # fmt: skip

    def simplify(self) -> None:
        """Apply all rules until none changes anything."""
        rules = (
            self._single_entries, self._implied_sides, self._parallel, self._implied_by_rows,
            self._tightened, self._limited, self._joined, self._replaced, self._regrouped,
            self._implied_integers, self._sparser,
        )  # fmt: skip
        goes_on = True
        while goes_on:
            goes_on = sum(rule() for rule in rules) > 0
            self.changed |= goes_on

    def back(self, z: FloatArray) -> FloatArray:
        """A point of the simple form as one of the original problem."""
        for step in reversed(self.steps):
            z = step.back(z)
        return z

    @property
    def into(self) -> sp.csr_array:
        """The columns of the simple form as sums of original columns."""
        into = self.steps[0].into if self.steps else picked(self.kept, self.kept.size)
        for step in self.steps[1:]:
            into = sp.csr_array(step.into @ into)
        return into

    def problem(self, given: Problem) -> Problem:
        """The simple form with the original predictors."""
        mip = given.mip
        names = None if mip.names is None else [mip.names[j] for j in self.kept]
        row_names = None if mip.row_names is None else [mip.row_names[i] for i in self.rows]
        decided = self.lower == self.upper  # bounds derived from contradictory rows are useless
        integer = np.where(decided, mip.integer[self.kept], self.integer)
        host = Mip(
            self.cost, self.A, self.row_lower, self.row_upper, self.lower, self.upper, integer,
            mip.sense, self.offset, names, row_names,
        )  # fmt: skip
        blocks = tuple(
            replace(block, inputs=inputs, outputs=outputs)
            for block, inputs, outputs in zip(given.blocks, self.inputs, self.outputs, strict=True)
        )
        return given.derived(host, blocks)

    # ---- rows

    def _single_entries(self) -> bool:
        """Rows with one entry beside fixed columns become bounds; rows without any are removed. A fixed
        output counts too, because its network is checked in any case."""
        decided = (self.lower == self.upper) & ~self._read_and_written()[1]
        rows, columns = row_of_entries(self.A), self.A.indices
        sizes = np.bincount(rows, ~decided[columns], self.A.shape[0])
        short = sizes <= 1
        if not short.any():
            return False
        settled = np.bincount(rows, np.where(decided, self.lower, 0.0)[columns] * self.A.data, short.size)
        low, high = self.row_lower - settled, self.row_upper - settled
        if np.any((sizes == 0) & ((low > HAIR) | (high < -HAIR))):
            raise _ContradictionError
        entries = np.flatnonzero((sizes[rows] == 1) & ~decided[columns])
        one, column, a = rows[entries], columns[entries], self.A.data[entries]
        room = np.where(self.integer[column], TOLERANCE, 0.0)  # within the tolerance of the check
        ends = np.sort([(low[one] - room) / a, (high[one] + room) / a], axis=0)
        whole = self.integer[column]
        ends[0, whole], ends[1, whole] = np.ceil(ends[0, whole] - HAIR), np.floor(ends[1, whole] + HAIR)
        np.maximum.at(self.lower, column, ends[0])
        np.minimum.at(self.upper, column, ends[1])
        self._meet()
        self._take_rows(~short)
        return True

    def _meet(self) -> None:
        """Bounds that cross by rounding alone become one number; others are contradictions."""
        crossed = self.lower > self.upper
        if np.any(crossed & (self.lower - self.upper > HAIR * np.maximum(1.0, np.abs(self.lower)))):
            raise _ContradictionError
        self.upper[crossed] = self.lower[crossed]

    def _implied_sides(self) -> bool:
        """Remove limits of rows that bounds imply; equations stay."""
        least, most = self._activity()
        low = np.isfinite(self.row_lower) & (least >= self.row_lower)
        high = np.isfinite(self.row_upper) & (most <= self.row_upper)
        equal = self.row_lower == self.row_upper
        return self._leave_out(low & (~equal | high), high & (~equal | low))

    def _leave_out(self, low: BoolArray, high: BoolArray) -> bool:
        """Remove lower and upper limits, and rows without any."""
        self.row_lower[low], self.row_upper[high] = -np.inf, np.inf
        free = np.isneginf(self.row_lower) & np.isposinf(self.row_upper)
        if free.any():
            self._take_rows(~free)
        return bool(low.any() or high.any() or free.any())

    def _implied_by_rows(self) -> bool:
        """Remove limits of rows that other rows imply."""
        return self._leave_out(*implied_sides(self.A, self.row_lower, self.row_upper))

    def _sparser(self) -> bool:
        """Subtract equations from rows that then have fewer entries; slacks are gone by then."""
        found = sparser_rows(self.A, self.row_lower == self.row_upper)
        if not found:
            return False
        rows, equations = np.array([one[:2] for one in found]).T
        factors, m = np.array([factor for _, _, factor in found]), self.A.shape[0]
        step = sp.csr_array(sp.eye_array(m) - sp.csr_array((factors, (rows, equations)), shape=(m, m)))
        shift = factors * self.row_lower[equations]
        self.row_lower[rows] -= shift
        self.row_upper[rows] -= shift
        self.A = _product(step, self.A)
        return True

    def _activity(self) -> tuple[FloatArray, FloatArray]:
        """(rows,) the range of each row's activity between the bounds."""
        rows, a, count = row_of_entries(self.A), self.A.data, self.A.shape[0]
        ends = np.sort([a * self.lower[self.A.indices], a * self.upper[self.A.indices]], axis=0)
        with np.errstate(invalid="ignore"):
            least, most = (np.bincount(rows, end, count).astype(float) for end in ends)
        return least, most

    def _parallel(self) -> bool:
        """Join parallel rows."""
        found = parallel_rows(self.A, self.row_lower, self.row_upper)
        if found is None:
            return False
        self.row_lower, self.row_upper = found.lower, found.upper
        self._take_rows(~found.joined)
        return True

    def _tightened(self) -> bool:
        """Turn a row into an equation if it is the only row that bounds a column from below and smaller
        values never hurt. The column has a nonnegative cost, no predictor uses it, and every other row allows
        smaller values. Then some optimal point satisfies the row with equality."""
        read, written = self._read_and_written()
        free = ~(read | written | self.integer) & (self.sign * self.cost >= 0.0)
        rows, columns, a = row_of_entries(self.A), self.A.indices, self.A.data
        low, high = np.isfinite(self.row_lower)[rows], np.isfinite(self.row_upper)[rows]
        keeps_up = np.where(a > 0.0, low, high)
        alone = free & (np.bincount(columns, keeps_up, self.cost.size) == 1)
        found = np.flatnonzero(keeps_up & alone[columns] & (low != high))
        used, made = np.zeros(self.cost.size, dtype=bool), False
        for k in found.tolist():
            i, j = int(rows[k]), int(columns[k])
            entries = slice(self.A.indptr[i], self.A.indptr[i + 1])
            if used[columns[entries]].any():
                continue
            side = self.row_lower[i] if low[k] else self.row_upper[i]
            others = np.flatnonzero(columns[entries] != j) + entries.start
            ends = a[others] * np.stack([self.lower[columns[others]], self.upper[columns[others]]])
            rest = ends.max(axis=0).sum() if low[k] else ends.min(axis=0).sum()  # leaves least to the column
            if (side - rest) / a[k] >= self.lower[j]:
                self.row_lower[i] = self.row_upper[i] = side
                used[columns[entries]] = made = True
        return made

    def _limited(self) -> bool:
        """Bound columns without a bound of which a smaller or larger value is never worse (see
        `needed_ends`)."""
        read, written = self._read_and_written()
        free = ~(read | written | self.integer)
        program = self.A, (self.row_lower, self.row_upper), self.sign * self.cost
        single = needed_ends(*program, free, self.lower, self.upper)
        return needed_pair_ends(*program, free, self.lower, self.upper) or single

    def _take_rows(self, kept: BoolArray) -> None:
        self.A = sp.csr_array(self.A[kept])
        self.row_lower, self.row_upper = self.row_lower[kept], self.row_upper[kept]
        self.rows = self.rows[kept]

    # ---- columns

    def _read_and_written(self) -> tuple[BoolArray, BoolArray]:
        """(columns,) which columns predictors read, and which they write."""
        read, written = np.zeros((2, self.cost.size), dtype=bool)
        for inputs, outputs in zip(self.inputs, self.outputs, strict=True):
            read[inputs], written[outputs] = True, True
        return read, written

    def _replaced(self) -> bool:
        """Substitute columns that an equation defines, and fixed columns."""
        found = list(_Definitions(self).found())
        if not found:
            return False
        for one in found:
            if one.alias is not None:
                self._read_instead(one.column, one.alias)
        n, gone = self.cost.size, np.zeros(self.cost.size, dtype=bool)
        gone[[one.column for one in found]] = True
        place = np.cumsum(~gone) - 1
        rows = [np.flatnonzero(~gone), *(np.full(one.others.size, one.column) for one in found)]
        columns = [place[~gone], *(place[one.others] for one in found)]
        values = [np.ones(n - len(found)), *(one.factors for one in found)]
        shape = (n, n - len(found))
        step = sp.csr_array(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape
        )
        constant = np.zeros(n)
        constant[[one.column for one in found]] = [one.constant for one in found]
        self._substitute(_Step(step, constant, picked(np.flatnonzero(~gone), n)), ~gone)
        used = [one.row for one in found if one.row >= 0]
        self._take_rows(~np.isin(np.arange(self.A.shape[0]), used))
        self._meet()
        return True

    def _read_instead(self, copy: int, original: int) -> None:
        """Let predictors read the original instead of a copy."""
        self.inputs = [np.where(columns == copy, original, columns) for columns in self.inputs]

    def _substitute(self, step: _Step, kept: BoolArray) -> None:
        """Remove columns, in all rows and in the objective."""
        onto, constant = step.onto, step.constant
        self.offset += float(self.cost @ constant)
        self.cost = np.asarray(onto.T @ self.cost)
        shift = self.A @ constant
        self.row_lower, self.row_upper = self.row_lower - shift, self.row_upper - shift
        self.A = _product(self.A, onto)
        self.steps.append(step)
        self.lower, self.upper, self.integer = self.lower[kept], self.upper[kept], self.integer[kept]
        self.kept = self.kept[kept]
        place = np.cumsum(kept) - 1
        self.inputs = [place[columns] for columns in self.inputs]
        self.outputs = [place[columns] for columns in self.outputs]

    def _joined(self) -> bool:
        """Join columns with proportional entries if this is exact."""
        read, written = self._read_and_written()
        free = ~(read | written)
        joins = duplicate_columns(self.A, self.cost, free, (self.lower, self.upper), self.integer)
        if not joins:
            return False
        n, gone = self.cost.size, np.zeros(self.cost.size, dtype=bool)
        part_of, by = np.arange(n), np.ones(n)
        for join in reversed(joins):  # a sum may be part of another sum
            gone[join.second] = True
            part_of[join.second], by[join.second] = part_of[join.first], by[join.first] * join.ratio
        place = np.cumsum(~gone) - 1
        into = sp.csr_array((by, (place[part_of], np.arange(n))), shape=(n - len(joins), n))
        onto = sp.csr_array(picked(np.flatnonzero(~gone), n).T)
        self._substitute(_Step(onto, np.zeros(n), into, tuple(joins)), ~gone)
        self._bound_binaries(np.unique(place[part_of[gone]]))
        return True

    def _bound_binaries(self, sums: IntArray) -> None:
        """Bound integers among these columns by rows: the sum of binaries of which one is 1 is a binary."""
        rows = row_of_entries(self.A)
        for k in np.flatnonzero(np.isin(self.A.indices, sums[self.integer[sums]])).tolist():
            i, j, a = int(rows[k]), int(self.A.indices[k]), float(self.A.data[k])
            columns, entries = entries_of(self.A, i)
            others = columns[columns != j]
            ends = entries[columns != j] * np.stack([self.lower[others], self.upper[others]])
            low, high = self.row_lower[i] - TOLERANCE, self.row_upper[i] + TOLERANCE
            low, high = np.sort([(low - ends.max(axis=0).sum()) / a, (high - ends.min(axis=0).sum()) / a])
            self.lower[j] = max(self.lower[j], np.ceil(low - HAIR))
            self.upper[j] = min(self.upper[j], np.floor(high + HAIR))
        self._meet()

    def _regrouped(self) -> bool:
        """Give binaries of which one is 1, or that are ordered, one form (see `states`)."""
        read, written = self._read_and_written()
        binary = self.integer & (self.lower == 0.0) & (self.upper == 1.0) & ~(read | written)
        found = regrouped(self.A, self.cost, (self.row_lower, self.row_upper), binary)
        if not found:
            return False
        n = self.cost.size
        same, kept = np.ones((2, n), dtype=bool)
        constant = np.zeros(n)
        for one in found:
            same[one.members], kept[one.members] = False, False
            kept[one.stays] = True
            constant[one.members] = one.constant
            self.lower[one.stays], self.upper[one.stays] = one.least, one.most
            self._at_most_one(one)
        place = np.cumsum(kept) - 1
        left = np.flatnonzero(same)
        onto = _blocks(
            (n, kept.sum()), left, place[left], [(o.members, place[o.stays], o.onto) for o in found]
        )
        into = _blocks(
            (kept.sum(), n), place[left], left, [(place[o.stays], o.members, o.into) for o in found]
        )
        gone = {i for one in found for i in one.rows} - {one.at_most_one for one in found}
        self._take_rows(~np.isin(np.arange(self.A.shape[0]), list(gone)))
        groups = tuple((place[one.stays], one) for one in found)
        self._substitute(_Step(onto, constant, into, regrouped=groups), kept)
        return True

    def _at_most_one(self, group: Regrouped) -> None:
        """Relax a row of a group so that it limits the first member only."""
        if group.at_most_one is not None:
            entries = slice(self.A.indptr[group.at_most_one], self.A.indptr[group.at_most_one + 1])
            self.A.data[entries] = self.A.indices[entries] == group.members[0]
            self.row_lower[group.at_most_one], self.row_upper[group.at_most_one] = -np.inf, 1.0

    def _implied_integers(self) -> bool:
        """Mark continuous columns as integers if an equation over integers makes them whole."""
        _, written = self._read_and_written()
        rows = row_of_entries(self.A)
        broken = np.bincount(rows, ~self.integer[self.A.indices], self.A.shape[0])
        found = False
        for i in np.flatnonzero((broken == 1) & (self.row_lower == self.row_upper)):
            columns, a = entries_of(self.A, i)
            broken_here = np.flatnonzero(~self.integer[columns])
            if not broken_here.size:  # another equation has made the column whole
                continue
            place = int(broken_here[0])
            ratios = snapped(np.append(a, self.row_lower[i]) / a[place])
            if not written[columns[place]] and np.all(ratios == np.round(ratios)):
                self.integer[columns[place]] = found = True
        return found


@dataclass(frozen=True, eq=False)
class _Definition:
    """column = factors @ others + constant, by one row."""

    column: int
    others: IntArray
    factors: FloatArray
    constant: float
    row: int
    """-1 where the row stays: it says something of the others."""
    alias: int | None = None
    """The column that predictors read instead of this one."""


def _finite(values: FloatArray) -> FloatArray:
    return np.where(np.isfinite(values), values, 0.0)


class _Definitions:
    """Columns that can be replaced at the same time: none is in the definition of another."""

    def __init__(self, form: _Form) -> None:
        self._form = form
        self._read, self._written = form._read_and_written()
        self._rows_of = np.bincount(form.A.indices, minlength=form.cost.size)
        self._gone = np.zeros(form.cost.size, dtype=bool)
        """Columns that are replaced in this round."""
        self._used = np.zeros(form.cost.size, dtype=bool)
        """Columns that others are replaced by."""
        self._moved = np.zeros(form.cost.size, dtype=bool)
        """Columns whose bounds have changed."""

    def found(self) -> Iterator[_Definition]:
        """All replaceable columns; the bounds of the others are tightened on the way."""
        form = self._form
        nobody = ~(self._read | self._written)
        for j in np.flatnonzero(nobody & (form.lower == form.upper) & (form.cost.size > 1)):
            if form.integer[j] and abs(form.lower[j] - np.round(form.lower[j])) > TOLERANCE:
                raise _ContradictionError
            self._gone[j] = True
            none = np.zeros(0, dtype=np.intp)
            yield _Definition(int(j), none, np.zeros(0), float(form.lower[j]), -1)
        for j in np.flatnonzero(nobody & ~self._gone & (self._rows_of == 0) & (form.cost == 0.0)):
            self._gone[j] = True  # any value will do
            none, least = np.zeros(0, dtype=np.intp), max(0.0, float(np.ceil(form.lower[j])))
            value = least if form.integer[j] else float(np.clip(0.0, form.lower[j], form.upper[j]))
            yield _Definition(int(j), none, np.zeros(0), min(value, float(form.upper[j])), -1)
        sizes = np.diff(form.A.indptr)
        may_define = self._may_define() | (sizes == 2)
        for i in np.flatnonzero((form.row_lower == form.row_upper) & (sizes >= 2)).tolist():
            columns, a = entries_of(form.A, i)
            if not (may_define[i] or self._moved[columns].any()) or self._gone[columns].any():
                continue
            made = self._of_two(i, columns, a) if columns.size == 2 else None
            made = made or self._free(i, columns, a) or self._slack(i, columns, a)
            if made is not None:
                self._gone[made.column], self._used[made.others] = True, True
                yield made

    def _may_define(self) -> BoolArray:
        """(rows,) which rows have a slack, or a column that they may limit at least as much as its bounds do:
        the others need not be examined one by one. Sums are taken with room for rounding."""
        form, A = self._form, self._form.A
        rows, d, a, count = row_of_entries(A), A.indices, A.data, A.shape[0]
        free = ~(form.integer | self._read | self._written)[d]
        ends = np.sort([a * form.lower[d], a * form.upper[d]], axis=0)
        rest = sums_of_others(ends[0], rows, count, -np.inf), sums_of_others(ends[1], rows, count)
        side = _finite(form.row_lower)  # of equations
        low, high = np.sort([(side[rows] - one) / a for one in rest], axis=0)
        size = np.bincount(rows, _finite(np.abs(ends)).max(axis=0), count) + np.abs(side)
        room = CANCELLED * size[rows] / np.abs(a)
        limits = (low + room >= form.lower[d]) & (high - room <= form.upper[d])
        slack = (self._rows_of[d] == 1) & (form.cost[d] == 0.0)
        return np.asarray(np.bincount(rows, free & (limits | slack), count) > 0)

    def _of_two(self, i: int, columns: IntArray, a: FloatArray) -> _Definition | None:
        """u x + v d = c: one of them, with its bounds passed on to the other."""
        form = self._form
        order = sorted(
            (0, 1),
            key=lambda k: (self._read[columns[k]], form.integer[columns[k]], self._rows_of[columns[k]]),
        )
        for k in order:
            d, x = int(columns[k]), int(columns[1 - k])
            factor, constant = snapped(np.array([-a[1 - k], form.row_lower[i]]) / a[k]).tolist()
            whole = abs(factor) == 1.0 and constant == np.round(constant)
            if (form.integer[d] and not whole) or not self._replaceable(d, x, factor, constant):
                continue
            ends = np.sort([(form.lower[d] - constant) / factor, (form.upper[d] - constant) / factor])
            form.lower[x], form.upper[x] = max(form.lower[x], ends[0]), min(form.upper[x], ends[1])
            form.integer[x] |= form.integer[d]
            self._moved[x] = True
            alias = x if self._read[d] else None
            return _Definition(d, np.array([x]), np.array([factor]), float(constant), int(i), alias)
        return None

    def _replaceable(self, d: int, x: int, factor: float, constant: float) -> bool:
        """Whether no predictor knows d, or d copies x and predictors can read x as well."""
        if self._written[d] or self._used[d]:
            return False
        if not self._read[d]:
            return True
        if factor != 1.0 or constant != 0.0 or self._written[x] or self._used[x]:
            return False
        return not any(
            np.any((inputs == d).any(axis=1) & (inputs == x).any(axis=1)) for inputs in self._form.inputs
        )

    def _free(self, i: int, columns: IntArray, a: FloatArray) -> _Definition | None:
        """A column that only this row limits, so that the other rows can do without it."""
        form = self._form
        least, most = np.sort([a * form.lower[columns], a * form.upper[columns]], axis=0)
        for k in np.flatnonzero(np.abs(a) >= PIVOT * np.abs(a).max()):
            d = int(columns[k])
            if form.integer[d] or self._read[d] or self._written[d] or self._used[d]:
                continue
            more = self._rows_of[d] - 1
            if (columns.size - 1) * more > more + columns.size:
                continue
            rest = np.delete(np.arange(columns.size), k)
            ends = np.sort((form.row_lower[i] - np.array([least[rest].sum(), most[rest].sum()])) / a[k])
            if ends[0] >= form.lower[d] and ends[1] <= form.upper[d]:
                return self._by_row(i, columns, a, int(k), int(i))
        return None

    def _slack(self, i: int, columns: IntArray, a: FloatArray) -> _Definition | None:
        """A column of this row alone without cost: its bounds become the sides of the row."""
        form = self._form
        for k in np.flatnonzero((self._rows_of[columns] == 1) & (form.cost[columns] == 0.0)):
            d = int(columns[k])
            if form.integer[d] or self._read[d] or self._written[d] or self._used[d]:
                continue
            made = self._by_row(i, columns, a, int(k), -1)
            # in units of the slack, if they are larger: the check tolerates the same amount in both
            unit = max(1.0, 1.0 / abs(a[k]))
            ends = np.sort(-unit * a[k] * np.array([form.lower[d], form.upper[d]]))
            entries = slice(form.A.indptr[i], form.A.indptr[i + 1])
            form.A.data[entries] *= unit
            form.A.data[entries.start + int(k)] = 0.0
            form.row_lower[i] = form.row_upper[i] = form.row_lower[i] * unit
            form.row_lower[i] += ends[0]
            form.row_upper[i] += ends[1]
            return made
        return None

    def _by_row(self, i: int, columns: IntArray, a: FloatArray, k: int, row: int) -> _Definition:
        others = np.delete(columns, k)
        factors = -np.delete(a, k) / a[k]
        return _Definition(int(columns[k]), others, factors, float(self._form.row_lower[i] / a[k]), row)
