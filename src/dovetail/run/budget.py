"""The budget of a solve: a deadline, a memory limit, and a flag that says why the work must stop."""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import Protocol

from dovetail.core.deadline import OutOfTime as OutOfTime
from dovetail.run import work
from dovetail.run.memory import MemoryWatch


class StopReason(StrEnum):
    """Why a solve ended.

    >>> import dovetail as dt
    >>> dt.StopReason.TIME == "time", [reason.value for reason in dt.StopReason][:3]
    (True, ['proved', 'target', 'agreed'])
    """

    PROVED = "proved"
    TARGET = "target"
    AGREED = "agreed"
    TIME = "time"
    MEMORY = "memory"
    ITERATIONS = "iterations"
    EVALUATIONS = "evaluations"
    INTERRUPT = "interrupt"
    STALLED = "stalled"
    CALLBACK = "callback"
    ERROR = "error"


MOST_RESERVED = 0.5
"""Fraction of the time that may be reserved: with slow predictors or imports a short limit still has a
search."""


class Clock(Protocol):
    """The clock of one of several computations that take turns (`run/turns.py`)."""

    def now(self) -> float:
        """Seconds, without the turns of others."""
        ...

    closed: bool
    """Whether there are no more turns, so that the computation must end."""

    @property
    def slice(self) -> float:
        """Seconds left in the current turn, at least a few."""
        ...

    @property
    def effort(self) -> int:
        """Microseconds of its effort so far."""
        ...

    def rest(self) -> None:
        """Let other computations work, if it is their turn."""
        ...

    def undivided(self) -> AbstractContextManager[None]:
        """Inside, the computation keeps its turn."""
        ...


class Budget:
    """The wall time and memory that are left, and whether a stop was requested. `part` makes a shorter budget
    for a piece of work: with its own deadline and, if given, its own limit on memory, but with the same flag,
    so that Ctrl-C stops all pieces."""

    def __init__(
        self,
        seconds: float = math.inf,
        *,
        spent: float = 0.0,
        before: float = 0.0,
        parent: Budget | None = None,
        memory: MemoryWatch | None = None,
        nodes: float = math.inf,
        clock: Clock | None = None,
    ) -> None:
        """`clock` belongs to a computation that takes turns with others, and is shared by the parts of its
        budget. `spent` seconds have passed already, counted as at most half of the time. `before` seconds
        were spent by an earlier process; they count beside the `seconds` of this one. `nodes` limits the
        nodes of search trees counted in this process; at the limit the budget ends as at the deadline."""
        self._last_node = work.total().nodes + nodes
        spent = min(spent, MOST_RESERVED * seconds)
        self._clock: Clock | None = parent._clock if clock is None and parent is not None else clock
        self._start = self._now() - spent - before
        self._seconds = seconds + before
        self._most_reserved = MOST_RESERVED * (seconds - spent)
        self._parent = parent
        self._memory = memory
        self._reserve = 0.0
        self._stopped: StopReason | None = None
        self._stopped_at = math.inf

    def __reduce__(self) -> tuple[type[Budget], tuple[float]]:
        """Only the time left is sent to another process; the budget cannot be stopped there."""
        return Budget, (0.0 if self.over else self.left,)

    def reserve(self, seconds: float) -> None:
        """Keep a part of the time for the work after the search: the last check of its solution. May be
        called again when that time is known better."""
        self._reserve = min(seconds, self._most_reserved)

    def part(self, seconds: float, *, memory: MemoryWatch | None = None, nodes: float = math.inf) -> Budget:
        """A budget of at most `seconds`, and at most what is left here; `memory` and `nodes` limit it too."""
        least = min(seconds, self.left)
        return Budget(least, parent=self, memory=memory or self._memory, nodes=min(nodes, self.nodes_left))

    def stop(self, reason: StopReason) -> None:
        """Ask all work under this budget and its parents to end. The first reason is kept, except that an
        interrupt by a person replaces it."""
        if self._parent is not None:
            self._parent.stop(reason)
        elif self._stopped is None:
            self._stopped, self._stopped_at = reason, time.perf_counter()
        elif reason is StopReason.INTERRUPT:
            self._stopped = reason

    @property
    def seconds(self) -> float:
        """Seconds since the budget began."""
        return self._now() - self._start

    @property
    def limit(self) -> float:
        """Seconds in total."""
        return self._seconds

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        left = self._seconds - self._reserve - self.seconds
        if self._clock is not None and self._clock.closed:
            return 0.0
        if self._parent is not None and self._parent._clock is not self._clock:
            left = min(left, self._parent.left)
        return max(0.0, left)

    @property
    def effort(self) -> int:
        """Microseconds of effort so far, without that of others who take turns."""
        return work.total().effort if self._clock is None else self._clock.effort

    @property
    def deadline(self) -> float:
        """Seconds until the work must end, the turns of others included: for an engine, whose own clock
        continues while other computations work."""
        return self.left if self._clock is None or self._parent is None else self._parent.deadline

    def _now(self) -> float:
        return time.perf_counter() if self._clock is None else self._clock.now()

    @property
    def nodes_left(self) -> float:
        """Nodes of search trees left, never negative."""
        return max(0.0, self._last_node - work.total().nodes)

    @property
    def late(self) -> float:
        """Seconds since the work should have ended; negative while it may go on."""
        if self._parent is not None:
            return self._parent.late
        since_stop = time.perf_counter() - self._stopped_at
        return max(self.seconds + self._reserve - self._seconds, since_stop)

    @property
    def stopped(self) -> StopReason | None:
        """Why a stop was requested, if it was."""
        return self._parent.stopped if self._parent is not None else self._stopped

    def in_turns(self, clock: Clock) -> Budget:
        """The same budget for a computation that takes turns."""
        return Budget(self.left, parent=self, memory=self._memory, clock=clock)

    @property
    def slice(self) -> float:
        """Seconds until others have a turn, for an engine, which cannot rest; infinite without others."""
        return math.inf if self._clock is None else self._clock.slice

    def undivided(self) -> AbstractContextManager[None]:
        """Around work that others must not see half done: no turn ends inside."""
        return nullcontext() if self._clock is None else self._clock.undivided()

    @property
    def over(self) -> StopReason | None:
        """Why the work must end now, or None. The computation pauses here while other computations have
        turns."""
        self.rest()
        return self.ended

    def rest(self) -> None:
        """A point between two long steps at which other computations may have a turn."""
        if self._clock is not None:
            self._clock.rest()

    @property
    def ended(self) -> StopReason | None:
        """The same as `over`, without giving the turn to others."""
        if self.stopped:
            return self.stopped
        if self._memory is not None and self._memory.over:
            return StopReason.MEMORY
        return StopReason.TIME if self.left <= 0.0 or self.nodes_left <= 0.0 else None
