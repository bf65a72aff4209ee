"""Packs the outcome of a search into a `Result`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dovetail.certificates.certificate import Certificate
from dovetail.certifying.certify import certify
from dovetail.core.arrays import FloatArray
from dovetail.core.check import Violation
from dovetail.core.extrapolation import Extrapolation, extrapolations
from dovetail.core.problem import Problem
from dovetail.core.words import listed
from dovetail.modelling.snapshot import ModelSnapshot
from dovetail.report.gains import ROWS_ONLY, gap_text
from dovetail.run.context import Method, MethodOutcome, SolveContext
from dovetail.run.failures import expendable
from dovetail.run.result import BoundKind, Result, Status
from dovetail.run.work import Profile
from dovetail.solving.hints import Finding, OpenInput, hints
from dovetail.solving.host import HostRelaxation
from dovetail.solving.status import Conclusion, conclude

CERTIFYING_SECONDS = 60.0
"""Largest number of seconds for a certificate."""


MOVED = ", with an output moved within its predictor's rounding to meet a constraint"
MEANING = {
    Status.INFEASIBLE: "proved without the predictors",
    Status.UNBOUNDED: "the solution is feasible, and variables outside predictors improve it without limit",
    Status.NO_SOLUTION: "no candidate passed the check, but a solution may exist",
    Status.ERROR: "a part of the solve failed before any candidate passed the check",
}


def pack(
    snapshot: ModelSnapshot,
    method: Method,
    context: SolveContext,
    host: HostRelaxation,
    outcome: MethodOutcome,
    violation: Violation | None,
    open_inputs: tuple[OpenInput, ...] = (),
) -> Result:
    """The result; `violation` is that of its solution."""
    problem, x = snapshot.problem, context.incumbent.x
    conclusion = conclude(problem.stated, context, host, outcome)
    outside: tuple[Extrapolation, ...] = ()
    with expendable("look at training ranges"):
        outside = () if x is None else extrapolations(problem, x)
    found = Finding(problem, context, host, conclusion, method.name, open_inputs, outside)
    return Result(
        status=conclusion.status,
        stop_reason=conclusion.stop_reason,
        objective=conclusion.objective,
        bound=conclusion.bound,
        bound_kind=conclusion.bound_kind,
        x=x,
        violation=violation,
        residual=outcome.residual,
        multipliers=outcome.multipliers,
        iterations=outcome.iterations,
        seconds=context.budget.seconds,
        trace=context.monitor.trace.without_gains() if host.ray else context.monitor.trace,
        method=method.name,
        message=message(conclusion, context, host, outcome, violation),
        profile=Profile.of(context.stopwatch, context.budget.seconds),
        engine=outcome.engine,
        names=problem.stated.names,
        extrapolations=outside,
        source=context.incumbent.source,
        bound_source=_bound_source(conclusion, context),
        bound_error=conclusion.bound_error,
        allowed_gap=conclusion.allowed_gap,
        evaluations=context.monitor.evaluations,
        work=context.stopwatch.work,
        hints=_advice(found),
        written=outcome.written,
        origin=snapshot.origin,
        certifying=_certifying(problem, conclusion, context),
    )


def _bound_source(conclusion: Conclusion, context: SolveContext) -> str:
    """The source of the bound or estimate."""
    if conclusion.bound_kind is BoundKind.ESTIMATE:
        return "prices"
    return "" if conclusion.bound is None else context.incumbent.proof.source


def _advice(found: Finding) -> tuple[str, ...]:
    """The hints; errors in hints do not affect the result."""
    with expendable("hints"):
        return hints(found)
    return ()


def _certifying(
    problem: Problem, conclusion: Conclusion, context: SolveContext
) -> Callable[[], Certificate | None] | None:
    """A function that makes the certificate of a bound, in the user's sense; None without a proof."""
    if conclusion.bound is None or conclusion.bound_kind is BoundKind.ESTIMATE:
        return None
    proof, value = context.incumbent.proof, problem.stated.sign * conclusion.bound
    return partial(_certified, problem, value, proof.source, proof.prices)


