"""`dovetail.solve` behind its front: the one place where answers are judged and packed.

Methods search; here the input is checked, the clock is started, the host is asked
what it proves alone, and the best point is checked once more before it is returned.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TextIO

import numpy as np

from dovetail import __version__
from dovetail.analysis.host import HostRelaxation, analyse_host
from dovetail.core.arrays import FloatArray, require_finite, vector
from dovetail.core.check import Violation, check
from dovetail.core.errors import DovetailError, EngineError, OptionError, PredictorError
from dovetail.core.options import require_count, require_methods, require_number
from dovetail.core.probe import require_unchanged
from dovetail.core.problem import Problem
from dovetail.core.training_range import extrapolations
from dovetail.methods import method_named
from dovetail.methods.clearing import clear
from dovetail.mip.highs import HighsEngine
from dovetail.modelling.snapshot import ModelSnapshot, take_snapshot
from dovetail.report.log import closing, opening
from dovetail.run.budget import Budget, OutOfTime, StopReason
from dovetail.run.context import Method, MethodOutcome, Prepared, SolveContext, Start
from dovetail.run.environment import Interrupts, cores, gradients, threads
from dovetail.run.guard import Guard
from dovetail.run.incumbent import Incumbent, meets
from dovetail.run.monitor import Callback, Monitor
from dovetail.run.result import BoundKind, Result, Status
from dovetail.run.stopwatch import Profile, Stopwatch

MOST_RESERVED = 0.5
"""Of the time left when the search begins: with slow predictors a short limit still has a search."""


def answer(
    interrupts: Interrupts,
    model: Any,
    method: str | Method,
    *,
    time_limit: float,
    seed: int,
    start: Any,
    n_jobs: int,
    device: str | None,
    callback: Callback | None,
    log: bool | TextIO,
) -> Result:
    """What `dovetail.solve` returns; its options are explained there."""
    chosen = method_named(method) if isinstance(method, str) else _require_method(method)
    _require_options(time_limit, seed, n_jobs, device, callback)
    file = _log_file(log)
    _import_all(chosen)
    budget = Budget(time_limit)  # the clock of the first solve in a process does not count its imports
    interrupts.stop(budget)
    monitor = Monitor(budget, file, callback)
    with threads(min(n_jobs, cores())), gradients():
        session = take_snapshot(model)
        seconds = _seconds(lambda: _require_unchanged(session.problem, budget))
        begin = _read_start(session, start)
        monitor.tell(opening(session.problem, f"dovetail {__version__}, {chosen.name}, seed {seed}"))
        if n_jobs > cores():
            monitor.say(
                f"  n_jobs: {n_jobs} threads were asked for; {cores()} are used, one per core there is"
            )
        job = _Job(session, chosen, monitor, budget, begin, int(seed), min(int(n_jobs), cores()), device)
        # the last check asks every predictor, and its copy, once more
        budget.reserve(min(2.0 * seconds, MOST_RESERVED * budget.left))
        return job.run(interrupts)


class _Job:
    """One solve, from the first look at the host to the packed result."""

    def __init__(
        self,
        session: ModelSnapshot,
        method: Method,
        monitor: Monitor,
        budget: Budget,
        begin: Start,
        seed: int,
        threads: int,
        device: str | None,
    ) -> None:
        self._session, self._method = session, method
        stopwatch, problem = Stopwatch(), session.problem
        with stopwatch.measure("engine"):
            self._host = host = analyse_host(problem, budget, seed=seed, threads=threads)
        self._guard = Guard(_without_cost(problem) if host.ray else problem, budget)
        searched, engine = self._guard.problem, HighsEngine()
        self._has_incumbent = True
        try:
            incumbent = Incumbent(searched, engine, budget, stopwatch, seed=seed, threads=threads)
        except OutOfTime:  # while predictors were copied: an incumbent that nothing is offered to
            self._has_incumbent = False
            incumbent = Incumbent(problem.derived(problem.mip, ()), engine, budget, stopwatch)
        incumbent.raise_bound(host.bound)
        monitor.bound = _in_users_sense(problem, host.bound)
        self._context = SolveContext(
            searched, incumbent, budget, monitor, stopwatch, begin, seed, threads, device
        )

    def run(self, interrupts: Interrupts) -> Result:
        """Search, pack, tell; whatever is raised once there is a point carries the result."""
        outcome = MethodOutcome(StopReason.ERROR, 0)
        try:
            outcome = self._searched()
            self._guard.armed = False
            return self._concluded(self._packed(outcome), interrupts)
        except BaseException as failure:
            if self._context.incumbent.x is not None and not hasattr(failure, "result"):
                failure.result = self._rescued(outcome, failure)  # type: ignore[attr-defined]
            raise

    def _searched(self) -> MethodOutcome:
        if self._has_incumbent or self._host.infeasible:
            return _run(self._method, self._context, self._host)
        reason = self._context.budget.over or StopReason.TIME
        return MethodOutcome(reason, 0, "it ended while the predictors were copied")

    def _packed(self, outcome: MethodOutcome, violation: Violation | None = None) -> Result:
        return _pack(self._session, self._method, self._context, self._host, outcome, violation)

    def _concluded(self, result: Result, interrupts: Interrupts) -> Result:
        """Told to the model, the log and the caller; raised again what a callback or predictor raised."""
        monitor = self._context.monitor
        self._session.remember(result)
        monitor.close()
        monitor.tell(closing(result))
        if monitor.log_failure:
            result = replace(result, message=f"{result.message}; {monitor.log_failure}")
        if interrupts.heard and result.stop_reason is not StopReason.PROVED:
            result = replace(result, stop_reason=StopReason.INTERRUPT)  # it may have come in the last lines
        if monitor.failure is not None:
            monitor.failure.add_note(
                "raised by the callback or a predictor during dovetail.solve; "
                "the best point so far is in its attribute `result`"
            )
            monitor.failure.result = result  # type: ignore[attr-defined]
            raise monitor.failure
        return result

    def _rescued(self, outcome: MethodOutcome, failure: BaseException) -> Result:
        """The best point as the check saw it: whoever leaves now does not wait for another check."""
        reason = StopReason.INTERRUPT if isinstance(failure, KeyboardInterrupt) else StopReason.ERROR
        what = f"{type(failure).__name__}: {failure}".rstrip(": ")
        told = replace(outcome, stop_reason=reason, message="; ".join(filter(None, (outcome.message, what))))
        return self._packed(told, self._context.incumbent.violation)


# --- before the search ---------------------------------------------------------------------------


def _require_method(method: object) -> Method:
    require_methods(
        "method", method, ("solve",), 'dovetail.DualDecomposition(), or a name of "dovetail list"'
    )
    if not hasattr(method, "name") or hasattr(method, "refuses"):
        raise OptionError(f"method is {method!r}, which solves network steps, not problems.")
    return method  # type: ignore[return-value]


def _require_options(time_limit: float, seed: int, n_jobs: int, device: str | None, callback: object) -> None:
    if time_limit != np.inf:
        require_number("time_limit (seconds, or infinity)", time_limit, at_least=0.0)
    require_count("seed", seed, at_least=0)
    require_count("n_jobs", n_jobs, at_least=1)
    if callback is not None and not callable(callback):
        raise OptionError(f"callback is {callback!r}; give a function of one Event.")
    if device is not None:
        import torch

        try:
            float(torch.zeros(1, device=device).sum())
        except (RuntimeError, AssertionError, TypeError) as reason:
            raise OptionError(
                f"device {device!r} cannot be used ({str(reason).splitlines()[0]}); leave device= out to "
                "run where the predictors live."
            ) from None


def _import_all(method: Method) -> None:
    """All that the solve is sure to need; the method's own file was imported with its name."""
    import threadpoolctl  # noqa: F401
    import torch  # noqa: F401

    if isinstance(method, Prepared):
        method.prepare()


