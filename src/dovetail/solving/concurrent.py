"""`n_jobs=` of a solve: the same problem in other processes with other seeds, where it can travel there.

Threads have little to share in one solve: descents are chains of small LPs and small networks. Searches with
other seeds need nothing of each other and end in other local optima; the best of them is the answer. With
very many blocks the blocks are spread instead (`template_pricing.hiring`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from threading import Thread

from dovetail.core.arrays import FloatArray
from dovetail.core.problem import Problem
from dovetail.methods.auto import Auto
from dovetail.methods.template_pricing.hiring import MANY_BLOCKS
from dovetail.run.budget import Budget
from dovetail.run.concurrent_solves import ConcurrentSolves
from dovetail.run.environment import threads
from dovetail.run.monitor import Event, Monitor
from dovetail.run.process_workers import process_lines
from dovetail.run.remote_workers import CannotTravel
from dovetail.run.result import Result
from dovetail.solving.options import SolveOptions

LEAST_SECONDS = 5.0
"""Processes take three seconds to start: a shorter solve would not hear from them."""
HANDOVER_SECONDS = 1.0
"""Before the end: what they have found by then is fetched, and checked here."""


@contextmanager
def concurrent_solves(
    problem: Problem, start: FloatArray | None, options: SolveOptions, budget: Budget, monitor: Monitor
) -> Iterator[ConcurrentSolves | None]:
    """One solve less than there are jobs, for as long as this one takes; None where there are none."""
    others = (
        _begun(problem, start, options, budget, monitor) if _worthwhile(problem, options, budget) else None
    )
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
    many = options.threads > 1 and 0 < samples < MANY_BLOCKS
    by_clock = isinstance(options.method, Auto) and options.method.effort is None
    return here and many and by_clock and budget.left >= LEAST_SECONDS


def _begun(
    problem: Problem, start: FloatArray | None, options: SolveOptions, budget: Budget, monitor: Monitor
) -> ConcurrentSolves | None:
    """Every other one leaves proofs alone and searches all the time: one proof is enough, the one here."""
    method, jobs, deadline = options.method, options.threads, time.time() + budget.left - HANDOVER_SECONDS
    assert isinstance(method, Auto)
    recipes = [
        partial(
            ConcurrentSolve, problem, start, replace(method, exact=method.exact and number % 2 == 0),
            options.seed + number, jobs, deadline,
        )
        for number in range(1, jobs)
    ]  # fmt: skip
    try:
        others = ConcurrentSolves(process_lines([[recipe] for recipe in recipes]), monitor.say)
    except CannotTravel as reason:
        monitor.fact("n_jobs", f"one solve with {jobs} threads: other processes cannot have it ({reason})")
        return None
    last = options.seed + jobs - 1
    monitor.fact("n_jobs", f"{jobs} solves at once, seeds {options.seed} to {last}; points are shared")
    return others


class ConcurrentSolve:
    """The far side: solves with one seed after the other until the time is over, and says what is best."""

    def __init__(
        self, problem: Problem, start: FloatArray | None, method: Auto, seed: int, step: int, deadline: float
    ) -> None:
        self._problem, self._start, self._method = problem, start, method
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
        import dovetail as dt  # in its own process, and a user like any other

        ended = False
        while not ended and self._deadline > time.time():
            try:
                result = dt.solve(
                    self._problem, self._method, time_limit=self._deadline - time.time(), start=self._start,
                    seed=next(self._seeds), callback=self._see, log=False,
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
