"""The far side of a concurrent solve: searches by itself in its own process, and says what is best."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import count
from threading import Thread

from dovetail.core.arrays import FloatArray
from dovetail.core.problem import Problem
from dovetail.methods.auto import Auto
from dovetail.run.monitor import Event
from dovetail.run.result import Result

Solve = Callable[..., Result]
"""(problem, method, time_limit=, start=, seed=, callback=) -> what `dovetail.solve` returns."""


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
