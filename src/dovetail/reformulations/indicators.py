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

from dovetail.bounds.box import Box
from dovetail.bounds.safe_lp import SafeLp
from dovetail.core.arrays import FloatArray
from dovetail.core.indicator import Indicator
from dovetail.core.mip import HAIR, SMALLEST, TOLERANCE, Mip
from dovetail.core.names import distinct
from dovetail.core.problem import Problem
from dovetail.reformulations.one_sided import OneSided
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
    return replace(
        mip,
        A=sp.vstack([mip.A, rows], format="csr"),
        row_lower=np.concatenate([mip.row_lower, np.full(sides.count, -np.inf)]),
        row_upper=np.concatenate([mip.row_upper, limit]),
        row_names=_row_names(mip, names),
    )


def _row_names(mip: Mip, names: list[str]) -> tuple[str, ...] | None:
    if mip.row_names is None and not any(names):
        return None
    return distinct([*map(mip.row_name, range(mip.n_rows)), *names])


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
    from dovetail.reformulations.indicators import IndicatorViolation

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
