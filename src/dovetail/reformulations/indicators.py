"""Indicator constraints ("if the binary is 1, this row holds") as rows with a big M, or as blocks.

The indicators of every tool are converted to one form here. M is the largest violation of the row when it is
switched off: from the box, or, if that is infinite, from the LP relaxation. Both are proved for all points
that the check accepts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from dovetail.bounds.box import UNIT, Box
from dovetail.bounds.safe_lp import SafeLp
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import ModelError
from dovetail.core.mip import HAIR, INFINITY, SMALLEST, TOLERANCE, Mip
from dovetail.core.problem import Problem
from dovetail.core.special_constraints import Indicator
from dovetail.reformulations.reformulated import FillColumns, Reformulated
from dovetail.reformulations.writer import Writer
from dovetail.run.budget import Budget

LARGEST_M = 1e9
"""With a larger M, a row that must hold to 1e-6 exceeds the digits of a float."""

FAIR_M = 1e5
"""A larger M is worth an LP: with a binary that is off by 1e-6 the row may be violated by M times that, and
propagated boxes may be far too wide."""

MOST_PROGRAMS = 50
"""Largest number of LPs for missing or large limits, because each takes seconds in a large model. They are
limited by the time limit only, so that a model has the same columns in every solve."""


@dataclass(frozen=True)
class IndicatorRows:
    """The reformulation. Indicators are not part of a `Problem`, so this object holds them."""

    indicators: tuple[Indicator, ...]
    budget: Budget = field(default_factory=Budget, compare=False)
    """The budget of the whole solve."""
    name = "indicators"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with the indicators in it; its box must contain every point that the check accepts.
        Rows are appended, and one column for each block, so that proofs for the new problem hold for the
        model."""
        if not self.indicators:
            return None
        problem = given.problem
        mip, left = with_indicators(problem.mip, self.indicators, given.box, self.budget)
        written = problem.derived(mip, problem.blocks)
        for indicator in left:
            _add_block(written, indicator)
        return Reformulated(written, given, (lambda x: np.zeros(len(left)),))


def with_indicators(
    mip: Mip, indicators: Sequence[Indicator], box: Box, budget: Budget
) -> tuple[Mip, tuple[Indicator, ...]]:
    """`mip` with the indicators as rows at its end, and the indicators without a finite M."""
    sides = OneSidedRows.of(mip, indicators, box)
    M = np.where(sides.always, 0.0, _big_m(sides.most(box) - sides.limit))
    small = M <= FAIR_M
    mip = _appended(mip, indicators, sides.some(small), M[small])
    if np.all(small):
        return mip, ()
    sides, M = sides.some(~small), M[~small]
    relaxation = _ActivityBounds(mip, box)
    for k in np.argsort(-M, kind="stable")[:MOST_PROGRAMS]:  # rows without any M come first
        M[k] = min(M[k], _big_m(relaxation.most(sides, k, budget) - sides.limit[k]))
    limited = M <= LARGEST_M
    left = np.unique(sides.indicator[~limited])
    return _appended(mip, indicators, sides.some(limited), M[limited]), tuple(indicators[k] for k in left)


def _big_m(excess: FloatArray | float) -> FloatArray:
    """The M of each row; 0 for rows that hold when they are switched off, within the tolerance."""
    return np.where(excess <= TOLERANCE + HAIR, 0.0, excess)


def _appended(mip: Mip, indicators: Sequence[Indicator], sides: OneSidedRows, M: FloatArray) -> Mip:
    """`mip` with C x <= limit + M [switched off] for each side."""
    if not sides.count:
        return mip
    # switched on by 1: C x + M b <= limit + M; switched on by 0: C x - M b <= limit
    switch = sp.csr_array(
        (np.where(sides.active == 1.0, M, -M), sides.binary, np.arange(sides.count + 1)),
        shape=sides.C.shape,
    )
    rows = sides.C + switch
    rows.data[np.abs(rows.data) < SMALLEST] = 0.0  # a binary in its own row: M and its entry may cancel
    rows.eliminate_zeros()
    limit = np.where(sides.active == 1.0, sides.limit + M, sides.limit)
    names = [indicators[k].name for k in sides.indicator]
    named = mip.row_names is not None or any(names)
    return mip.with_rows(rows, np.full(sides.count, -np.inf), limit, names if named else None)


