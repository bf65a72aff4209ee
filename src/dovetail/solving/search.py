"""The search of a solve: known solutions are offered first, then the method runs; a failure ends it in
order.

A built-in method that fails is a part that fails (`run/failures.py`): the best solution so far is the
answer, with the stop reason "error". Exceptions of the user's own code (a predictor, a method) reach the
user, and so do a method's errors about options and unsupported problems.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from dovetail.core.deadline import deadline
from dovetail.core.errors import (
    DovetailError,
    EngineError,
    MissingDependencyError,
    OptionError,
    UnsupportedError,
)
from dovetail.methods.clearing import clear
from dovetail.run.budget import OutOfTime, StopReason
from dovetail.run.context import Method, MethodOutcome, SolveContext
from dovetail.run.failures import expendable, note, reaches_the_user
from dovetail.run.incumbent import Incumbent
from dovetail.solving.host import HostRelaxation


def search(
    method: Method, context: SolveContext, incumbent: Incumbent, host: HostRelaxation
) -> MethodOutcome:
    """Search; whatever ends it, the best point stays."""
    try:
        outcome = _ended(method, context, host)
        if not isinstance(outcome, MethodOutcome):
            raise OptionError(
                f"method {method.name} returned {outcome!r}; its solve(context) must return a MethodOutcome, "
                "as Progress.record and Progress.exhausted make them."
            )
        with suppress(OutOfTime), expendable("search for a steadier point"):
            if outcome.closed:
                incumbent.settle()
            clear(context, incumbent)
        return outcome
    except Exception as failure:
        outcome = MethodOutcome(StopReason.ERROR, len(context.monitor.trace))
        if isinstance(failure, EngineError) or not (_is_users(method, failure) or reaches_the_user(failure)):
            note(method.name, failure)
            return outcome
        if isinstance(failure, DovetailError):
            raise
        context.monitor.failure = failure  # raised again, with the best point so far
        return replace(outcome, message=f"{type(failure).__name__}: {failure}")


def _is_users(method: Method, failure: Exception) -> bool:
    """Whether a failure of a method is its user's to fix."""
    own = not type(method).__module__.startswith("dovetail.")
    return own or isinstance(failure, (OptionError, UnsupportedError, MissingDependencyError))


def _ended(method: Method, context: SolveContext, host: HostRelaxation) -> MethodOutcome:
    """The outcome of the method, which may have been stopped in the middle of a step."""
    budget = context.budget
    try:
        with deadline(lambda: budget.late):
            return _begun(method, context, host)
    except OutOfTime:
        reason = budget.over or StopReason.TIME
        return MethodOutcome(reason, len(context.monitor.trace), "it ended in the middle of a step")


def _begun(method: Method, context: SolveContext, host: HostRelaxation) -> MethodOutcome:
    """Offer known points, then run the method."""
    if host.infeasible:
        return MethodOutcome(StopReason.PROVED, 0, host.note)
    for point, source in ((context.start.x, "start"), (host.x, "host")):
        if point is not None:
            with expendable(f"check of the {source} point"):
                context.incumbent.offer(point, source)
    if host.ray and context.incumbent.x is not None:
        return MethodOutcome(StopReason.PROVED, 0)
    if context.over or not context.problem.blocks:
        return MethodOutcome(context.over or StopReason.STALLED, 0)
    if getattr(method, "has_parts", False):
        return method.solve(context)
    residuals = getattr(method, "has_residuals", False)
    with context.monitor.part(method.name, residuals=residuals) as part:
        outcome = method.solve(context)
        if isinstance(outcome, MethodOutcome):
            part.note, part.stop_reason = outcome.message, outcome.stop_reason
    return outcome
