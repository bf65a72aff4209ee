"""Indicator constraints ("if the binary is 1, then this row holds") as plain rows with a big M.

Every tool's indicators come here in one form. M is the most that the row can be exceeded by when it is
switched off. The bounds of the columns say how much that is; where they do not, bounds that the rows
imply do; and as a last resort the linear relaxation. A row that nothing limits cannot be written so: it is
handed back, to become a block (reformulations/indicator_block.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import ModelError
from dovetail.core.foreign import distinct
from dovetail.core.indicator import Indicator
from dovetail.core.mip import INFINITY, Mip

PAD = 1e-6
"""M is made larger by this much of itself, so that a bound that is only nearly kept cuts nothing off."""

LARGEST_M = 1e9
"""With a larger M, a row that is kept to 1e-6 when it is switched on is beyond the digits of a float."""

OPTIMAL, INFEASIBLE = 0, 2
"""What scipy calls the ends of a linear program that tell something."""

ROUNDING = 1e-14
"""Relative error of a sum, generously."""

MOST_PROGRAMS = 50
"""Linear programs that may be solved for missing limits: in a large model each takes seconds."""

ROUNDS = 5
"""How often bounds implied by rows are followed from one row to the next."""


def with_indicators(mip: Mip, indicators: Sequence[Indicator]) -> tuple[Mip, tuple[Indicator, ...]]:
    """`mip` with the indicators as rows at its end, and those that have no finite M."""
    if not indicators:
        return mip, ()
    sides = _Sides.of(mip, indicators)
    extra = np.maximum(sides.most(*_implied_bounds(mip)) - sides.limit, 0.0)
    known = sides.always | (extra <= LARGEST_M)
    mip = _appended(mip, indicators, sides.some(known), _padded(extra[known]))
    if np.all(known):
        return mip, ()
    sides, relaxation = sides.some(~known), _Relaxation(mip)
    M = np.full(sides.count, np.inf)
    for k in range(min(sides.count, MOST_PROGRAMS)):
        M[k] = relaxation.big_m(sides, k)
    limited = M <= LARGEST_M
    left = np.unique(sides.indicator[~limited])
    return _appended(mip, indicators, sides.some(limited), M[limited]), tuple(indicators[k] for k in left)


def _padded(extra: FloatArray) -> FloatArray:
    """A little more than bounds say, and never so little that an engine drops it."""
    return np.where(extra > 0.0, np.maximum(extra * (1.0 + PAD), PAD), 0.0)


@dataclass(frozen=True, eq=False)
class _Sides:
    """One-sided rows, C x <= limit, each switched on when its binary is `active`; two for a two-sided one."""

    C: sp.csr_array
    limit: FloatArray
    binary: IntArray
    active: FloatArray
    always: BoolArray
    """The binary is fixed at its active value: the row needs no M."""
    indicator: IntArray
    """Which indicator each side belongs to."""

    @classmethod
    def of(cls, mip: Mip, indicators: Sequence[Indicator]) -> _Sides:
        binary = np.array([indicator.binary for indicator in indicators], dtype=np.int64)
        active = np.array([indicator.active for indicator in indicators], dtype=np.float64)
        _require_binaries(mip, indicators, binary, active)
        C = _coefficients(mip, indicators)
        upper = np.array([indicator.upper for indicator in indicators], dtype=np.float64)
        lower = np.array([indicator.lower for indicator in indicators], dtype=np.float64)
        lower[lower <= -INFINITY], upper[upper >= INFINITY] = -np.inf, np.inf
        _require_limits(indicators, lower, upper)
        place = np.arange(len(indicators))
        both = cls(
            sp.vstack([C, -C], format="csr"),
            np.concatenate([upper, -lower]),
            np.tile(binary, 2),
            np.tile(active, 2),
            np.tile(np.where(active == 1.0, mip.lower[binary] > 0.0, mip.upper[binary] < 1.0), 2),
            np.tile(place, 2),
        )
        never = np.where(both.active == 1.0, mip.upper[both.binary] < 1.0, mip.lower[both.binary] > 0.0)
        return both.some(np.flatnonzero((both.limit < np.inf) & ~never))

    def some(self, which: IntArray | BoolArray) -> _Sides:
        return _Sides(
            self.C[which],
            self.limit[which],
            self.binary[which],
            self.active[which],
            self.always[which],
            self.indicator[which],
        )

    @property
    def count(self) -> int:
        return int(self.limit.size)

    def most(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """The largest C x that the bounds allow while the side is switched off."""
        inactive = 1.0 - self.active
        own = np.repeat(self.binary, np.diff(self.C.indptr)) == self.C.indices
        row = np.repeat(np.arange(self.count), np.diff(self.C.indptr))
        best = np.where(self.C.data > 0, upper[self.C.indices], lower[self.C.indices])
        best[own] = inactive[row[own]]
        return np.bincount(row, self.C.data * best, minlength=self.count).astype(np.float64)


def _require_binaries(
    mip: Mip, indicators: Sequence[Indicator], binary: IntArray, active: FloatArray
) -> None:
    sound = mip.integer[binary] & (mip.lower[binary] > -1.0) & (mip.upper[binary] < 2.0)
    for k in np.flatnonzero(~sound)[:1]:
        j = int(binary[k])
        kind = "integer" if mip.integer[j] else "continuous"
        raise ModelError(
            f"indicator constraint {indicators[k].name}: {mip.column_name(j)} is {kind} with bounds "
            f"[{mip.lower[j]:g}, {mip.upper[j]:g}]; only a binary variable can switch a row on."
        )
    for k in np.flatnonzero((active != 0.0) & (active != 1.0))[:1]:
        raise ModelError(f"indicator constraint {indicators[k].name}: the active value must be 0 or 1.")


def _require_limits(indicators: Sequence[Indicator], lower: FloatArray, upper: FloatArray) -> None:
    wrong = np.isnan(lower) | np.isnan(upper) | (lower == np.inf) | (upper == -np.inf)
    for k in np.flatnonzero(wrong)[:1]:
        raise ModelError(
            f"indicator constraint {indicators[k].name}: its row has the limits [{lower[k]}, {upper[k]}]; "
            "give numbers, with -inf or inf for no limit."
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


def _appended(mip: Mip, indicators: Sequence[Indicator], sides: _Sides, M: FloatArray) -> Mip:
    """`mip` with C x <= limit + M [switched off] for each side.

    A side that holds by itself when it is switched off has an M of 0; it is still needed when switched on.
    """
    if not sides.count:
        return mip
    M = np.where(sides.always, 0.0, M)
    # switched on by 1: C x + M b <= limit + M; switched on by 0: C x - M b <= limit
    switch = sp.csr_array(
        (np.where(sides.active == 1.0, M, -M), sides.binary, np.arange(sides.count + 1)),
        shape=sides.C.shape,
    )
    limit = np.where(sides.active == 1.0, sides.limit + M, sides.limit)
    names = [indicators[k].name for k in sides.indicator]
    return replace(
        mip,
        A=sp.vstack([mip.A, sides.C + switch], format="csr"),
        row_lower=np.concatenate([mip.row_lower, np.full(sides.count, -np.inf)]),
        row_upper=np.concatenate([mip.row_upper, limit]),
        row_names=_row_names(mip, names),
    )


def _row_names(mip: Mip, names: list[str]) -> tuple[str, ...] | None:
    if mip.row_names is None and not any(names):
        return None
    return distinct([*map(mip.row_name, range(mip.n_rows)), *names])


def _implied_bounds(mip: Mip) -> tuple[FloatArray, FloatArray]:
    """Bounds of the columns, with those that rows imply where a column has none of its own."""
    lower, upper = mip.lower.copy(), mip.upper.copy()
    A = mip.A
    row = np.repeat(np.arange(mip.n_rows), np.diff(A.indptr))
    for _ in range(ROUNDS):
        unknown = np.count_nonzero(np.isinf(lower)) + np.count_nonzero(np.isinf(upper))
        if unknown == 0:
            break
        for sign, limit in ((1.0, mip.row_upper), (-1.0, -mip.row_lower)):
            _follow_rows(sign * A.data, row, A.indices, limit, lower, upper)
        if np.count_nonzero(np.isinf(lower)) + np.count_nonzero(np.isinf(upper)) == unknown:
            break
    return lower, upper


def _follow_rows(
    data: FloatArray,
    row: IntArray,
    column: IntArray,
    limit: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> None:
    """Fill in missing bounds from rows of the form data'x <= limit: what the other entries leave over."""
    least = data * np.where(data > 0, lower[column], upper[column])
    endless = np.isneginf(least)
    count = np.bincount(row, endless, minlength=limit.size)
    total = np.bincount(row, np.where(endless, 0.0, least), minlength=limit.size)
    others = np.where(endless, total[row], total[row] - least)
    # digits that large entries which cancel out have cost
    unsure = ROUNDING * np.bincount(row, np.abs(np.where(endless, 0.0, least)), minlength=limit.size)
    alone = np.isfinite(limit[row]) & (count[row] - endless == 0) & (data != 0)
    bound = np.full(data.shape, np.inf)
    bound[alone] = (limit[row[alone]] - others[alone] + unsure[row[alone]]) / data[alone]
    up = alone & (data > 0) & np.isposinf(upper[column])
    down = alone & (data < 0) & np.isneginf(lower[column])
    np.minimum.at(upper, column[up], bound[up])
    np.maximum.at(lower, column[down], bound[down])