class _ActivityBounds:
    """The largest activity of a row over the LP relaxation, if the box does not bound it."""

    def __init__(self, mip: Mip, box: Box) -> None:
        self._box = box
        self._lp = SafeLp(replace(mip.minimised().loosened(), lower=box.lower, upper=box.upper))

    def most(self, sides: OneSidedRows, k: int, budget: Budget) -> float:
        """The largest C x of side k while it is switched off; infinite if unbounded or if the time is
        over."""
        lower, upper = self._box.lower.copy(), self._box.upper.copy()
        lower[sides.binary[k]] = upper[sides.binary[k]] = 1.0 - sides.active[k]
        answer = self._lp.minimise(-sides.C[[k]].toarray()[0], 0.0, budget, (lower, upper))
        return -answer.bound  # -infinity if the row can never be switched off


def _add_block(problem: Problem, indicator: Indicator) -> None:
    """An indicator without a finite M, as a block whose output must be 0."""
    taken = {block.name for block in problem.blocks}
    name = f"indicator {indicator.name or len(problem.blocks)}"
    name = name if name not in taken else f"{name}#{len(taken)}"
    nothing = np.zeros(1)
    (output,) = problem.add_columns(nothing, nothing, np.zeros(1, dtype=bool), [name])
    inputs = np.array([indicator.binary, *indicator.columns])
    problem.add_predictor(IndicatorViolation(indicator), inputs, [output], name=name)


class IndicatorViolation(nn.Module):
    """(binary, columns) -> the violation of lower <= coefficients'x <= upper, or 0 if it is off."""

    coefficients: Tensor

    def __init__(self, indicator: Indicator) -> None:
        super().__init__()
        self._active, self._lower, self._upper = indicator.active, indicator.lower, indicator.upper
        self.register_buffer("coefficients", torch.tensor(indicator.coefficients, dtype=torch.float64))

    def forward(self, rows: Tensor) -> Tensor:
        """One row per sample."""
        on = rows[:, 0] if self._active else 1.0 - rows[:, 0]
        activity = rows[:, 1:] @ self.coefficients
        missing = torch.zeros_like(activity)
        if self._upper < float("inf"):
            missing = missing + torch.relu(activity - self._upper)
        if self._lower > -float("inf"):
            missing = missing + torch.relu(self._lower - activity)
        return (on * missing)[:, None]


@dataclass(frozen=True, eq=False)
class OneSidedRows:
    """Rows C x <= limit that hold if their binary is `active`."""

    C: sp.csr_array
    limit: FloatArray
    binary: IntArray
    active: FloatArray
    always: BoolArray
    """Whether the binary is active at every point, so that the row needs no M."""
    indicator: IntArray
    """The indicator of each row."""

    @classmethod
    def of(cls, mip: Mip, indicators: Sequence[Indicator], box: Box) -> OneSidedRows:
        """The rows of indicators; a `ModelError` if no binary switches one."""
        binary = np.array([indicator.binary for indicator in indicators], dtype=np.int64)
        active = np.array([indicator.active for indicator in indicators], dtype=np.float64)
        _require_binaries(mip, indicators, binary)
        C = _coefficients(mip, indicators)
        upper = np.array([indicator.upper for indicator in indicators], dtype=np.float64)
        lower = np.array([indicator.lower for indicator in indicators], dtype=np.float64)
        lower[lower <= -INFINITY], upper[upper >= INFINITY] = -np.inf, np.inf
        can_be_0, can_be_1 = box.lower[binary] <= 0.0, box.upper[binary] >= 1.0
        always = np.where(active == 1.0, ~can_be_0, ~can_be_1)
        never = np.where(active == 1.0, ~can_be_1, ~can_be_0)
        both = cls(
            sp.vstack([C, -C], format="csr"),
            np.concatenate([upper, -lower]),
            np.tile(binary, 2),
            np.tile(active, 2),
            np.tile(always, 2),
            np.tile(np.arange(len(indicators)), 2),
        )
        return both.some(np.flatnonzero((both.limit < np.inf) & ~np.tile(never, 2)))

    def some(self, which: IntArray | BoolArray) -> OneSidedRows:
        """Some of the rows."""
        return OneSidedRows(
            self.C[which],
            self.limit[which],
            self.binary[which],
            self.active[which],
            self.always[which],
            self.indicator[which],
        )

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.limit.size)

    def most(self, box: Box) -> FloatArray:
        """The largest C x over the box while the row is switched off, with rounding added."""
        own = np.repeat(self.binary, np.diff(self.C.indptr)) == self.C.indices
        row = np.repeat(np.arange(self.count), np.diff(self.C.indptr))
        best = np.where(self.C.data > 0, box.upper[self.C.indices], box.lower[self.C.indices])
        best[own] = 1.0 - self.active[row[own]]
        parts = self.C.data * best
        total = np.bincount(row, parts, minlength=self.count)
        sizes = np.bincount(row, np.abs(parts), minlength=self.count)
        return np.asarray(total + 2.0 * UNIT * (np.diff(self.C.indptr) + 2) * sizes, dtype=np.float64)


