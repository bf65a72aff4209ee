"""Questions about a result that need its problem: the prices of constraints, and the same solve again with
other limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.problem import Problem
from dovetail.core.words import did_you_mean
from dovetail.linearised.prices import RowPrices, row_prices
from dovetail.run.budget import Budget
from dovetail.run.constraints import ConstraintTable
from dovetail.run.failures import expendable, is_users
from dovetail.run.problem_facts import MOST_ENTRIES
from dovetail.run.result import Result
from dovetail.run.second_opinion import SecondOpinion
from dovetail.solving.options import SolveOptions
from dovetail.solving.second_opinion import Judge, Questions

PRICING_SECONDS = 1.0
"""Largest number of seconds for the prices, also after the end of a solve."""
ALLOWED_GAIN = 1e-4
"""Relative to the objective: a solution that small steps improve by more has no prices."""


@dataclass(frozen=True, eq=False)
class ProblemFollowUp:
    """The problem, options and prices of one solve."""

    problem: Problem
    guarded: Problem
    """The same, with predictors whose errors are known as the user's."""
    x: FloatArray | None
    options: SolveOptions
    allowed_gain: float
    row_prices: Callable[[], FloatArray | None] = lambda: None
    """(rows,) the prices that proved a bound, for a minimised objective."""

    def constraints(self) -> ConstraintTable | None:
        """The constraints at the solution, computed once."""
        return self._table

    @cached_property
    def _table(self) -> ConstraintTable | None:
        program, x = self.problem.stated, self.x
        if x is None or program.n_rows == 0:
            return None
        with expendable("prices of the constraints"):
            local, decomposed = None, self.row_prices()
            if program.nonzeros <= MOST_ENTRIES and not self.problem.templates:  # templates stay arrays
                found = self._local_prices(x)
                local = None if found is None or found.gained > self.allowed_gain else found.price
            return ConstraintTable.of(
                program.row_names, (program.row_lower, program.row_upper), program.activity(x),
                program.activity(np.abs(x), sizes=True),
                None if local is None else program.sign * local,
                None if decomposed is None else program.sign * decomposed,
            )  # fmt: skip
        return None

    def _local_prices(self, x: FloatArray) -> RowPrices | None:
        """The prices of the linearised problem; None if a predictor fails."""
        try:
            return row_prices(self.guarded, x, Budget(PRICING_SECONDS))
        except Exception as failure:
            if is_users(failure):
                return None
            raise

    def second_opinion(self, x: FloatArray, asked: Mapping[str, Any]) -> SecondOpinion:
        """The decision as other models see it."""
        return Judge(self.problem).opinion(x, Questions(**asked))

    def solved_again(
        self, result: Result, changes: Mapping[str, Any], options: Mapping[str, Any]
    ) -> tuple[Result, float | None]:
        """Solve with other limits, from this solution."""
        problem, estimate = self._changed(changes)
        mine = self.options
        asked = {
            "method": mine.method,
            "time_limit": mine.time_limit if np.isfinite(mine.time_limit) else None,
            "gap": mine.gap.relative,
            "absolute_gap": mine.gap.absolute,
            "seed": mine.seed,
            "n_jobs": mine.n_jobs,
            "device": mine.device,
            "log": False,
        }
        start = None if result.x is None else replace(result, origin=None)
        if mine.again is None:
            raise DovetailError("what_if is not available for a part of another solve.")
        return mine.again(problem, **{**asked, "start": start, **options, "load": False}), estimate

    def _changed(self, changes: Mapping[str, Any]) -> tuple[Problem, float | None]:
        """The problem with other limits, and what their prices expect."""
        mip, estimate = self.problem.mip, 0.0
        rows, columns = (
            {name: k for k, name in enumerate(names or map(own, range(count)))}
            for names, own, count in (
                (mip.row_names, mip.row_name, mip.n_rows),
                (mip.names, mip.column_name, mip.n_columns),
            )
        )
        limits = {name: getattr(mip, name).copy() for name in ("row_lower", "row_upper", "lower", "upper")}
        for name, by in changes.items():
            if name not in rows and name not in columns:
                known = did_you_mean(name, [*rows, *columns])
                raise OptionError(f"what_if: there is no constraint and no variable called {name!r}{known}.")
            row = name in rows
            i = rows[name] if row else columns[name]
            low, high = (limits["row_" * row + side] for side in ("lower", "upper"))
            below, above = self._shifts(name, by, low[i], high[i], i if row else None)
            low[i], high[i] = low[i] + below, high[i] + above
            if low[i] > high[i]:
                raise OptionError(f"what_if: the limits of {name} would be {low[i]:g} and {high[i]:g}.")
            priced = self._table is not None and row
            price = float(self._table.price[i]) if priced and self._table is not None else np.nan
            at_lower = priced and self._table is not None and self._table.at_lower[i]
            estimate += price * (below if at_lower else above)
        problem = self.problem.derived(replace(mip, **limits), self.problem.blocks)
        return problem, None if np.isnan(estimate) else estimate

    def _shifts(self, name: str, by: Any, low: float, high: float, row: int | None) -> tuple[float, float]:
        """By how much each limit moves: the only one, both of an equation, or the binding one."""
        try:
            below, above = map(float, by) if isinstance(by, (tuple, list)) else (float(by), float(by))
        except (TypeError, ValueError):
            below = above = np.nan
        if not np.isfinite([below, above]).all():
            raise OptionError(
                f"what_if: {name} is to move by {by!r}; give a number, or two for its two limits."
            )
        if isinstance(by, (tuple, list)) or low == high or not (np.isfinite(low) and np.isfinite(high)):
            return below, above
        at_lower = at_upper = False
        if row is not None and self._table is not None:
            at_lower, at_upper = bool(self._table.at_lower[row]), bool(self._table.at_upper[row])
        if at_lower == at_upper:
            raise OptionError(
                f"what_if: {name} has two limits, {low:g} and {high:g}: give the shift of each, for example "
                f"({0.0:g}, {by:g})."
            )
        return (below, 0.0) if at_lower else (0.0, above)
