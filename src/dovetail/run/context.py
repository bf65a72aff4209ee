"""What a method is given, and what it gives back.

A method looks for points and offers them to the incumbent; it does not judge them,
pack results or catch signals: `dovetail.solve` does that once, for all methods.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from dovetail.core.arrays import FloatArray
from dovetail.core.problem import Problem
from dovetail.run.budget import Budget, StopReason
from dovetail.run.incumbent import Incumbent
from dovetail.run.monitor import Monitor
from dovetail.run.result import Multipliers
from dovetail.run.stopwatch import Stopwatch


@dataclass(frozen=True)
class Start:
    """Where to begin: a value for every column, and prices from an earlier solve; either may be missing."""

    x: FloatArray | None = None
    multipliers: Multipliers | None = None


@dataclass(frozen=True)
class SolveContext:
    """One solve, as a method sees it."""

    problem: Problem
    incumbent: Incumbent
    budget: Budget
    monitor: Monitor
    stopwatch: Stopwatch
    start: Start = field(default_factory=Start)
    seed: int = 0
    threads: int = 1
    device: str | None = None


@dataclass(frozen=True)
class MethodOutcome:
    """Why a method stopped and what it leaves behind besides the incumbent."""

    stop_reason: StopReason
    iterations: int
    message: str = ""
    residual: float | None = None
    multipliers: Multipliers | None = None


class Method(Protocol):
    """A whole algorithm."""

    @property
    def name(self) -> str:
        """How logs and results call it."""
        ...

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Offer points to `search.incumbent` until the budget is over or nothing is left to do."""
        ...


@runtime_checkable
class Prepared(Protocol):
    """A method that imports libraries of its own. Optional: it does so before the clock starts."""

    def prepare(self) -> None:
        """Import them, or say which is missing."""
        ...