def _require_binaries(mip: Mip, indicators: Sequence[Indicator], binary: IntArray) -> None:
    sound = mip.integer[binary] & (mip.lower[binary] > -1.0) & (mip.upper[binary] < 2.0)
    for k in np.flatnonzero(~sound)[:1]:
        j = int(binary[k])
        kind = "integer" if mip.integer[j] else "continuous"
        raise ModelError(
            f"indicator constraint {indicators[k].name}: {mip.column_name(j)} is {kind} with bounds "
            f"[{mip.lower[j]:g}, {mip.upper[j]:g}]; only a binary variable can switch a constraint on."
        )


def _coefficients(mip: Mip, indicators: Sequence[Indicator]) -> sp.csr_array:
    sizes = [len(indicator.columns) for indicator in indicators]
    columns = np.fromiter((j for i in indicators for j in i.columns), dtype=np.int64, count=sum(sizes))
    data = np.fromiter((c for i in indicators for c in i.coefficients), dtype=np.float64, count=sum(sizes))
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    C = sp.csr_array((data, columns, indptr), shape=(len(indicators), mip.n_columns))
    C.sum_duplicates()
    C.eliminate_zeros()
    return C


LONGEST = 64
"""Rows and definitions with more entries are left alone."""
MOST_PRODUCTS = 20_000
"""With more products the program stays unchanged."""
SLACK = 1e-9
"""The tolerance up to which one row implies another, times the size of what is compared."""

Terms = dict[int, float]
"""Coefficients by column."""
Pair = tuple[int, int]
"""p and z of a product."""


@dataclass(frozen=True)
class _IndicatorRow:
    """terms'x <= limit."""

    place: int
    terms: Terms
    limit: float


@dataclass(frozen=True)
class _Switched:
    """h'x + g'z <= limit if p = 1; h'x <= off if p = 0, for every z."""

    place: int
    p: int
    h: Terms
    g: Terms
    limit: float
    off: float


