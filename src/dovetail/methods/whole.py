"""The whole problem as one MIP, networks and all, for HiGHS: exact, with a bound.

Used where tables replaced every network, or where the networks are small enough to be written out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.core.budget import Budget
from dovetail.core.engine import MipAnswer, Quadratic
from dovetail.core.errors import EngineError
from dovetail.core.lap import Lap
from dovetail.core.search import Search
from dovetail.mip import engine_for
from dovetail.presolve.extended import Extended

GAP = 1e-9


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the MIP said; the incumbent has seen its point."""

    answer: MipAnswer | None
    note: str = ""

    @property
    def bound(self) -> float:
        """In minimisation form; -infinity where nothing was proved."""
        return -np.inf if self.answer is None else self.answer.bound


def solve_whole(
    search: Search,
    extended: Extended,
    budget: Budget,
    source: str,
    *,
    offers: bool = True,
    proves: bool = True,
) -> Verdict:
    """Solve the extended problem's MIP from the incumbent; offer its point, keep its bound, or either."""
    mip = extended.problem.mip.minimised()
    nothing = np.empty(0, dtype=np.int64)
    lap, known = Lap(search), search.incumbent.x
    start = None if known is None else extended.lift(known)
    with search.stopwatch.measure("engine"):
        try:
            session = engine_for("highs", mip, nothing).load(
                mip, nothing, seed=search.seed, threads=search.threads
            )
            answer = session.solve(
                Quadratic.linear(mip.cost, mip.offset), budget=budget, start=start, gap=GAP
            )
        except EngineError as trouble:
            return Verdict(None, f"the MIP of the whole problem failed: {trouble}")
    objective = float("nan")
    if answer.x is not None and offers:
        objective = search.incumbent.offer(extended.cut(answer.x), source)
    if proves and answer.bound > search.incumbent.bound:
        search.incumbent.raise_bound(answer.bound)
        search.watch.bound = search.problem.mip.sign * answer.bound
    row = lap.row(
        len(search.watch.trace) + 1,
        objective,
        lagrangian=answer.value,
        merit=answer.value,
        residuals=(),
        exact=answer.exact,
    )
    search.watch.iteration(row, search.incumbent.x)
    return Verdict(answer if proves else replace(answer, bound=-np.inf))
