"""Time, memory and permission to go on: a deadline, a watch, and a flag that says why work must stop."""

from __future__ import annotations

import math
import time
from enum import StrEnum

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
"""Of all the time: with slow predictors or imports a short limit still has a search."""


class Budget:
    """Wall seconds left, whether memory is, and whether somebody asked to stop.

    `part` gives a shorter budget for a piece of the work: it has a deadline of its own, and a watch over
    memory if it is given one, but shares the flag, so that Ctrl-C stops every piece at once.
    """

    def __init__(
        self,
        seconds: float = math.inf,
        *,
        spent: float = 0.0,
        parent: Budget | None = None,
        memory: MemoryWatch | None = None,
        nodes: float = math.inf,
    ) -> None:
        """`spent` seconds have passed already; at most half of the time: what is left is for the work.

        `nodes`: so many of search trees, counted in this process, end the budget as time does.
        """
        self._last_node = work.total().nodes + nodes
        spent = min(spent, MOST_RESERVED * seconds)
        self._start = time.perf_counter() - spent
        self._seconds = seconds
        self._most_reserved = MOST_RESERVED * (seconds - spent)
        self._parent = parent
        self._memory = memory
        self._reserve = 0.0
        self._stopped: StopReason | None = None
        self._stopped_at = math.inf

    def __reduce__(self) -> tuple[type[Budget], tuple[float]]:
        """What travels to another process is the time left; nobody can stop it there."""
        return Budget, (0.0 if self.over else self.left,)

    def reserve(self, seconds: float) -> None:
        """Keep so much of the time back for what comes after the search: the last check of its point.

        It may be called again when more is known of how long that takes.
        """
        self._reserve = min(seconds, self._most_reserved)

    def part(self, seconds: float, *, memory: MemoryWatch | None = None, nodes: float = math.inf) -> Budget:
        """A budget of at most `seconds`, and at most what is left here; `memory` and `nodes` end it too."""
        least = min(seconds, self.left)
        return Budget(least, parent=self, memory=memory or self._memory, nodes=min(nodes, self.nodes_left))

    def stop(self, reason: StopReason) -> None:
        """Ask all work under this budget, and under its parents, to end.

        The first reason stays, but for an interrupt: what a person asks for is not covered by a program.
        """
        if self._parent is not None:
            self._parent.stop(reason)
        elif self._stopped is None:
            self._stopped, self._stopped_at = reason, time.perf_counter()
        elif reason is StopReason.INTERRUPT:
            self._stopped = reason

    @property
    def seconds(self) -> float:
        """Seconds since the budget was made."""
        return time.perf_counter() - self._start

    @property
    def limit(self) -> float:
        """Seconds in all."""
        return self._seconds

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._seconds - self._reserve - self.seconds)

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
        """Why somebody asked to stop, if anybody did."""
        return self._parent.stopped if self._parent is not None else self._stopped

    @property
    def over(self) -> StopReason | None:
        """Why the work must end now, or None while it may go on."""
        if self.stopped:
            return self.stopped
        if self._memory is not None and self._memory.over:
            return StopReason.MEMORY
        return StopReason.TIME if self.left <= 0.0 or self.nodes_left <= 0.0 else None