@dataclass(frozen=True)
class IndicatorProducts:
    """Products of binaries and columns in rows that a binary switches on."""

    name = "indicator products"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with products in its switched rows, or None if there are none."""
        mip = given.problem.mip
        switches = _Switches(mip, given.original.mip.n_columns)
        found = switches.switched()
        pairs = sorted({(row.p, z) for row in found for z in row.g})
        if not found or len(pairs) > MOST_PRODUCTS:
            return None
        writer = Writer(mip.n_columns)
        product = _products(mip, writer, pairs)
        for row in found:
            terms = {**row.h, **{product[row.p, z]: g for z, g in row.g.items()}, row.p: row.off - row.limit}
            writer.row(list(terms), np.array(list(terms.values())), -np.inf, row.off)
        kept = np.ones(mip.n_rows, dtype=bool)
        kept[[row.place for row in found]] = False
        kept[switches.implied(found)] = False
        shorter = replace(
            mip, A=mip.A[kept], row_lower=mip.row_lower[kept], row_upper=mip.row_upper[kept], row_names=None
        )
        problem = given.problem.derived(writer.extend(shorter), given.problem.blocks)
        return Reformulated(problem, given, (_fill(pairs),))


def _fill(pairs: list[Pair]) -> FillColumns:
    p, z = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return lambda known: np.asarray(np.round(known[p]) * known[z])


class _Switches:
    """What a program's rows say about its binaries."""

    def __init__(self, mip: Mip, first: int) -> None:
        self._mip = mip
        self._lengths = np.diff(mip.A.indptr)
        self._rows = _rows(mip)
        self._binary = _binary(mip)
        chosen = mip.integer | (np.arange(mip.n_columns) >= first)
        self._loose = ~chosen & (mip.lower < mip.upper)
        """Continuous columns that a row may define, without those that tables added."""

    @cached_property
    def _pairs(self) -> list[_IndicatorRow]:
        """Rows a x + b p <= r."""
        return list(self._short_rows(np.flatnonzero(self._lengths == 2)))

    def switched(self) -> list[_Switched]:
        """One entry per row that a binary switches and that reads a defined column."""
        definitions = self._definitions()
        row, column = self._rows, self._mip.A.indices
        reading = np.intersect1d(row[np.isin(column, list(definitions))], row[self._binary[column]])
        candidates = list(self._short_rows(reading))
        off = self._limits_where_off() if candidates else {}
        switched = (self._switch(candidate, definitions, off) for candidate in candidates)
        return [found for found in switched if found is not None]

    def implied(self, found: list[_Switched]) -> IntArray:
        """Rows a x + b p <= r that a switched row with products implies, because it does so at p = 0 and
        1."""
        by_columns: dict[tuple[int, int, bool], list[_Switched]] = defaultdict(list)
        for row in found:
            if len(row.h) == 1:
                ((x, h),) = row.h.items()
                by_columns[row.p, x, h > 0].append(row)
        places = []
        for pair in self._pairs:
            for p, x in (tuple(pair.terms), tuple(pair.terms)[::-1]):
                a, b = pair.terms[x], pair.terms[p]
                for row in by_columns.get((p, x, a > 0), ()):
                    scale = a / row.h[x]
                    most = scale * (row.limit + self._largest_activity({z: -g for z, g in row.g.items()}))
                    if _is_within(scale * row.off, pair.limit) and _is_within(most, pair.limit - b):
                        places.append(pair.place)
        return np.array(places, dtype=np.int64)

    def _short_rows(self, places: IntArray) -> Iterator[_IndicatorRow]:
        """Those rows with one limit and few entries, as terms'x <= limit."""
        mip = self._mip
        for i in places[self._lengths[places] <= LONGEST]:
            low, high = mip.row_lower[i], mip.row_upper[i]
            if np.isfinite(low) == np.isfinite(high):
                continue
            sign = 1.0 if np.isfinite(high) else -1.0
            yield _IndicatorRow(int(i), self._terms(int(i), sign), float(high if sign > 0 else -low))

    def _terms(self, i: int, sign: float = 1.0) -> Terms:
        A = self._mip.A
        entries = slice(A.indptr[i], A.indptr[i + 1])
        return dict(zip(A.indices[entries].tolist(), (sign * A.data[entries]).tolist(), strict=True))

    def _definitions(self) -> dict[int, tuple[float, Terms]]:
        """y = constant + terms'z, from rows with one unbounded column among bounded ones."""
        mip = self._mip
        count = np.bincount(self._rows, self._loose[mip.A.indices], mip.n_rows)
        equal = (mip.row_lower == mip.row_upper) & (count == 1) & (self._lengths <= LONGEST)
        found: dict[int, tuple[float, Terms]] = {}
        for i in np.flatnonzero(equal):
            terms = self._terms(int(i))
            y = next(j for j in terms if self._loose[j])
            scale = terms.pop(y)
            bounded = all(np.isfinite(mip.lower[z]) and np.isfinite(mip.upper[z]) for z in terms)
            if bounded and abs(scale) >= 1e-3 * max(map(abs, terms.values()), default=0.0):
                found[y] = (float(mip.row_lower[i]) / scale, {z: -a / scale for z, a in terms.items()})
        return found

    def _limits_where_off(self) -> dict[Pair, tuple[float, float]]:
        """Bounds of x at p = 0, from rows a x + b p <= r, by (p, x)."""
        limits: dict[Pair, tuple[float, float]] = {}
        for pair in self._pairs:
            for p, x in (tuple(pair.terms), tuple(pair.terms)[::-1]):
                if self._binary[p]:
                    low, high = limits.get((p, x), (-np.inf, np.inf))
                    a = pair.terms[x]
                    limit = pair.limit / a
                    limits[p, x] = (low, min(high, limit)) if a > 0 else (max(low, limit), high)
        return limits

    def _switch(
        self,
        row: _IndicatorRow,
        definitions: dict[int, tuple[float, Terms]],
        off: dict[Pair, tuple[float, float]],
    ) -> _Switched | None:
        """The row with definitions inserted, if a binary switches it."""
        terms, choices, limit = dict(row.terms), set[int](), row.limit
        for y in [y for y in row.terms if y in definitions]:
            constant, of = definitions[y]
            share = terms.pop(y)
            limit -= share * constant
            for z, slope in of.items():
                terms[z] = terms.get(z, 0.0) + share * slope
                choices.add(z)
        terms = {j: a for j, a in terms.items() if abs(a) >= SMALLEST}
        for p in [j for j in row.terms if self._binary[j] and j in terms]:
            g = {z: a for z, a in terms.items() if z in choices and z != p}
            h = {x: a for x, a in terms.items() if x not in choices and x != p}
            most = self._largest_activity(h, {x: off[p, x] for x in h if (p, x) in off})
            if np.isfinite(most) and _is_within(most + self._largest_activity(g), limit):
                return _Switched(row.place, p, h, g, limit - terms[p], most)
        return None

    def _largest_activity(self, terms: Terms, within: dict[int, tuple[float, float]] | None = None) -> float:
        """The largest terms'x between bounds, and `within` if given."""
        total = 0.0
        for x, a in terms.items():
            low, high = (within or {}).get(x, (-np.inf, np.inf))
            low, high = max(low, self._mip.lower[x]), min(high, self._mip.upper[x])
            total += a * (high if a > 0 else low)
        return float(total)