def _certified(problem: Problem, bound: float, source: str, prices: FloatArray | None) -> Certificate | None:
    """The certificate of a bound in minimisation form; None where none can be made."""
    with expendable("certificate"):
        return certify(problem, bound, source, CERTIFYING_SECONDS, prices)
    return None


def message(
    conclusion: Conclusion,
    context: SolveContext,
    host: HostRelaxation,
    outcome: MethodOutcome,
    violation: Violation | None,
) -> str:
    """The message: the meaning of the status, and other facts."""
    parts = [_meaning(conclusion, context), outcome.message]
    parts += [outcome.doubt] if conclusion.status is Status.NO_SOLUTION else []
    if outcome.infeasible and conclusion.status is Status.INFEASIBLE:
        parts.remove(MEANING[Status.INFEASIBLE])  # the method's message says how infeasibility was proved
    if conclusion.status is Status.UNBOUNDED:
        parts.append(_without_limit(context, host))
    if host.note and host.note != outcome.message:
        parts.append(host.note)
    nearest = context.incumbent.nearest
    if context.incumbent.x is None and nearest is not None:
        parts.append(f"the nearest candidate violates {nearest.missed}{_within_rounding(nearest)}")
    if violation is not None and violation.within() and not violation.steady():
        parts.append(
            f"evaluated one by one, or on another processor, the samples may violate "
            f"{violation.rounding.name} by {violation.rounding.amount:.1e}: the predictors' own rounding"
        )
    return "; ".join(part for part in parts if part)


def _meaning(conclusion: Conclusion, context: SolveContext) -> str:
    """The meaning of the status with the gap, for one line of the log."""
    status, gap = conclusion.status, conclusion.gap
    if status not in (Status.OPTIMAL, Status.FEASIBLE):
        return MEANING[status]
    said = (
        _feasible(gap, context, proved=conclusion.bound_kind is not BoundKind.ESTIMATE)
        if status is Status.FEASIBLE
        else _optimal(gap or 0.0, conclusion)
    )
    return said + (MOVED if context.incumbent.moved else "")


def _feasible(gap: float | None, context: SolveContext, *, proved: bool) -> str:
    estimated = "" if proved else " to an estimate of the bound"
    seen = context.incumbent.proof.source not in ROWS_ONLY or not context.problem.blocks or not proved
    left = "no bound" if gap is None else f"gap {gap_text(gap)}" if seen else "no bound with the predictors"
    return f"verified solution, a better one may exist ({left}{estimated})"


def _optimal(gap: float, conclusion: Conclusion) -> str:
    by = "" if conclusion.bound_kind is BoundKind.PROVEN else ", by the bound of a MIP engine"
    if conclusion.within_rounding:
        return f"optimal solution found (gap {gap_text(gap)}, from the rounding of the predictors){by}"
    allowed, objective = conclusion.allowed_gap or 0.0, abs(conclusion.objective or 0.0)
    tolerance = gap_text(allowed / objective) if objective > allowed else f"{allowed:.0e} of the objective"
    return f"optimal solution found (gap {gap_text(gap)}, tolerance {tolerance}){by}"


def _without_limit(context: SolveContext, host: HostRelaxation) -> str:
    """The variables that improve without limit, often outputs whose predictor was forgotten."""
    names = [context.problem.stated.column_name(j) for j in host.endless]
    forgotten = "; no predictor is in this model" if not context.problem.blocks else ""
    return f"nothing limits {listed(names)}{forgotten}"


def _within_rounding(nearest: Violation) -> str:
    """A note about a constraint that may lie within the rounding of its predictors."""
    missed, rounding = max(nearest.rows, nearest.bounds, key=lambda kind: kind.amount), nearest.rounding
    worst = missed.amount == nearest.worst.amount > 0.0
    if not worst or missed.name != rounding.name or rounding.amount < 2.0 * missed.amount:
        return ""
    return (
        ", less than the rounding of the predictors: perhaps none of their values is nearer (widen the "
        "limit, or use float64 predictors)"
    )
