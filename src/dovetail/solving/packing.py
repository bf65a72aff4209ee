"""What a search left behind, packed into a `Result`; its point is checked once more."""

from __future__ import annotations

from dovetail.analysis.host import HostRelaxation
from dovetail.core.arrays import FloatArray
from dovetail.core.check import Violation, check
from dovetail.core.errors import PredictorError
from dovetail.core.training_range import extrapolations
from dovetail.modelling.snapshot import ModelSnapshot
from dovetail.run.context import Method, MethodOutcome, SolveContext
from dovetail.run.result import Result
from dovetail.run.stopwatch import Profile
from dovetail.solving.message import message
from dovetail.solving.status import conclude


def pack(
    snapshot: ModelSnapshot,
    method: Method,
    context: SolveContext,
    host: HostRelaxation,
    outcome: MethodOutcome,
    violation: Violation | None = None,
) -> Result:
    """The result; without a `violation` the point is checked once more."""
    problem, x = snapshot.problem, context.incumbent.x
    if x is not None and violation is None:
        violation = _checked_again(context, x)
    conclusion = conclude(problem.mip, context, host, outcome)
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
        trace=context.monitor.trace,
        method=method.name,
        message=message(conclusion, context, host, outcome, violation),
        profile=Profile.of(context.stopwatch, context.budget.seconds),
        names=problem.mip.names,
        extrapolations=() if x is None else extrapolations(problem, x),
        origin=snapshot.origin,
    )


def _checked_again(context: SolveContext, x: FloatArray) -> Violation | None:
    """The violation of the point that is about to be returned."""
    try:
        violation = check(context.problem, x)
    except Exception:
        if context.monitor.failure is None:
            raise
        return context.incumbent.violation  # the predictor has failed for good: what the check saw stands
    if not violation.within():
        context.incumbent.x = None  # nobody knows what it is worth: the error carries no result
        raise PredictorError(
            f"a point that passed the check before now misses {violation}; "
            "a predictor that answers differently from call to call cannot be optimised."
        )
    return violation