def _require_unchanged(problem: Problem, budget: Budget) -> None:
    for block in problem.blocks:
        if not budget.over:
            require_unchanged(problem.mip, block)


def _seconds(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _read_start(session: ModelSnapshot, start: Any) -> Start:
    problem = session.problem
    if start is None:
        return Start()
    if isinstance(start, Result):
        x = start.x
        if x is not None and start.origin is not None and session.origin is not None:
            x = session.carry(x, start.origin)
        if x is not None and np.shape(x) != (problem.mip.n_columns,):
            raise OptionError(
                f"start has the shape {np.shape(x)}, the problem has {problem.mip.n_columns} columns: "
                "it is the result of another problem."
            )
        return Start(x, start.multipliers)
    x = vector("start", start, problem.mip.n_columns, OptionError)
    require_finite("start", x, problem.mip.column_name, OptionError)
    return Start(x)


def _without_cost(problem: Problem) -> Problem:
    """The same problem with nothing to optimise: any point will do."""
    return problem.derived(replace(problem.mip, cost=np.zeros(problem.mip.n_columns)), problem.blocks)


def _log_file(log: bool | TextIO) -> TextIO | None:
    if isinstance(log, (bool, np.bool_)):
        return sys.stdout if log else None
    if not callable(getattr(log, "write", None)) or "b" in getattr(log, "mode", ""):
        raise OptionError(f"log is {log!r}; give True, False, or a text file that is open for writing.")
    return log


# --- the search ----------------------------------------------------------------------------------


def _run(method: Method, context: SolveContext, host: HostRelaxation) -> MethodOutcome:
    """Search; an engine or a predictor in trouble ends it, and the best point stays."""
    try:
        outcome = _context(method, context, host)
        with suppress(OutOfTime):
            clear(context)
        return outcome
    except OutOfTime:
        reason = context.budget.over or StopReason.TIME
        return MethodOutcome(reason, len(context.monitor.trace), "it ended between two calls of a predictor")
    except EngineError as trouble:
        return MethodOutcome(StopReason.ERROR, len(context.monitor.trace), str(trouble))
    except DovetailError:
        raise
    except Exception as failure:  # a predictor's own: raised again, with the best point so far
        context.monitor.failure = failure
        return MethodOutcome(
            StopReason.ERROR, len(context.monitor.trace), f"{type(failure).__name__}: {failure}"
        )


def _context(method: Method, context: SolveContext, host: HostRelaxation) -> MethodOutcome:
    """Offer what is known, then let the method go on from there."""
    if host.infeasible:
        return MethodOutcome(StopReason.PROVED, 0, host.note)
    for point, source in ((context.start.x, "start"), (host.x, "host")):
        if point is not None:
            context.incumbent.offer(point, source)
    if context.incumbent.proved or (host.ray and context.incumbent.x is not None):
        return MethodOutcome(StopReason.PROVED, 0)
    if context.budget.over or not context.problem.blocks:
        return MethodOutcome(context.budget.over or StopReason.STALLED, 0)
    return method.solve(context)


# --- after the search ----------------------------------------------------------------------------


def _pack(
    session: ModelSnapshot,
    method: Method,
    context: SolveContext,
    host: HostRelaxation,
    outcome: MethodOutcome,
    violation: Violation | None = None,
) -> Result:
    """The result, from the bounds that were proved and the incumbent, checked once more unless it was."""
    problem = session.problem
    x = context.incumbent.x
    if x is not None and violation is None:
        violation = _checked_again(context, x)
    objective = None if x is None or host.ray else problem.mip.objective(x)
    bound, doubt = _bound(problem, objective, context.incumbent.bound)
    status = _status(context, host, outcome, objective, bound)
    proved = status in (Status.OPTIMAL, Status.UNBOUNDED, Status.INFEASIBLE)
    stop_reason = StopReason.PROVED if proved else outcome.stop_reason
    if context.budget.stopped is StopReason.INTERRUPT and not proved:
        stop_reason = StopReason.INTERRUPT  # Ctrl-C, though the search was about to end by itself
    return Result(
        status=status,
        stop_reason=stop_reason,
        objective=objective,
        bound=bound,
        bound_kind=BoundKind.NONE if bound is None else BoundKind.PROVEN,
        x=x,
        violation=violation,
        residual=outcome.residual,
        multipliers=outcome.multipliers,
        iterations=outcome.iterations,
        seconds=context.budget.seconds,
        trace=context.monitor.trace,
        method=method.name,
        message=_message(status, context, host, outcome, doubt, violation),
        profile=Profile.of(context.stopwatch, context.budget.seconds),
        names=problem.mip.names,
        extrapolations=() if x is None else extrapolations(problem, x),
        origin=session.origin,
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


def _in_users_sense(problem: Problem, bound: float) -> float | None:
    return problem.mip.sign * bound if np.isfinite(bound) else None


def _bound(problem: Problem, objective: float | None, bound: float) -> tuple[float | None, str]:
    """The bound in the user's sense; dropped, with a word, where a verified point contradicts it."""
    if not np.isfinite(bound):
        return None, ""
    if objective is not None:
        value = problem.mip.sign * objective
        if bound > value and not meets(problem.mip, objective, problem.mip.sign * bound):
            return None, f"the bound {bound:g} was contradicted by a verified point and dropped"
        bound = min(bound, value)
    return problem.mip.sign * bound + 0.0, ""  # never -0


def _status(
    context: SolveContext,
    host: HostRelaxation,
    outcome: MethodOutcome,
    objective: float | None,
    bound: float | None,
) -> Status:
    if host.infeasible:
        return Status.INFEASIBLE
    if context.incumbent.x is None:
        return Status.ERROR if outcome.stop_reason is StopReason.ERROR else Status.NO_SOLUTION
    if host.ray:
        return Status.UNBOUNDED
    assert objective is not None
    proved = bound is not None and meets(context.problem.mip, objective, bound)
    return Status.OPTIMAL if proved else Status.FEASIBLE


_MEANING = {
    Status.OPTIMAL: "a proven bound meets the verified objective",
    Status.FEASIBLE: "the point is verified; better ones are not excluded",
    Status.INFEASIBLE: "proved without any network",
    Status.UNBOUNDED: "the point is feasible, and columns outside the networks improve it for ever",
    Status.NO_SOLUTION: "no candidate passed the check; nothing is proved",
    Status.ERROR: "a sub-solver failed before any candidate passed the check",
}


def _within_rounding(nearest: Violation) -> str:
    """A word on a row that no value of its predictors may meet."""
    missed = max(nearest.rows, nearest.bounds, key=lambda kind: kind.amount)
    if missed.name != nearest.rounding.name or nearest.rounding.amount < 2.0 * missed.amount:
        return ""
    return (
        ", which is less than its predictors round: none of their values may come nearer (widen it, or give "
        "the predictors in float64)"
    )


def _message(
    status: Status,
    context: SolveContext,
    host: HostRelaxation,
    outcome: MethodOutcome,
    doubt: str,
    violation: Violation | None,
) -> str:
    parts = [_MEANING[status], outcome.message, doubt]
    if host.note and host.note != outcome.message:
        parts.append(host.note)
    nearest = context.incumbent.nearest
    if context.incumbent.x is None and nearest is not None:
        parts.append(f"the nearest candidate misses {nearest}{_within_rounding(nearest)}")
    if violation is not None and violation.within() and not violation.steady():
        parts.append(
            f"evaluated one by one, or on another processor, the samples may miss {violation.rounding.name} "
            f"by {violation.rounding.amount:.1e}: the predictors' own rounding"
        )
    return "; ".join(part for part in parts if part)
