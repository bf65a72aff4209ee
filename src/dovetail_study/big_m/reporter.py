"""From SCIP's events to the incumbent, the log and the callback; and what one run of the baseline takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import EngineError
from dovetail.core.problem import Problem
from dovetail.mip import engine_for
from dovetail.run.context import SolveContext
from dovetail.run.engine import MipSession, Quadratic
from dovetail.run.failures import expendable
from dovetail.run.memory import MemoryWatch
from dovetail.run.progress import Progress
from dovetail.run.stopwatch import Stopwatch
from dovetail.run.trace import Residual
from dovetail.run.written_model import ModelEnd, WrittenModel

FIRST_NODES, GROWTH = 10, 1.1
"""The first nodes are all reported; after them each time their number has grown by a tenth."""
COMPLETION_SECONDS = 5.0
"""For the nearest point of the host: a QP without integers, quick where SCIP gets anywhere at all."""


class Reporter:
    """Carries what SCIP finds to the incumbent, the log and the callback."""

    def __init__(self, context: SolveContext) -> None:
        self._context, self._host = context, context.problem.mip.minimised()
        self._progress = Progress(context)
        self._next_node = 1.0
        self.reported = math.nan
        """SCIP's objective at the last point it reported."""

    def point(self, x: FloatArray) -> None:
        """A new best point of SCIP."""
        objective, self.reported = self.offer(x), self._host.objective(x)
        self._report(objective, self.reported, prediction_errors(self._context.problem, x))

    def offer(self, x: FloatArray) -> float:
        """Offered; if it is refused, once more as the nearest point of the host."""
        objective = self._context.incumbent.offer(x, "scip")
        if math.isnan(objective):
            nearest = self._nearest(x)
            if nearest is not None:
                objective = self._context.incumbent.offer(nearest, "scip")
        return objective

    def _nearest(self, x: FloatArray) -> FloatArray | None:
        """The point of the host nearest to SCIP's, with SCIP's integers."""
        host, ones = self._host, np.ones(self._host.n_columns)
        rounded = np.clip(np.round(x), host.lower, host.upper)
        lower = np.where(host.integer, rounded, host.lower)
        upper = np.where(host.integer, rounded, host.upper)
        objective = Quadratic(np.zeros_like(ones), 0.0, ones, x)
        budget = self._context.budget.part(COMPLETION_SECONDS)
        with expendable("completion of SCIP's point", EngineError), self._context.stopwatch.measure("check"):
            return self._session.solve(objective, budget=budget, bounds=(lower, upper)).x
        return None

    @cached_property
    def _session(self) -> MipSession:
        relaxed, columns = self._host.relaxed(), np.arange(self._host.n_columns)
        engine = engine_for("auto", relaxed, columns)
        return engine.load(relaxed, columns, seed=self._context.seed, threads=self._context.threads)

    def nodes(self, count: int) -> None:
        """SCIP has solved so many nodes."""
        if count >= self._next_node:
            self._next_node = count + 1 if count < FIRST_NODES else math.ceil(GROWTH * count)
            self._report(math.nan, math.nan, ())

    def _report(self, objective: float, raw: float, errors: tuple[Residual, ...]) -> None:
        self._progress.record(raw, objective, residuals=errors)


def prediction_errors(problem: Problem, x: FloatArray) -> tuple[Residual, ...]:
    """How far SCIP's outputs are from what the networks say of SCIP's inputs."""
    truth = problem.predict(x)
    return tuple(
        Residual(block.name, "outputs", float(np.max(np.abs(truth - x)[block.outputs])), 0.0)
        for block in problem.blocks
    )


class Account:
    """Filled while the model is written and solved; settled when it ends."""

    def __init__(self, stopwatch: Stopwatch, memory: MemoryWatch) -> None:
        self._stopwatch = stopwatch
        self.memory = memory
        self._solving_seconds: float | None = None
        self.size: tuple[int, int] | None = None
        """Variables and constraints, once all are written."""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Count the body as writing."""
        with self._stopwatch.measure("build"):
            yield

    @contextmanager
    def solving(self) -> Iterator[None]:
        """Count the body as solving, but for the checks of points, which run inside it."""
        stopwatch = self._stopwatch
        engine, check = stopwatch.read("engine"), stopwatch.read("check")
        try:
            with stopwatch.measure("engine"):
                yield
        finally:
            stopwatch.deduct("engine", stopwatch.read("check") - check)
            self._solving_seconds = stopwatch.read("engine") - engine

    @property
    def built(self) -> str:
        """What was written, in words."""
        variables, constraints = self.size or (0, 0)
        seconds = self._stopwatch.read("build")
        return f"{variables:,} variables and {constraints:,} constraints written in {seconds:.1f} s"

    def shortage(self, while_what: str) -> str:
        """That memory ran out, in words, and what helps."""
        watch = self.memory
        helps = (
            "the machine has no more to give" if watch.bound_by_machine else "BigM(memory_limit=) gives more"
        )
        return f"out of memory: {watch} while {while_what} ({helps})"

    def settled(self, end: ModelEnd, said: str | None = None) -> WrittenModel:
        """The record of it."""
        self.memory.look()
        variables, constraints = self.size or (None, None)
        return WrittenModel(
            end,
            self._stopwatch.read("build"),
            self._solving_seconds,
            self.memory.peak,
            variables,
            constraints,
            said,
        )
