"""Time and permission to go on: one deadline, and one flag that says why the work must stop."""

from __future__ import annotations

import math
import time
from enum import StrEnum


class StopReason(StrEnum):
    """Why a solve ended."""

    PROVED = "proved"
    AGREED = "agreed"
    TIME = "time"
    ITERATIONS = "iterations"
    INTERRUPT = "interrupt"
    STALLED = "stalled"
    CALLBACK = "callback"
    ERROR = "error"


class Budget:
    """Wall seconds left, and whether somebody asked to stop.

    `part` gives a shorter budget for a piece of the work: it has a deadline of its
    own but shares the flag, so that Ctrl-C stops every piece at once.
    """

    def __init__(self, seconds: float = math.inf, *, parent: Budget | None = None) -> None:
        self._start = time.perf_counter()
        self._seconds = seconds
        self._parent = parent
        self._stopped: StopReason | None = None

    def part(self, seconds: float) -> Budget:
        """A budget of at most `seconds`, and at most what is left here."""
        return Budget(min(seconds, self.left), parent=self)

    def stop(self, reason: StopReason) -> None:
        """Ask all work under this budget, and under its parents, to end; the first reason stays."""
        if self._parent is not None:
            self._parent.stop(reason)
        elif self._stopped is None:
            self._stopped = reason

    @property
    def seconds(self) -> float:
        """Seconds since the budget was made."""
        return time.perf_counter() - self._start

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._seconds - self.seconds)

    @property
    def stopped(self) -> StopReason | None:
        """Why somebody asked to stop, if anybody did."""
        return self._parent.stopped if self._parent is not None else self._stopped

    @property
    def over(self) -> StopReason | None:
        """Why the work must end now, or None while it may go on."""
        return self.stopped or (StopReason.TIME if self.left <= 0.0 else None)
