"""Indicator constraints ("if the binary is 1, then this row holds") as rows with a big M, or as blocks.

Every tool's indicators come here in one form. M is the most that the row can be exceeded by when it is
switched off: what the box says, or where that says nothing, the linear relaxation. Both are proved of all
points that the check accepts, so that M cuts nothing off. A row that nothing limits has no finite M: it
becomes a block whose output is 0 (reformulations/indicators.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

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
from dovetail.reformulations.reformulated import Reformulated
from dovetail.run.budget import Budget

LARGEST_M = 1e9
"""With a larger M, a row that is kept to 1e-6 when it is switched on is beyond the digits of a float."""

FAIR_M = 1e5
"""A larger M is worth a linear program: a binary that an engine leaves 1e-6 short lets the row slip by M
times that, and a box that rows have passed on for a while may be far too wide."""

MOST_PROGRAMS = 50
"""Linear programs that may be solved for missing or large limits: in a large model each takes seconds. They
have no share of the time, or one model would have other columns from solve to solve: only the end of
the whole time limit ends them."""


@dataclass(frozen=True)
class IndicatorRows:
    """The reformulation. Indicators are no part of a `Problem`, so that it carries them itself."""

    indicators: tuple[Indicator, ...]
    budget: Budget = field(default_factory=Budget, compare=False)
    """Of the whole solve."""
    name = "indicators"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with the indicators in it; its box must hold for every point that the check accepts.

        Rows are appended, and one column for each block: what is proved of the new problem is proved of
        the model.
        """
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
    """`mip` with the indicators as rows at its end, and those for which no finite M is known."""
    sides = OneSided.of(mip, indicators, box)
    M = np.where(sides.always, 0.0, _big_m(sides.most(box) - sides.limit))
    small = M <= FAIR_M
    mip = _appended(mip, indicators, sides.some(small), M[small])
    if np.all(small):
        return mip, ()
    sides, M = sides.some(~small), M[~small]
    relaxation = _Relaxation(mip, box)
    for k in np.argsort(-M, kind="stable")[:MOST_PROGRAMS]:  # those without any M come first
        M[k] = min(M[k], _big_m(relaxation.most(sides, k, budget) - sides.limit[k]))
    limited = M <= LARGEST_M
    left = np.unique(sides.indicator[~limited])
    return _appended(mip, indicators, sides.some(limited), M[limited]), tuple(indicators[k] for k in left)


def _big_m(excess: FloatArray | float) -> FloatArray:
    """0 for a row that holds by itself when it is switched off, as well as the check asks for."""
    return np.where(excess <= TOLERANCE + HAIR, 0.0, excess)


def _appended(mip: Mip, indicators: Sequence[Indicator], sides: OneSided, M: FloatArray) -> Mip:
    """`mip` with C x <= limit + M [switched off] for each side.

    A side that holds by itself when it is switched off has an M of 0; it is still needed when switched on.
    """
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


class _Relaxation:
    """How large a row can get over the linear relaxation; made only where the box did not tell."""

    def __init__(self, mip: Mip, box: Box) -> None:
        self._box = box
        self._lp = SafeLp(replace(mip.minimised().loosened(), lower=box.lower, upper=box.upper))

    def most(self, sides: OneSided, k: int, budget: Budget) -> float:
        """No point has a larger C x while side k is switched off; infinite where nothing limits it,
        and where the budget is over before that is known."""
        lower, upper = self._box.lower.copy(), self._box.upper.copy()
        lower[sides.binary[k]] = upper[sides.binary[k]] = 1.0 - sides.active[k]
        answer = self._lp.minimise(-sides.C[[k]].toarray()[0], 0.0, budget, (lower, upper))
        return -answer.bound  # -infinity where it can never be switched off


def _add_block(problem: Problem, indicator: Indicator) -> None:
    """An indicator without a finite M, as a block whose output is 0."""
    taken = {block.name for block in problem.blocks}
    name = f"indicator {indicator.name or len(problem.blocks)}"
    name = name if name not in taken else f"{name}#{len(taken)}"
    nothing = np.zeros(1)
    (output,) = problem.add_columns(nothing, nothing, np.zeros(1, dtype=bool), [name])
    inputs = np.array([indicator.binary, *indicator.columns])
    problem.add_predictor(IndicatorViolation(indicator), inputs, [output], name=name)


class IndicatorViolation(nn.Module):
    """(binary, columns) -> what is missing to lower <= coefficients'x <= upper, or 0 where it is off."""

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
class OneSided:
    """Rows C x <= limit, each of which holds where its binary is `active`."""

    C: sp.csr_array
    limit: FloatArray
    binary: IntArray
    active: FloatArray
    always: BoolArray
    """The binary has its active value at every point: the row needs no M."""
    indicator: IntArray
    """Which indicator each row belongs to."""

    @classmethod
    def of(cls, mip: Mip, indicators: Sequence[Indicator], box: Box) -> OneSided:
        """The rows that say something; a `ModelError` where no binary switches them."""
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

    def some(self, which: IntArray | BoolArray) -> OneSided:
        """Those asked for."""
        return OneSided(
            self.C[which],
            self.limit[which],
            self.binary[which],
            self.active[which],
            self.always[which],
            self.indicator[which],
        )

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.limit.size)

    def most(self, box: Box) -> FloatArray:
        """No point of the box has a larger C x while the row is switched off: rounding is added."""
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
            f"[{mip.lower[j]:g}, {mip.upper[j]:g}]; only a binary variable can switch a row on."
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