class _Relaxation:
    """How large a row can get over the linear relaxation; made only when bounds did not tell."""

    def __init__(self, mip: Mip) -> None:
        equal = mip.row_lower == mip.row_upper
        above = ~equal & (mip.row_upper < np.inf)
        below = ~equal & (mip.row_lower > -np.inf)
        self._equal, self._equal_limit = mip.A[equal], mip.row_upper[equal]
        self._under = sp.vstack([mip.A[above], -mip.A[below]], format="csr")
        self._under_limit = np.concatenate([mip.row_upper[above], -mip.row_lower[below]])
        self._lower, self._upper = mip.lower, mip.upper

    def big_m(self, sides: _Sides, k: int) -> float:
        """By how much one side can be exceeded while it is switched off; infinite where nothing limits it."""
        from scipy.optimize import linprog

        lower, upper = self._lower.copy(), self._upper.copy()
        lower[sides.binary[k]] = upper[sides.binary[k]] = 1.0 - sides.active[k]
        answer = linprog(
            -sides.C[[k]].toarray()[0],
            A_ub=self._under,
            b_ub=self._under_limit,
            A_eq=self._equal,
            b_eq=self._equal_limit,
            bounds=np.column_stack([lower, upper]),
            method="highs",
        )
        if answer.status == INFEASIBLE:  # it can never be switched off
            return 0.0
        if answer.status != OPTIMAL:
            return np.inf
        most = -float(answer.fun)
        return max(most - float(sides.limit[k]), 0.0) + PAD * (1.0 + abs(most))
