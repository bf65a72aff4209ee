"""A watch over the memory of this process, beside the clock: see `Budget`.

A process that takes the last of the memory is killed by the kernel, without a word and with all it has found;
or another process is. Who writes large models looks here, and ends in order.
"""

from __future__ import annotations

import math
import time

from dovetail.run import memory

LOOK_SECONDS = 0.05
"""From look to look. One takes a ten-thousandth of a second; between two, SCIP takes megabytes."""


class MemoryWatch:
    """Says when this process holds more than `limit` GB, or when the machine has no more to give.

    Once over, it stays over: what is given back later was missing when it was asked for.
    """

    def __init__(self, limit: float | None = None) -> None:
        self._limit = math.inf if limit is None else limit
        self._next_look = -math.inf
        self._exceeded = False
        self.held: float | None = None
        """GB at the last look; None where this system does not say."""
        self.peak: float | None = None
        """The most of them at any look."""
        self.allowed = self._limit
        """GB this process may hold at most, by the limit and by the machine, at the last look."""
        self.look()

    def look(self) -> None:
        """Look now."""
        self._next_look = time.perf_counter() + LOOK_SECONDS
        self.held, spare = memory.resident(), memory.spare()
        if self.held is None:
            return
        self.peak = max(self.held, self.peak or 0.0)
        if not self._exceeded:
            self.allowed = min(self._limit, math.inf if spare is None else self.held + spare)
            self._exceeded = self.held > self.allowed

    @property
    def over(self) -> bool:
        """Whether there was too much at some time; looks, if the last look was a while ago."""
        if not self._exceeded and time.perf_counter() >= self._next_look:
            self.look()
        return self._exceeded

    @property
    def left(self) -> float:
        """GB that may still be taken, as of the last look; infinity where nobody says."""
        return max(0.0, self.allowed - (self.held or 0.0))

    @property
    def bound_by_machine(self) -> bool:
        """Whether it is the machine that allows no more, not the limit."""
        return self.allowed < self._limit

    def __str__(self) -> str:
        return f"{self.peak or 0.0:.2f} GB of {self.allowed:.2f} GB"