def _products(mip: Mip, writer: Writer, pairs: list[Pair]) -> dict[Pair, int]:
    """Columns w = p z for each pair, with rows that make them exact at integer p."""
    low, high = mip.lower, mip.upper
    z_of = np.array([z for _, z in pairs], dtype=np.int64)
    columns = writer.columns(np.minimum(low[z_of], 0.0), np.maximum(high[z_of], 0.0))
    product = dict(zip(pairs, columns.tolist(), strict=True))
    for (p, z), w in product.items():
        if high[z] != 0.0:
            writer.row([w, p], np.array([1.0, -high[z]]), -np.inf, 0.0)
        if low[z] != 0.0:
            writer.row([w, p], np.array([1.0, -low[z]]), 0.0, np.inf)
    for p, choices in _complete_groups(mip, pairs):
        writer.row([*(product[p, z] for z in choices), p], np.append(np.ones(len(choices)), -1.0), 0.0, 0.0)
    for members, z, complete in _together(mip, pairs):
        all_w = [product[p, z] for p in members]
        ones = np.ones(len(all_w))
        if complete:
            writer.row([*all_w, z], np.append(ones, -1.0), 0.0, 0.0)
            continue
        for limit, sides in ((high[z], (-high[z], np.inf)), (low[z], (-np.inf, -low[z]))):
            writer.row([*all_w, *members, z], np.concatenate([ones, -limit * ones, [-1.0]]), *sides)
    return product


def _together(mip: Mip, pairs: list[Pair]) -> Iterator[tuple[list[int], int, bool]]:
    """Groups of binaries of which at most one is 1, with a z that all have products with; True if one must
    be 1. Every pair is in at least one group."""
    by_p: dict[int, set[int]] = defaultdict(set)
    for p, z in pairs:
        by_p[p].add(z)
    alone = set(pairs)
    for members, exactly in _sets(mip, by_p):
        for z in sorted(set().union(*(by_p.get(p, set()) for p in members))):
            together = [p for p in members if z in by_p.get(p, ())]
            if len(together) > 1:
                yield together, z, exactly and len(together) == len(members)
                alone -= {(p, z) for p in together}
    for p, z in sorted(alone):
        yield [p], z, False


def _complete_groups(mip: Mip, pairs: list[Pair]) -> Iterator[tuple[int, list[int]]]:
    """Groups of columns that sum to one, with a binary that has products with all of them."""
    by_z: dict[int, set[int]] = defaultdict(set)
    for p, z in pairs:
        by_z[z].add(p)
    A = mip.A
    row = _rows(mip)
    plain = np.isin(A.indices, list(by_z)) & (A.data == 1.0)
    usable = (np.bincount(row, ~plain, mip.n_rows) == 0) & (np.diff(A.indptr) > 1)
    for i in np.flatnonzero(usable & (mip.row_lower == 1.0) & (mip.row_upper == 1.0)):
        choices = A.indices[A.indptr[i] : A.indptr[i + 1]].tolist()
        for p in sorted(set.intersection(*(by_z[z] for z in choices))):
            yield p, choices


def _sets(mip: Mip, used: dict[int, set[int]]) -> Iterator[tuple[list[int], bool]]:
    """Rows sum p <= 1 or = 1 over binaries, some of them used; True for the latter."""
    A, binary = mip.A, _binary(mip)
    row = _rows(mip)
    plain = binary[A.indices] & (A.data == 1.0)
    usable = (np.bincount(row, ~plain, mip.n_rows) == 0) & (mip.row_upper == 1.0) & (np.diff(A.indptr) > 1)
    touched = np.bincount(row, np.isin(A.indices, list(used)), mip.n_rows) > 1
    for i in np.flatnonzero(usable & touched):
        yield A.indices[A.indptr[i] : A.indptr[i + 1]].tolist(), bool(mip.row_lower[i] == 1.0)


def _rows(mip: Mip) -> IntArray:
    """The row of each entry."""
    return np.repeat(np.arange(mip.n_rows), np.diff(mip.A.indptr))


def _binary(mip: Mip) -> BoolArray:
    return np.asarray(mip.integer & (mip.lower == 0.0) & (mip.upper == 1.0))


def _is_within(value: float, limit: float) -> bool:
    return value <= limit + SLACK * max(1.0, abs(limit))
