"""The whole problem as one MIP, networks and all, for HiGHS and, where installed, SCIP: exact, with a bound.

    rewrite: networks as rows (tables, or neurons with big-M)
    points:  the MIP whose rows keep margins, so that what it finds passes the check
    bound:   the MIP whose rows hold at every point that the networks can give; the same one where that is no
             difference

Idea: where it can be done at all, one exact MIP beats any search, and proves. Weakness: rows for every neuron
that may change sign; beyond a few hundred of them engines find nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from dovetail.analysis.boxes import tight_box
from dovetail.bounds.confirmed import EngineSettings, stands
from dovetail.core.errors import EngineError
from dovetail.mip import engine_for
from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail.reformulations.relu_big_m import ReluBigM, ReluPlan, relu_plan
from dovetail.run.budget import Budget, StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.engine import MipAnswer, MipStatus, Quadratic
from dovetail.run.progress import Progress

GAP = 1e-9
"""A hundredth of what `optimal` allows: the engine's own gap must not be what is left."""
FIRST_SHARE = 0.25
"""HiGHS's part of the time where SCIP is installed: on some hosts SCIP closes in a second what HiGHS does not
in twenty (tree planting), on others it is the other way round."""
POINTS_SHARE = 0.5
"""Of the time, where points and bounds need a MIP each: either may be what the user waits for."""
NO_PROOF = "the networks' own rounding has no bound: nothing is proved from their layers"
DECIDED = (MipStatus.OPTIMAL, MipStatus.INFEASIBLE)

Asked = tuple[MipAnswer | None, str]
"""An answer, or None and why there is none."""


def writing_plan(context: SolveContext) -> ReluPlan | None:
    """How the networks of a solve would be written out; made once (see `SolveContext.once`)."""
    return relu_plan(context.problem, context.once(tight_box))


@dataclass(frozen=True)
class ExactMip:
    """Solves a problem whose networks can be written as rows."""

    written: Reformulated | None = None
    """The problem as one MIP, where that is known; None: its ReLU networks are written out."""

    name = "exact-mip"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """One MIP for points and a bound at once; where the two differ, one for each."""
        written = self.written or _written_out(context)
        if written is None:
            return MethodOutcome(StopReason.STALLED, 0, "not all networks can be written as rows")
        budget, source = context.budget, "exact" if self.written is None else "tables"
        apart = written.relaxed is not None
        if apart or not written.proves:
            part = budget.part(POINTS_SHARE * budget.left) if written.proves else budget
            _solved(context, written, part, source, proves=False)
        if not written.proves:
            return _ended(context, NO_PROOF)
        # what a bound must allow for may let a point through that misses a row: good for a bound only
        answer, trouble = _solved(context, written.for_bounds, budget, source, offers=not apart)
        if answer is not None and answer.status is MipStatus.INFEASIBLE and context.incumbent.x is None:
            context.budget.stop(StopReason.STALLED)
            trouble = "HiGHS finds no solution of the problem with its networks written out"
        return _ended(context, trouble)


def _written_out(context: SolveContext) -> Reformulated | None:
    """The problem with its ReLU networks as rows, or None where some cannot be."""
    plan = context.once(writing_plan)
    if plan is None:
        return None
    given = Reformulated.start(context.problem, context.once(tight_box), context.relaxed)
    return reformulate(given, (ReluBigM(plan),))


def _ended(context: SolveContext, message: str) -> MethodOutcome:
    return MethodOutcome(context.over or StopReason.STALLED, len(context.monitor.trace), message)


def _solved(
    context: SolveContext,
    written: Reformulated,
    budget: Budget,
    source: str,
    *,
    offers: bool = True,
    proves: bool = True,
) -> Asked:
    """Solve one MIP from the incumbent; offer its point, keep its bound, or either."""
    progress = Progress(context)
    second = find_spec("pyscipopt") is not None
    answer, trouble = _asked(
        "highs", context, written, budget.part(FIRST_SHARE * budget.left) if second else budget
    )
    if second and not (answer is not None and answer.status in DECIDED) and not budget.over:
        other, _ = _asked("scip", context, written, budget)
        answer = _better(answer, other)
    if answer is None:
        return None, trouble
    with context.stopwatch.measure("engine"):
        mip = written.problem.mip.minimised().as_checked()
        found = stands(mip, answer, EngineSettings(context.seed, context.threads), budget) if proves else None
    objective = float("nan")
    x = answer.x if found is None else found.x  # the better of the engine's point and the tree's
    if x is not None and offers:
        objective = context.incumbent.offer(written.restrict(x), source)
    if found is not None:
        context.incumbent.raise_bound(found.bound, source)
    progress.record(answer.value, objective, exact=answer.exact)
    return answer, ""


def _asked(engine: str, context: SolveContext, written: Reformulated, budget: Budget) -> Asked:
    """One engine's answer, or why there is none."""
    mip = written.problem.mip.minimised().as_checked()
    nothing = np.empty(0, dtype=np.int64)
    known = context.incumbent.x
    start = None if known is None else written.lift(known)
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
