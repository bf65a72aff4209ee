"""`n_jobs=` of a solve: the same problem in further processes, if the problem can be pickled.

Threads do not help much in one solve: descents are chains of small LPs and small networks. Searches with
other seeds are independent and end in other local optima; the best solution is the answer. Proofs that take
turns in one process can run in processes of their own: every other process runs one proof beside its
searches, the rest only search. With very many blocks the blocks are distributed instead
(`decomposition/hiring.py`).

`ConcurrentSolve` runs in the other process: it solves by itself and answers `exchange(objective, x)`, which
sends the best solution known here; the answer is a better solution or None, and its best proved bound. The
solve does not wait for the others. If a process is lost or fails, the solve continues without it.
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
from typing import Protocol

from dovetail.core.arrays import FloatArray
from dovetail.core.problem import Problem
from dovetail.decomposition.hiring import WORTH_SPREADING
from dovetail.methods.auto import Auto
from dovetail.run.bound import NO_BOUND, Bound, Scope, Support
from dovetail.run.budget import Budget
from dovetail.run.environment import threads
from dovetail.run.failures import expendable, is_users
from dovetail.run.monitor import Event, Monitor
from dovetail.run.processes import Line, NotPicklable, Process, Recipe, WorkerLost, pickled, read_reply
from dovetail.run.result import BoundKind, Result
from dovetail.solving.options import SolveOptions

News = tuple[FloatArray | None, Bound]
"""What another process has found: a better point or None, and its bound."""
Solve = Callable[..., Result]
"""The type of a solve function: (problem, method, time_limit=, start=, seed=, callback=, others=) -> the
result of `dovetail.solve`."""
LEAST_SECONDS = 5.0
"""Shorter solves start no processes, because starting takes three seconds."""
HANDOVER_SECONDS = 1.0
"""Seconds before the end when the results of the others are fetched and checked."""
PATIENCE = 0.25
"""Seconds to wait for the answers of all at the end. No call waits before that: an answer that comes late is
read after the next turn."""


@contextmanager
def concurrent_solves(
    solve: Solve,
    problem: Problem,
    start: FloatArray | None,
    options: SolveOptions,
    budget: Budget,
    monitor: Monitor,
) -> Iterator[ConcurrentSolves | None]:
    """Start `n_jobs` - 1 solves in other processes for the duration of this one; None if they are not
    useful."""
    others = None
    with expendable("start of concurrent solves"):
        if _worthwhile(problem, options, budget):
            others = _begun(solve, problem, start, options, budget, monitor)
    if others is None:
        yield None
        return
    try:
        with threads(1):  # every core has a solve already
            yield others
    finally:
        others.close()


def _worthwhile(problem: Problem, options: SolveOptions, budget: Budget) -> bool:
    """Whether concurrent solves help: `auto` with networks, limited by time and not by effort."""
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
    """Start the processes. The first process has the first suitable proof, the second only searches, and so
    on."""
    method, jobs, deadline = options.method, options.threads, time.time() + budget.left - HANDOVER_SECONDS
    assert isinstance(method, Auto)
    recipes = [
        partial(
            ConcurrentSolve, solve, problem, start,
            replace(method, exact=method.exact and number % 2 == 1, proof=number // 2),
            options.seed + number, jobs, deadline,
        )
        for number in range(1, jobs)
    ]  # fmt: skip
    try:
        others = ConcurrentSolves(process_lines(recipes), monitor.say)
    except NotPicklable as reason:
        monitor.fact(
            "n_jobs",
            f"one solve with {jobs} threads: the problem cannot be sent to other processes ({reason})",
        )
        return None
    last = options.seed + jobs - 1
    monitor.fact(
        "n_jobs", f"{jobs} solves at once, seeds {options.seed} to {last}; they share solutions and bounds"
    )
    return others


def process_lines(recipes: Sequence[Recipe]) -> list[Process]:
    """A process for each recipe; a recipe that cannot be pickled raises before any process is started."""
    for recipe in recipes:
        pickled([recipe], pickle.dumps)
    return [Process([recipe]) for recipe in recipes]


class Others(Protocol):
    """Solves of the same problem in other processes."""

    def exchanged(self, objective: float, x: FloatArray | None, patience: float = 0.0) -> list[News]:
        """Send the best solution, and receive better ones and bounds."""
        ...


class ConcurrentSolves:
    """The connections to the concurrent solves."""

    def __init__(self, lines: Sequence[Line], say: Callable[[str], None]) -> None:
        self._lines, self._say = dict(enumerate(lines, start=1)), say
        self._asked = set(self._lines)
        """The processes whose answer is pending; their first answer says that they are ready."""
        self._told: dict[int, FloatArray | None] = {}
        """The last solution that was sent to each process."""
        self._call_each(self._lines, lambda number, line: line.begin())

    def exchanged(self, objective: float, x: FloatArray | None, patience: float = 0.0) -> list[News]:
        """Send the best point known here to all processes. The points better than `objective` (NaN: any)
        and the bounds of the processes that have answered; after the question, wait for `patience`
        seconds."""
        news = list[News]()

        def ask(number: int, line: Line) -> None:
            line.send(pickle.dumps(("exchange", [(objective, None if self._told.get(number) is x else x)])))
            self._told[number] = x
            self._asked.add(number)

        def hear(number: int, line: Line) -> None:
            reply = line.receive(max(until - time.monotonic(), 0.0))
            if reply is not None:
                self._asked.discard(number)
                news.extend(_news(reply))

        until = -math.inf
        self._call_each(self._asked, hear)
        self._call_each(set(self._lines) - self._asked, ask)
        until = time.monotonic() + patience
        self._call_each(self._asked, hear)
        return news

    def close(self) -> None:
        """End all processes."""
        for line in self._lines.values():
            line.end()
        self._lines.clear()
        self._asked.clear()

    def _call_each(self, numbers: Iterable[int], work: Callable[[int, Line], None]) -> None:
        """Call each process; lost ones are dropped and logged."""
        for number in sorted(numbers):
            try:
                work(number, self._lines[number])
            except WorkerLost as reason:
                self._say(f"concurrent solve {number} has ended ({reason})")
                self._asked.discard(number)
                self._lines.pop(number).end()
                failure = reason.__cause__
                if isinstance(failure, Exception) and not is_users(failure):
                    with expendable(f"concurrent solve {number}"):
                        raise failure from None


def _news(reply: bytes) -> list[News]:
    """The news in an answer; None in the first one."""
    answered, answer = read_reply(reply)
    if not answered:
        raise WorkerLost(f"{type(answer).__name__}: {answer}") from answer
    found = answer if isinstance(answer, list) else []
    return [(x, bound) for x, bound in found if x is not None or math.isfinite(bound.value)]


class ConcurrentSolve:
    """Solves with one seed after the other until the time is over (in another process)."""

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
        self._bound = NO_BOUND
        self._failure: Exception | None = None
        self._heard: FloatArray | None = None
        """The last solution that the caller sent; only the thread that answers the caller writes it."""
        self._offered: FloatArray | None = None
        """The last of these solutions that was offered to the solve in this process; only the solve's thread
        writes it."""
        Thread(target=self._run, daemon=True).start()  # the end of a process is not awaited

    def exchange(self, objective: float, x: FloatArray | None = None) -> News:
        """Hear of the caller's best point. The best point here, if it is better (than NaN: any), and the
        bound."""
        self._heard = self._heard if x is None else x
        if self._best is None:
            if self._failure is not None:
                raise self._failure
            return None, self._bound
        mine, found = self._best
        better = math.isnan(objective) or self._gain(mine, objective) > 0.0
        return found if better else None, self._bound

    def exchanged(self, objective: float, x: FloatArray | None, patience: float = 0.0) -> list[News]:
        """What the caller has sent since the last time, for the solve in this process."""
        offered, self._offered = self._offered, self._heard
        return [] if self._offered is None or self._offered is offered else [(self._offered, NO_BOUND)]

    def _run(self) -> None:
        ended = False
        while not ended and self._deadline > time.time():
            self._offered = None
            try:
                result = self._solve(
                    self._problem, self._method, time_limit=self._deadline - time.time(), start=self._start,
                    seed=next(self._seeds), callback=self._on_event, others=self,
                )  # fmt: skip
            except Exception as failure:  # usually an exception of the predictor: reported on request
                self._failure, ended = failure, True
            else:
                self._keep(result.objective, result.x)
                self._prove(result.bound, result.bound_kind)
                ended = result.status.value in ("optimal", "infeasible", "unbounded")

    def _on_event(self, event: Event) -> None:
        self._keep(event.objective, event.x)
        self._prove(event.bound, BoundKind.ENGINE)  # the support of the bound is known at the end

    def _prove(self, bound: float | None, kind: BoundKind) -> None:
        if bound is None or kind in (BoundKind.NONE, BoundKind.ESTIMATE):
            return
        support = Support.PROOF if kind is BoundKind.PROVEN else Support.ENGINE
        proved = Bound(self._problem.stated.sign * bound, "concurrent", Scope.WRITTEN, support)
        if proved.better_than(self._bound):
            self._bound = proved

    def _keep(self, objective: float | None, x: FloatArray | None) -> None:
        if x is None or objective is None:
            return
        if self._best is None or self._gain(objective, self._best[0]) > 0.0:
            self._best = objective, x

    def _gain(self, objective: float, over: float) -> float:
        return self._problem.stated.sign * (over - objective)
