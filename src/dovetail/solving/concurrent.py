"""`n_jobs=` of a solve: the same problem in other processes with other seeds, where it can travel there.

Threads have little to share in one solve: descents are chains of small LPs and small networks. Searches with
other seeds need nothing of each other and end in other local optima; the best of them is the answer. With
very many blocks the blocks are spread instead (`template_pricing.hiring`).

`ConcurrentSolve` is the far side: an object that searches by itself and answers `better_than(objective)` with
a point or None. What the others find is fetched, never waited for long. Only points travel: bounds and proofs
are made here, where the result's certificate is. A process that is lost, or fails, is one less; the solve
here goes on.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from threading import Thread

from dovetail.core.arrays import FloatArray
from dovetail.core.problem import Problem
from dovetail.decomposition.hiring import WORTH_SPREADING
from dovetail.methods.auto import Auto
from dovetail.run.budget import Budget
from dovetail.run.environment import threads
from dovetail.run.failures import expendable, is_users
from dovetail.run.monitor import Event, Monitor
from dovetail.run.processes import CannotTravel, Line, Lost, Process, Recipe, pickled, read_reply
from dovetail.run.result import Result
from dovetail.solving.options import SolveOptions

Solve = Callable[..., Result]
"""(problem, method, time_limit=, start=, seed=, callback=) -> what `dovetail.solve` returns."""
LEAST_SECONDS = 5.0
"""Processes take three seconds to start: a shorter solve would not hear from them."""
HANDOVER_SECONDS = 1.0
"""Before the end: what they have found by then is fetched, and checked here."""
PATIENCE = 0.25
"""Seconds, for the answers of all: a process in the middle of a long call to an engine is heard next time."""


@contextmanager
def concurrent_solves(
    solve: Solve,
    problem: Problem,
    start: FloatArray | None,
    options: SolveOptions,
    budget: Budget,
    monitor: Monitor,
) -> Iterator[ConcurrentSolves | None]:
    """One solve less than there are jobs, by `solve`, for as long as this one takes; None where there are
    none."""
    others = None
    with expendable("start of concurrent solves"):
        if _worthwhile(problem, options, budget):
            others = _begun(solve, problem, start, options, budget, monitor)
    if others is None:
        yield None
        return
    try:
        with threads(1):  # every core has a solve of its own
            yield others
    finally:
        others.close()


def _worthwhile(problem: Problem, options: SolveOptions, budget: Budget) -> bool:
    """Whether it would be more of the same: `auto` with networks, ended by the clock and not by an effort."""
    samples = sum(block.samples for block in problem.blocks)
    here = options.cluster is None and options.device in (None, "cpu")
    many = options.threads > 1 and 0 < samples < WORTH_SPREADING
    by_clock = isinstance(options.method, Auto) and options.method.effort is None
    return here and many and by_clock and budget.left >= LEAST_SECONDS


def _begun(
    solve: Solve,
    problem: Problem,
    start: FloatArray | None,
    options: SolveOptions,
    budget: Budget,
    monitor: Monitor,
) -> ConcurrentSolves | None:
    """Every other one leaves proofs alone and searches all the time: one proof is enough, the one here."""
    method, jobs, deadline = options.method, options.threads, time.time() + budget.left - HANDOVER_SECONDS
    assert isinstance(method, Auto)
    recipes = [
        partial(
            ConcurrentSolve, solve, problem, start,
            replace(method, exact=method.exact and number % 2 == 0), options.seed + number, jobs, deadline,
        )
        for number in range(1, jobs)
    ]  # fmt: skip
    try:
        others = ConcurrentSolves(process_lines(recipes), monitor.say)
    except CannotTravel as reason:
        monitor.fact("n_jobs", f"one solve with {jobs} threads: other processes cannot have it ({reason})")
        return None
    last = options.seed + jobs - 1
    monitor.fact("n_jobs", f"{jobs} solves at once, seeds {options.seed} to {last}; points are shared")
    return others


def process_lines(recipes: Sequence[Recipe]) -> list[Process]:
    """A process for each recipe; what cannot travel is said before anything is started."""
    for recipe in recipes:
        pickled([recipe], pickle.dumps)
    return [Process([recipe]) for recipe in recipes]


class ConcurrentSolves:
    """What is asked of them, and what came back."""

    def __init__(self, lines: Sequence[Line], say: Callable[[str], None]) -> None:
        self._lines, self._say = dict(enumerate(lines, start=1)), say
        self._asked = set(self._lines)
        """Those whose answer is still to come; the first one is that they are ready."""
        self._with_each(self._lines, lambda number, line: line.begin())

    def arrived(self, objective: float) -> list[FloatArray]:
        """Points that are better than `objective` (NaN: any), of those who answer at once."""
        points, until = list[FloatArray](), time.monotonic() + PATIENCE

        def ask(number: int, line: Line) -> None:
            line.send(pickle.dumps(("better_than", [(objective,)])))
            self._asked.add(number)

        def hear(number: int, line: Line) -> None:
            reply = line.receive(max(until - time.monotonic(), 0.0))
            if reply is not None:
                self._asked.discard(number)
                points.extend(_points(reply))

        self._with_each(set(self._lines) - self._asked, ask)
        self._with_each(self._asked, hear)
        return points

    def close(self) -> None:
        """End them, whatever they do."""
        for line in self._lines.values():
            line.end()
        self._lines.clear()
        self._asked.clear()

    def _with_each(self, numbers: Iterable[int], work: Callable[[int, Line], None]) -> None:
        """Those that are lost meanwhile go, and that is said."""
        for number in sorted(numbers):
            try:
                work(number, self._lines[number])
            except Lost as reason:
                self._say(f"concurrent solve {number} has ended ({reason})")
                self._asked.discard(number)
                self._lines.pop(number).end()
                failure = reason.__cause__
                if isinstance(failure, Exception) and not is_users(failure):
                    with expendable(f"concurrent solve {number}"):
                        raise failure from None


def _points(reply: bytes) -> list[FloatArray]:
    """Of an answer; none in that which says that the process is ready."""
    answered, answer = read_reply(reply)
    if not answered:
        raise Lost(f"{type(answer).__name__}: {answer}") from answer
    return [x for x in answer if x is not None] if isinstance(answer, list) else []


class ConcurrentSolve:
    """Solves with one seed after the other until the time is over."""

    def __init__(
        self,
        solve: Solve,
        problem: Problem,
        start: FloatArray | None,
        method: Auto,
        seed: int,
        step: int,
        deadline: float,
    ) -> None:
        self._solve, self._problem, self._start, self._method = solve, problem, start, method
        self._seeds, self._deadline = count(seed, step), deadline
        self._best: tuple[float, FloatArray] | None = None
        self._failure: Exception | None = None
        Thread(target=self._run, daemon=True).start()  # a process that is ended does not wait for it

    def better_than(self, objective: float) -> FloatArray | None:
        """The best point, if it is better than that of whoever asks; NaN: they have none."""
        if self._best is None:
            if self._failure is not None:
                raise self._failure
            return None
        mine, x = self._best
        return x if math.isnan(objective) or self._gain(mine, objective) > 0.0 else None

    def _run(self) -> None:
        ended = False
        while not ended and self._deadline > time.time():
            try:
                result = self._solve(
                    self._problem, self._method, time_limit=self._deadline - time.time(), start=self._start,
                    seed=next(self._seeds), callback=self._see,
                )  # fmt: skip
            except Exception as failure:  # the predictor's own, mostly: told when somebody asks
                self._failure, ended = failure, True
            else:
                self._keep(result.objective, result.x)
                ended = _settled(result)

    def _see(self, event: Event) -> None:
        self._keep(event.objective, event.x)

    def _keep(self, objective: float | None, x: FloatArray | None) -> None:
        if x is None or objective is None:
            return
        if self._best is None or self._gain(objective, self._best[0]) > 0.0:
            self._best = objective, x

    def _gain(self, objective: float, over: float) -> float:
        return self._problem.stated.sign * (over - objective)


def _settled(result: Result) -> bool:
    """Whether another seed would find nothing else."""
    return result.status.value in ("optimal", "infeasible", "unbounded")
