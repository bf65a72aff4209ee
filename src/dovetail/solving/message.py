"""What a result says in words."""

from __future__ import annotations

from dovetail.analysis.host import HostRelaxation
from dovetail.core.check import Violation
from dovetail.report.gains import ROUNDING, gap_text
from dovetail.report.sources import ROWS_ONLY
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.result import BoundKind, Status
from dovetail.solving.status import Conclusion

NAMED = 3
"""Columns that a message names."""

MOVED = ", with an output moved within its predictor's rounding to meet a constraint"
ROUNDED = "the rest is rounding of the predictors"
MEANING = {
    Status.INFEASIBLE: "proved without any network",
    Status.UNBOUNDED: "the point is feasible, and columns that no predictor ties improve it for ever",
    Status.NO_SOLUTION: "no candidate passed the check, and whether there is a point is open",
    Status.ERROR: "a part of the solve failed before any candidate passed the check",
}


def message(
    conclusion: Conclusion,
    context: SolveContext,
    host: HostRelaxation,
    outcome: MethodOutcome,
    violation: Violation | None,
) -> str:
    """What the status means, and what else there is to know."""
    parts = [_meaning(conclusion, context), outcome.message]
    parts += [outcome.doubt] if conclusion.status is Status.NO_SOLUTION else []
    if outcome.infeasible and conclusion.status is Status.INFEASIBLE:
        parts.remove(MEANING[Status.INFEASIBLE])  # the method says how it was proved
    if conclusion.status is Status.UNBOUNDED:
        parts.append(_without_limit(context, host))
    if host.note and host.note != outcome.message:
        parts.append(host.note)
    nearest = context.incumbent.nearest
    if context.incumbent.x is None and nearest is not None:
        parts.append(f"the nearest candidate misses {nearest.missed}{_within_rounding(nearest)}")
    if violation is not None and violation.within() and not violation.steady():
        parts.append(
            f"evaluated one by one, or on another processor, the samples may miss {violation.rounding.name} "
            f"by {violation.rounding.amount:.1e}: the predictors' own rounding"
        )
    return "; ".join(part for part in parts if part)


def _meaning(conclusion: Conclusion, context: SolveContext) -> str:
    """What the status means, with the gap; one line of the log."""
    status, gap = conclusion.status, conclusion.gap
    if status not in (Status.OPTIMAL, Status.FEASIBLE):
        return MEANING[status]
    said = _feasible(gap, context) if status is Status.FEASIBLE else _optimal(gap or 0.0, conclusion)
    return said + (MOVED if context.incumbent.moved else "")


def _feasible(gap: float | None, context: SolveContext) -> str:
    seen = context.incumbent.proof.source not in ROWS_ONLY or not context.problem.blocks
    left = "no bound" if gap is None else f"gap {gap_text(gap)}" if seen else "no bound knows the predictors"
    return f"the solution is verified, a better one may exist ({left})"


def _optimal(gap: float, conclusion: Conclusion) -> str:
    by = "a proven bound" if conclusion.bound_kind is BoundKind.PROVEN else "the word of a MIP engine"
    if gap <= ROUNDING:
        return f"{by} meets the verified objective"
    if conclusion.within_rounding:
        return f"within {gap_text(gap)} by {by}, {ROUNDED}"
    return f"within {gap_text(gap)}, by {by}"


def _without_limit(context: SolveContext, host: HostRelaxation) -> str:
    """Which columns go on for ever; mostly an output whose predictor was forgotten."""
    names = [context.problem.stated.column_name(j) for j in host.endless]
    listed = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    forgotten = "; no predictor is in this model" if not context.problem.blocks else ""
    return f"nothing limits {listed}{forgotten}"


def _within_rounding(nearest: Violation) -> str:
    """A word on a row that no value of its predictors may meet."""
    missed, rounding = max(nearest.rows, nearest.bounds, key=lambda kind: kind.amount), nearest.rounding
    worst = missed.amount == nearest.worst.amount > 0.0
    if not worst or missed.name != rounding.name or rounding.amount < 2.0 * missed.amount:
        return ""
    return (
        ", which is less than its predictors round: none of their values may come nearer (widen it, or give "
        "the predictors in float64)"
    )
