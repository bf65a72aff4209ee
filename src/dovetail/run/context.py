"""The input and output of a method.

A method searches for points and offers them to the incumbent. `dovetail.solve` checks them, packs results
and handles signals, once for all methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from dovetail.core.arrays import FloatArray
from dovetail.core.problem import Problem
from dovetail.run.bound import NO_BOUND, Bound
from dovetail.run.budget import Budget, Clock, StopReason
from dovetail.run.incumbent import AnyIncumbent, over
from dovetail.run.monitor import Monitor
from dovetail.run.processes import Cluster
from dovetail.run.result import Multipliers, WrittenModel
from dovetail.run.work import Stopwatch

T = TypeVar("T")


@dataclass(eq=False)
class CheckpointSource:
    """What a method gives to the checkpoints of its solve."""

    multipliers: Callable[[], Multipliers | None] = lambda: None


@dataclass(frozen=True)
class _Failed:
    """Marks work that failed, in place of its result."""

    reason: Exception


@dataclass(frozen=True)
class Start:
    """Where a search begins: a value for every column, multipliers and a bound of an earlier solve; each may
    be missing."""

    x: FloatArray | None = None
    multipliers: Multipliers | None = None
    source: str = "start"
    """The source of the point."""
    bound: Bound = NO_BOUND
    """A bound of the same problem."""


@dataclass(frozen=True)
class SolveContext:
    """One solve, as a method sees it."""

    problem: Problem
    incumbent: AnyIncumbent
    budget: Budget
    monitor: Monitor
    stopwatch: Stopwatch
    start: Start = field(default_factory=Start)
    seed: int = 0
    threads: int = 1
    device: str | None = None
    cluster: Cluster | None = None
    """Workers that may hold blocks, if there are any."""
    hear: Callable[[], None] = lambda: None
    """Fetch the solutions and bounds of concurrent solves; called between two parts of a method."""
    relaxed: Problem | None = None
    """The problem that bounds are proved for, over the same columns, if it differs (see `Reformulated`)."""
    checkpoint: CheckpointSource = field(default_factory=CheckpointSource)
    _kept: dict[Callable[..., object], Any] = field(default_factory=dict, repr=False)
    _whole: SolveContext | None = field(default=None, repr=False)
    """The parent context, of whose time this one has a share."""
    _rewritten: list[dict[Callable[..., object], Any]] = field(default_factory=list, repr=False)
    """Results for rewritten problems of the same solve."""

    @property
    def over(self) -> StopReason | None:
        """Why the solve is over: proved, stopped or out of time; None while it continues."""
        return over(self.incumbent, self.budget)

    def part(self, share: float) -> SolveContext:
        """The same context with a share of the time left; shared results stay shared."""
        return self.turn(share * self.budget.left)

    def turn(self, seconds: float, nodes: float = math.inf) -> SolveContext:
        """The same context with limits on seconds and on nodes of search trees; nodes do not depend on the
        machine."""
        return replace(self, budget=self.budget.part(seconds, nodes=nodes), _whole=self._whole or self)

    def in_turns(self, clock: Clock) -> SolveContext:
        """The same context for a computation that takes turns."""
        return replace(self, budget=self.budget.in_turns(clock), _whole=self._whole or self)

    def once(self, work: Callable[[SolveContext], T]) -> T:
        """The result of `work` for this problem, computed on first use and shared by all methods. `work` gets
        the whole context, so that a result does not end with one method's time. Failed work is not repeated:
        all callers get the same exception."""
        if work not in self._kept:
            try:
                with self.budget.undivided():
                    self._kept[work] = work(self._whole or self)
            except Exception as failure:
                self._kept[work] = _Failed(failure)
                raise
        kept = self._kept[work]
        if isinstance(kept, _Failed):
            raise kept.reason
        return cast(T, kept)

    def keep(self, work: Callable[[SolveContext], T | None], made: T) -> None:
        """Set the result of `once(work)`."""
        self._kept[work] = made

    def rewritten(self, problem: Problem, **changes: Any) -> SolveContext:
        """The same solve over another problem, without shared results."""
        kept: dict[Callable[..., object], Any] = {}
        self._rewritten.append(kept)
        return replace(self, problem=problem, _kept=kept, _whole=None, **changes)

    def close(self) -> None:
        """End the solve: shared results are dropped, because some of them hold this context."""
        for kept in (self._kept, *self._rewritten):
            kept.clear()


@dataclass(frozen=True)
class MethodOutcome:
    """Why a method stopped, and its results other than the incumbent."""

    stop_reason: StopReason
    iterations: int
    message: str = ""
    residual: float | None = None
    multipliers: Multipliers | None = None
    engine: str = ""
    """The name of the engine of its MIPs; "" for none or several."""
    yielded: bool = False
    """Whether the method stopped early to leave time to others and could continue."""
    written: WrittenModel | None = None
    closed: bool = False
    """Whether its proof is complete, so that it cannot close the remaining gap any further."""
    infeasible: bool = False
    """Whether infeasibility is proved, predictors included."""
    doubt: str = ""
    """Why there may be no solution, without a proof; used if none is found."""


class Method(Protocol):
    """A whole algorithm."""

    @property
    def name(self) -> str:
        """The name in logs and results."""
        ...

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Offer points to `context.incumbent` until the budget is over or the work is done."""
        ...


@runtime_checkable
class PreparedMethod(Protocol):
    """A method that imports libraries of its own before the clock starts (optional)."""

    def prepare(self) -> None:
        """Import the libraries, or say which one is missing."""
        ...
