"""One solve, from the model to the result: snapshot, host, context, search, packing.

The search of a solve: known solutions are offered first, then the method runs; a failure ends the search, and
the best solution is kept.

A built-in method that fails is a part that fails (`run/failures.py`): the best solution so far is the
answer, with the stop reason "error". Exceptions of the user's own code (a predictor, a method) reach the
user, and so do a method's errors about options and unsupported problems.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from dovetail.certificates.fingerprint import covers_all, fingerprint
from dovetail.core.arrays import FloatArray
from dovetail.core.check import Violation, check
from dovetail.core.deadline import deadline
from dovetail.core.errors import (
    DovetailError,
    EngineError,
    MissingDependencyError,
    OptionError,
    PredictorError,
    UnsupportedError,
)
from dovetail.core.problem import Problem
from dovetail.core.stated_program import StatedProgram
from dovetail.linearised.sensitivity import gained_by_missing, worth_of_rounding
from dovetail.methods.clearing import clear
from dovetail.mip import highs_threads
from dovetail.mip.highs import HighsEngine
from dovetail.modelling.snapshot import ModelSnapshot, take_snapshot
from dovetail.report.gains import proved_by
from dovetail.report.log.heading import ending, heading
from dovetail.report.log.table import number
from dovetail.run.bound import NO_BOUND
from dovetail.run.budget import Budget, OutOfTime, StopReason
from dovetail.run.checkpoint import Checkpoint, CheckpointWriter
from dovetail.run.context import Method, MethodOutcome, SolveContext, Start
from dovetail.run.environment import Interrupts, cores, gradients, threads
from dovetail.run.failures import Failures, counted, expendable, in_words, note, reaches_the_user
from dovetail.run.guard import Guard
from dovetail.run.incumbent import Incumbent
from dovetail.run.monitor import Callback, Monitor
from dovetail.run.problem_facts import ProblemFacts
from dovetail.run.processes import Cluster
from dovetail.run.result import Result, Settings, Status
from dovetail.run.work import Stopwatch
from dovetail.solving.concurrent import PATIENCE, Others, concurrent_solves
from dovetail.solving.conflict import smallest_conflict
from dovetail.solving.follow_up import ALLOWED_GAIN, ProblemFollowUp
from dovetail.solving.hints import OpenInput, open_inputs, warning
from dovetail.solving.host import HostRelaxation, analyse_host
from dovetail.solving.options import SolveOptions, open_log_file, opened, require_blocks_for
from dovetail.solving.packing import pack
from dovetail.solving.starts import completed, read_start
from dovetail.solving.status import stop_reason
from dovetail.version import __version__


def search(
    method: Method, context: SolveContext, incumbent: Incumbent, host: HostRelaxation
) -> MethodOutcome:
    """Search; the best solution is kept however the search ends."""
    try:
        outcome = _run_to_the_end(method, context, host)
        if not isinstance(outcome, MethodOutcome):
            raise OptionError(
                f"method {method.name} returned {outcome!r}; its solve(context) must return a MethodOutcome, "
                "as Progress.record and Progress.exhausted make them."
            )
        with suppress(OutOfTime), expendable("search for a solution that tolerates rounding"):
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
    """Whether a failure of a method has to be fixed by its user."""
    own = not type(method).__module__.startswith("dovetail.")
    return own or isinstance(failure, (OptionError, UnsupportedError, MissingDependencyError))


def _run_to_the_end(method: Method, context: SolveContext, host: HostRelaxation) -> MethodOutcome:
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
    for point, source in ((context.start.x, context.start.source), (host.x, "host")):
        if point is not None:
            with expendable(f"check of the {source} point"):
                context.incumbent.offer(point, source)
        if source == "start" and point is not None:
            _say_whether_it_is_a_solution(context)
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


def _say_whether_it_is_a_solution(context: SolveContext) -> None:
    """Log the objective of the start, or what it violates."""
    incumbent = context.incumbent
    if incumbent.x is not None:
        context.monitor.fact("start", f"a solution with objective {number(incumbent.objective)}")
    elif incumbent.nearest is not None:
        missed = incumbent.nearest.missed
        context.monitor.fact("start", f"no solution, it violates {missed}; searches begin near it")


TOLERATED_SECONDS = 1.0
"""Time limit of the LP that computes the effect of tolerances, also after the end of the solve; it is as
large as a step of a descent."""
UNNOTICED = 1.0
"""Seconds: if the last check took longer, predictors are not evaluated again for the page."""


_log = logging.getLogger("dovetail")


def solve_model(
    model: Any, options: SolveOptions, interrupts: Interrupts, others: Others | None = None
) -> Result:
    """The work of `dovetail.solve`; `others`: solves of the same problem in other processes."""
    options.import_libraries()
    imports = interrupts.seconds
    with opened(options.cluster, options.n_jobs) as cluster:
        before = 0.0 if options.resumed is None else options.resumed.seconds
        budget = Budget(
            options.time_limit, spent=imports, before=before
        )  # the start of a cluster is not counted
        interrupts.stop(budget)
        file = open_log_file(options.log_file)
        with (
            Monitor(
                budget,
                options.log,
                options.callback,
                log_file=file,
                inner=options.inner,
                progress=options.progress,
            ) as monitor,
            threads(options.threads),
            gradients(),
            highs_threads.given_back(),
            counted(lambda text: monitor.say(text, "warning")) as failures,
        ):
            snapshot = take_snapshot(model, budget)
            job = Job.prepared(snapshot, options, budget, monitor, cluster, failures)
            result = job.run(options, interrupts, others)
    return loaded(result) if options.load else result


def _open_log(monitor: Monitor, problem: Problem, options: SolveOptions) -> None:
    title = f"dovetail {__version__}: {options.method.name}, seed {options.seed}, {options.limits}"
    monitor.write(lambda width: heading(problem, title, width))
    if options.about and not getattr(options.method, "has_parts", False):  # these report their own plan
        monitor.fact("plan", options.about)
    if options.n_jobs > options.threads and options.cluster is None:
        monitor.fact("n_jobs", f"{options.n_jobs} threads were requested; {cores()} are used, one per core")


@dataclass(frozen=True, eq=False)
class Job:
    """One solve, ready to run."""

    snapshot: ModelSnapshot
    method: Method
    host: HostRelaxation
    guard: Guard
    incumbent: Incumbent
    context: SolveContext
    settings: Settings
    failures: Failures
    options: SolveOptions
    open_inputs: tuple[OpenInput, ...] = ()
    """The unbounded inputs of the networks."""
    ended: MethodOutcome | None = None
    """Why no search is started: the time was over before it."""

    @classmethod
    def prepared(
        cls,
        snapshot: ModelSnapshot,
        options: SolveOptions,
        budget: Budget,
        monitor: Monitor,
        cluster: Cluster | None,
        failures: Failures,
    ) -> Job:
        """Analyse the problem without predictors; prepare guarded predictors and the incumbent."""
        start, problem = read_start(snapshot, options.start), snapshot.problem
        _open_log(monitor, problem, options)
        start = completed(start, problem, budget, monitor, seed=options.seed, threads=options.threads)
        stopwatch, engine, ended = Stopwatch(), HighsEngine(), None
        seed, threads = options.seed, options.threads
        with stopwatch.measure("engine"):
            host = analyse_host(problem, budget, seed=seed, threads=threads, gap=options.gap)
        # describing a predictor also copies it
        guard = Guard(budget, snapshot.asking_seconds / max(1, len(problem.blocks)))
        guarded = guard.guarded(_without_cost(problem) if host.ray else problem)
        try:
            incumbent = Incumbent(
                guarded, engine, budget, stopwatch,
                seed=seed, threads=threads, gap=options.gap, target=options.target,
            )  # fmt: skip
        except OutOfTime:  # while predictors were copied, there is an empty incumbent
            incumbent = Incumbent(problem.derived(problem.mip, ()), engine, budget, stopwatch)
            reason = budget.over or StopReason.TIME
            ended = MethodOutcome(reason, 0, "it ended while the predictors were copied")
        incumbent.verified = options.verified
        incumbent.gained_by_missing = lambda x: gained_by_missing(guarded, x, Budget(TOLERATED_SECONDS))
        incumbent.worth_of_rounding = lambda x: worth_of_rounding(guarded, x, Budget(TOLERATED_SECONDS))
        if options.resumed is not None:
            _take_over(options.resumed, start, problem.stated, incumbent, monitor)
        for bound in (start.bound, host.proof):
            incumbent.raise_bound(bound)
        monitor.follow(incumbent, lambda: guard.evaluations)
        unlimited: tuple[OpenInput, ...] = ()
        with expendable("search for open inputs"):
            unlimited = () if host.infeasible else open_inputs(problem, budget, seed=seed, threads=threads)
        if unlimited:
            monitor.fact("warning", warning(unlimited), "warning")
        context = SolveContext(
            guarded, incumbent, budget, monitor, stopwatch, start, seed, threads, options.device,
            cluster,
        )  # fmt: skip
        require_blocks_for(context)
        ended = None if host.infeasible else ended
        settings = Settings.of(options.method, options.repeatable)
        return cls(
            snapshot, options.method, host, guard, incumbent, context, settings, failures, options, unlimited,
            ended,
        )  # fmt: skip

    def run(self, options: SolveOptions, interrupts: Interrupts, others: Others | None = None) -> Result:
        """Search, pack and report; an exception after the first solution carries the result."""
        outcome, budget = MethodOutcome(StopReason.ERROR, 0), self.context.budget
        # the last check evaluates every predictor and its copy once more
        budget.reserve(2.0 * self.snapshot.asking_seconds)
        try:
            with self._checkpoints(options):
                outcome = self.ended or self._searched(options, others)
            if not self.host.asked and self.incumbent.x is None and not budget.over:
                return self._with_host_analysis()._concluded(outcome, interrupts)
            return self._concluded(outcome, interrupts)
        except BaseException as failure:
            if self.incumbent.x is not None and not hasattr(failure, "result"):
                failure.result = self._interrupted_result(outcome, failure)  # type: ignore[attr-defined]
            raise
        finally:
            self.context.close()

    def _searched(self, options: SolveOptions, known: Others | None) -> MethodOutcome:
        """Search here, and in other processes with `n_jobs`."""
        context = self.context
        if self.host.infeasible or self.host.ray:
            return search(self.method, context, self.incumbent, self.host)
        problem, x = self.snapshot.problem, context.start.x
        given = (solved_apart, problem, x, options, context.budget, context.monitor)
        with concurrent_solves(*given) if known is None else nullcontext(known) as others:
            if others is not None:
                # HiGHS restarts its threads when another number is requested
                self.incumbent.completion.threads = 1
                context = replace(context, threads=1, hear=partial(_exchange, others, self.incumbent))
            outcome = search(self.method, context, self.incumbent, self.host)
            if others is not None and not self.incumbent.proved:
                with suppress(OutOfTime):
                    _exchange(others, self.incumbent, PATIENCE)
            return outcome

    def _checkpoints(self, options: SolveOptions) -> AbstractContextManager[object]:
        """Writes checkpoints while the search runs, and one at its end."""
        file, context, problem = options.checkpoint, self.context, self.snapshot.problem
        if file is None:
            return nullcontext()
        first = Checkpoint(
            __version__, fingerprint(problem), file.command, options.name, options.saved,
            problem.stated.n_columns, 0.0, None, "", None, (), None, [], [], None, None, None,
        )  # fmt: skip
        return CheckpointWriter(
            file, first, self.incumbent, problem.stated, context.monitor,
            lambda: context.checkpoint.multipliers(), bounded=covers_all(problem) and not self.host.ray,
        )  # fmt: skip

    def _with_host_analysis(self) -> Job:
        """After a search that ended early without a solution: find out whether the constraints alone are
        feasible."""
        context = self.context
        host = analyse_host(
            context.problem, context.budget, seed=context.seed, threads=context.threads,
            gap=self.incumbent.gap, at_any_size=True,
        )  # fmt: skip
        if host.x is not None:
            with suppress(OutOfTime), expendable("point of the host"):
                self.incumbent.offer(host.x, "host")
        return replace(self, host=host)

    def _concluded(self, outcome: MethodOutcome, interrupts: Interrupts) -> Result:
        self.guard.armed = False  # the last check is always done
        begin = perf_counter()
        violation = self._checked_again()
        quick = violation is not None and perf_counter() - begin <= UNNOTICED
        return self._deliver(self._packed(outcome, violation, ask=quick), interrupts)

    def _deliver(self, result: Result, interrupts: Interrupts) -> Result:
        """Write the result to the model, the log and the caller; raise exceptions of a callback or
        predictor again."""
        monitor = self.context.monitor
        self.snapshot.remember(result)
        monitor.close()
        monitor.write(lambda width: ending(result, width))
        if monitor.log_failure:
            result = replace(result, message=f"{result.message}; {monitor.log_failure}")
        if interrupts.heard:  # the interrupt may come in the last lines
            result = replace(result, stop_reason=stop_reason(result.status, result.stop_reason, True))
        if monitor.failure is not None:
            monitor.failure.add_note(
                "raised by the callback, a predictor or the method during dovetail.solve; "
                "the best solution so far is in its attribute `result`"
            )
            monitor.failure.result = result  # type: ignore[attr-defined]
            raise monitor.failure
        return result

    def _interrupted_result(self, outcome: MethodOutcome, failure: BaseException) -> Result:
        """The best solution as it was checked before, for a solve that is interrupted at once."""
        reason = StopReason.INTERRUPT if isinstance(failure, KeyboardInterrupt) else StopReason.ERROR
        what = f"{type(failure).__name__}: {failure}".rstrip(": ")
        told = replace(outcome, stop_reason=reason, message="; ".join(filter(None, (outcome.message, what))))
        return self._packed(told, self.incumbent.violation)

    def _packed(self, outcome: MethodOutcome, violation: Violation | None, *, ask: bool = False) -> Result:
        """Pack the result; with `ask`, predictors are evaluated for the classes without any decision, which
        takes as long as a check."""
        result = pack(
            self.snapshot, self.method, self.context, self.host, outcome, violation, self.open_inputs
        )
        result = replace(result, follow_up=self._follow_up(result))
        with expendable("facts for the report"):
            result = replace(result, facts=ProblemFacts.of(self.snapshot.problem, ask=ask))
        if result.status is Status.INFEASIBLE and not self.options.inner:
            result = self._explained(result)
        failures = tuple(self.failures)  # the end of all parts: no line follows
        message = "; ".join(filter(None, (result.message, in_words(failures))))
        return replace(result, settings=self.settings, failures=failures, message=message)

    def _explained(self, result: Result) -> Result:
        """The result of an infeasible problem with what contradicts each other."""
        with expendable("conflict"):
            budget = self.context.budget
            conflict = smallest_conflict(self.snapshot.problem, _answer, budget, result.seconds)
            if conflict is not None:
                message = f"{result.message}; {conflict.in_words}"
                return replace(result, conflict=conflict, message=message, seconds=budget.seconds)
        return result

    def _follow_up(self, result: Result) -> ProblemFollowUp:
        """What answers questions about the result."""
        allowed = result.allowed_gap or 0.0
        if result.objective is not None:
            allowed = max(allowed, ALLOWED_GAIN * abs(result.objective))
        return ProblemFollowUp(
            self.snapshot.problem,
            self.context.problem,
            result.x,
            self.options,
            allowed,
            self.incumbent.row_prices,
        )

    def _checked_again(self) -> Violation | None:
        """The violation of the solution, checked once more before it is returned."""
        incumbent = self.incumbent
        if incumbent.x is None:
            return None
        violation = None
        try:
            with expendable("last check"):
                violation = check(self.context.problem, incumbent.x)
        except Exception:
            if self.context.monitor.failure is None:
                raise  # otherwise the predictor has failed for good
        if violation is None:
            return incumbent.violation  # the violation when the solution was accepted
        if not violation.within():
            incumbent.x = None  # the solution cannot be judged: the error carries no result
            raise PredictorError(
                f"a solution that passed the check before now violates {violation.missed}; "
                "a predictor that answers differently from call to call cannot be optimised."
            )
        return violation


def _without_cost(problem: Problem) -> Problem:
    """The same problem without an objective."""
    return problem.derived(replace(problem.mip, cost=np.zeros(problem.mip.n_columns)), problem.blocks)


def _exchange(others: Others, incumbent: Incumbent, patience: float = 0.0) -> None:
    """Send the best solution to concurrent solves, and offer theirs, through the same check."""
    with expendable("news of concurrent solves"):
        for x, bound in others.exchanged(incumbent.objective, incumbent.x, patience):
            if x is not None:
                incumbent.offer(x, "concurrent")
            incumbent.raise_bound(bound)


def solved_apart(
    problem: Problem,
    method: Method,
    *,
    time_limit: float,
    start: FloatArray | None,
    seed: int,
    callback: Callback,
    others: Others | None = None,
) -> Result:
    """One of several concurrent solves, in its own process."""
    options = SolveOptions.checked(
        method, time_limit=time_limit, gap=0.0, absolute_gap=0.0, seed=seed, start=start, n_jobs=1,
        device=None, cluster=None, callback=callback, log=False,
    )  # fmt: skip
    with Interrupts() as interrupts:
        return solve_model(problem, options, interrupts, others)


def _answer(problem: Problem, seconds: float) -> tuple[bool, FloatArray | None]:
    """Whether a part of an infeasible problem is proved infeasible, and a verified point."""
    options = SolveOptions.checked(
        "auto", time_limit=seconds, gap=0.0, absolute_gap=0.0, seed=0, start=None, n_jobs=1, device=None,
        cluster=None, callback=None, log=False,
    )  # fmt: skip
    with Interrupts() as interrupts:
        result = solve_model(problem, replace(options, inner=True), interrupts)
    return result.status is Status.INFEASIBLE, result.x


def _take_over(
    known: Checkpoint, start: Start, program: StatedProgram, incumbent: Incumbent, monitor: Monitor
) -> None:
    """Continue the course of a checkpoint, and log what it has."""
    incumbent.incumbents += known.incumbents
    incumbent.bounds += known.bounds
    if incumbent.verified is not None and known.archive is not None:
        for x in known.archive:
            incumbent.verified.add(program.sign * program.objective(x), x)
    solution = "no solution" if known.objective is None else f"solution {number(known.objective)}"
    bound = f"bound of {proved_by(start.bound.source)}" if start.bound is not NO_BOUND else "no bound"
    monitor.fact("resumed", f"after {known.seconds:.0f} s, with {solution} and {bound}")


def loaded(result: Result) -> Result:
    """The result after it was written into its model; a refusal by the tool is reported, and the result
    remains valid. Without a solution, an earlier one in the model is withdrawn if the tool allows it."""
    origin = result.origin
    if origin is None:
        return result
    try:
        origin.load(result.answer)
    except Exception as refusal:  # also errors of the tool: the result must not be lost
        told = f"the values are in the result only: {refusal}"
        _log.warning(told)
        return replace(result, message=f"{result.message}; {told}")
    except BaseException as leaving:  # for example a second Ctrl-C
        leaving.result = result  # type: ignore[attr-defined]
        raise
    return result
