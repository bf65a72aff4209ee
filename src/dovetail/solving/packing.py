"""What a search left behind, packed into a `Result`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dovetail.analysis.host import HostRelaxation
from dovetail.analysis.open_inputs import OpenInput
from dovetail.certificates.certificate import Certificate
from dovetail.certifying.certify import certify
from dovetail.core.arrays import FloatArray
from dovetail.core.check import Violation
from dovetail.core.extrapolation import Extrapolation, extrapolations
from dovetail.core.problem import Problem
from dovetail.modelling.snapshot import ModelSnapshot
from dovetail.run.context import Method, MethodOutcome, SolveContext
from dovetail.run.failures import expendable
from dovetail.run.result import Result
from dovetail.run.stopwatch import Profile
from dovetail.solving.hints import Finding, hints
from dovetail.solving.message import message
from dovetail.solving.status import conclude

CERTIFYING_SECONDS = 60.0
"""For a certificate, at most, when somebody asks for it."""


def pack(
    snapshot: ModelSnapshot,
    method: Method,
    context: SolveContext,
    host: HostRelaxation,
    outcome: MethodOutcome,
    violation: Violation | None,
    open_inputs: tuple[OpenInput, ...] = (),
) -> Result:
    """The result; `violation` is that of its point, `open_inputs` are those that nothing limits."""
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
        bound_source="" if conclusion.bound is None else context.incumbent.proof.source,
        allowed_gap=conclusion.allowed_gap,
        evaluations=context.monitor.evaluations,
        work=context.stopwatch.work,
        hints=_advice(found),
        written=outcome.written,
        origin=snapshot.origin,
        certifying=None if conclusion.bound is None else _certifying(problem, conclusion.bound, context),
    )


def _advice(found: Finding) -> tuple[str, ...]:
    """Hints; whatever goes wrong with them, the answer stands."""
    with expendable("hints"):
        return hints(found)
    return ()


def _certifying(problem: Problem, bound: float, context: SolveContext) -> Callable[[], Certificate | None]:
    """What makes the certificate of a bound, in the user's sense."""
    proof, value = context.incumbent.proof, problem.stated.sign * bound
    return partial(_certified, problem, value, proof.source, proof.prices)


def _certified(problem: Problem, bound: float, source: str, prices: FloatArray | None) -> Certificate | None:
    """The certificate of a bound in minimisation form; None where none can be made."""
    with expendable("certificate"):
        return certify(problem, bound, source, CERTIFYING_SECONDS, prices)
    return None
