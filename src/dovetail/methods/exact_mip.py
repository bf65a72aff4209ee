"""The whole problem as one MIP, networks and all, for HiGHS and, where installed, SCIP: exact, with a bound.

Used where tables replaced every network, or where the networks are small enough to be written out.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from dovetail.bounds.confirmed import EngineSettings, stands
from dovetail.core.errors import EngineError
from dovetail.mip import engine_for
from dovetail.reformulations.reformulated import Reformulated
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.run.engine import MipAnswer, MipStatus, Quadratic
from dovetail.run.progress import Progress

GAP = 1e-9
FIRST_SHARE = 0.25
"""HiGHS's part of the time where SCIP is installed: on some hosts SCIP closes in a second what HiGHS does not
in twenty (tree planting), on others it is the other way round."""
DECIDED = (MipStatus.OPTIMAL, MipStatus.INFEASIBLE)

Asked = tuple[MipAnswer | None, str]
"""An answer, or None and why there is none."""


def solve_exact_mip(
    context: SolveContext,
    reformulated: Reformulated,
    budget: Budget,
    source: str,
    *,
    offers: bool = True,
    proves: bool = True,
) -> Asked:
    """Solve the extended problem's MIP from the incumbent; offer its point, keep its bound, or either."""
    progress = Progress(context)
    second = find_spec("pyscipopt") is not None
    answer, trouble = _asked(
        "highs", context, reformulated, budget.part(FIRST_SHARE * budget.left) if second else budget
    )
    if second and not (answer is not None and answer.status in DECIDED) and not budget.over:
        other, _ = _asked("scip", context, reformulated, budget)
        answer = _better(answer, other)
    if answer is None:
        return None, trouble
    with context.stopwatch.measure("engine"):
        mip = reformulated.problem.mip.minimised().as_checked()
        found = stands(mip, answer, EngineSettings(context.seed, context.threads), budget) if proves else None
    objective = float("nan")
    x = answer.x if found is None else found.x  # the better of the engine's point and the tree's
    if x is not None and offers:
        objective = context.incumbent.offer(reformulated.restrict(x), source)
    if found is not None:
        context.incumbent.raise_bound(found.bound)
    progress.record(answer.value, objective, exact=answer.exact)
    return answer, ""


def _asked(engine: str, context: SolveContext, reformulated: Reformulated, budget: Budget) -> Asked:
    """One engine's answer, or why there is none."""
    mip = reformulated.problem.mip.minimised().as_checked()
    nothing = np.empty(0, dtype=np.int64)
    known = context.incumbent.x
    start = None if known is None else reformulated.lift(known)
    with context.stopwatch.measure("engine"):
        try:
            session = engine_for(engine, mip, nothing).load(
                mip, nothing, seed=context.seed, threads=context.threads
            )
            objective = Quadratic.linear(mip.cost, mip.offset)
            return session.solve(objective, budget=budget, start=start, gap=GAP), ""
        except EngineError as trouble:
            return None, f"the MIP of the whole problem failed: {trouble}"


def _better(first: MipAnswer | None, second: MipAnswer | None) -> MipAnswer | None:
    """The second engine's answer where it is done and has a point; else the better point of the two.

    SCIP has been seen to call a feasible problem infeasible: without a point its word counts for nothing,
    and its bound counts only where it is done. The first engine's bound is never lost.
    """
    if second is None or second.x is None:
        return first
    known = -np.inf if first is None else first.bound
    if second.exact:
        return replace(second, bound=max(second.bound, known))
    return replace(second, bound=known) if first is None or second.value < first.value else first
