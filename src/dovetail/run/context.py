"""What a method is given, and what it gives back.

A method looks for points and offers them to the incumbent; it does not judge them,
pack results or catch signals: `dovetail.solve` does that once, for all methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from dovetail.core.arrays import FloatArray
from dovetail.core.problem import Problem
from dovetail.run.budget import Budget, Clock, StopReason
from dovetail.run.incumbent import AnyIncumbent, over
from dovetail.run.monitor import Monitor
from dovetail.run.processes import Cluster
from dovetail.run.result import Multipliers, WrittenModel
from dovetail.run.work import Stopwatch

T = TypeVar("T")


Restrict = Callable[[FloatArray], FloatArray]


class Archive:
    """Points with their outputs as the networks have them, feasible or not.

    Keeping all of them would cost memory in every solve, so that it is done only while `keeps` is True. For a
    problem with more columns there is a `restricted` archive, which hands its points on to the original.
    """

    def __init__(self, original: Archive | None = None, restrict: Restrict = lambda z: z) -> None:
        self._original, self._restrict, self._keeps = original, restrict, False
        self.points: list[FloatArray] = []
        """Of a restricted archive none: its points belong to the original."""

    @property
    def keeps(self) -> bool:
        """Whether points are kept now."""
        return self._keeps if self._original is None else self._original.keeps

    @keeps.setter
    def keeps(self, wanted: bool) -> None:
        self._keeps = wanted

    def add(self, z: FloatArray) -> None:
        """Keep a point, if points are kept now."""
        if self._original is not None:
            self._original.add(self._restrict(z))
        elif self._keeps:
            self.points.append(z)

    def restricted(self, restrict: Restrict) -> Archive:
        """The same archive for a problem with more columns."""
        return Archive(self, restrict)


@dataclass(frozen=True)
class _Failed:
    """The result of work that failed."""

    reason: Exception


@dataclass(frozen=True)
class Start:
    """Where to begin: a value for every column, and prices from an earlier solve; either may be missing."""

    x: FloatArray | None = None
    multipliers: Multipliers | None = None


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
    """Where blocks may live besides this process."""
    hear: Callable[[], None] = lambda: None
    """Take what concurrent solves have found: asked between two parts of a method."""
    relaxed: Problem | None = None
    """What bounds are proved of, over the same columns, if not of the problem itself (see `Reformulated`)."""
    archive: Archive = field(default_factory=Archive)
    """Points that methods have been at, for those that begin with them."""
    _kept: dict[Callable[..., object], Any] = field(default_factory=dict, repr=False)
    _whole: SolveContext | None = field(default=None, repr=False)
    """The context that this one has a part of the time of."""
    _rewritten: list[dict[Callable[..., object], Any]] = field(default_factory=list, repr=False)
    """What was worked out for rewritten problems of the same solve."""

    @property
    def over(self) -> StopReason | None:
        """Why nothing more is to be done: proved, or stopped, or out of time; None while it goes on."""
        return over(self.incumbent, self.budget)

    def part(self, share: float) -> SolveContext:
        """The same with a share of the time left; what is worked out once stays shared."""
        return self.turn(share * self.budget.left)

    def turn(self, seconds: float, nodes: float = math.inf) -> SolveContext:
        """The same for so many seconds and nodes of search trees; these count alike on any machine."""
        return replace(self, budget=self.budget.part(seconds, nodes=nodes), _whole=self._whole or self)

    def in_turns(self, clock: Clock) -> SolveContext:
        """The same for a computation that takes turns with others."""
        return replace(self, budget=self.budget.in_turns(clock), _whole=self._whole or self)

    def once(self, work: Callable[[SolveContext], T]) -> T:
        """What `work` makes of the problem: made when it is first asked for, then the same for all methods.

        It gets the whole context, lest what one method asks for ends with that method's time. Where it failed
        it is not tried again: all who ask get the same exception.
        """
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
        """Let `once(work)` be this."""
        self._kept[work] = made

    def rewritten(self, problem: Problem, **changes: Any) -> SolveContext:
        """The same solve over another problem, of which nothing is worked out yet."""
        kept: dict[Callable[..., object], Any] = {}
        self._rewritten.append(kept)
        return replace(self, problem=problem, _kept=kept, _whole=None, **changes)

    def close(self) -> None:
        """The solve is over: what was made for it goes, some of which holds this context in turn."""
        for kept in (self._kept, *self._rewritten):
            kept.clear()


@dataclass(frozen=True)
class MethodOutcome:
    """Why a method stopped and what it leaves behind besides the incumbent."""

    stop_reason: StopReason
    iterations: int
    message: str = ""
    residual: float | None = None
    multipliers: Multipliers | None = None
    engine: str = ""
    """What solved its MIPs, by name; "" for none or several."""
    yielded: bool = False
    """Whether it left its time to others and would have more to do."""
    written: WrittenModel | None = None
    closed: bool = False
    """Whether its proof has come to its end: what is left of a gap, no more of it would take away."""
    infeasible: bool = False
    """Whether it is proved that no point passes, what predictors say included."""
    doubt: str = ""
    """Why there may be no point, though that is not proved: said where none is found in the end."""


class Method(Protocol):
    """A whole algorithm."""

    @property
    def name(self) -> str:
        """How logs and results call it."""
        ...

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Offer points to `context.incumbent` until the budget is over or nothing is left to do."""
        ...


@runtime_checkable
class Prepared(Protocol):
    """A method that imports libraries of its own. Optional: it does so before the clock starts."""

    def prepare(self) -> None:
        """Import them, or say which is missing."""
        ...
