"""When a search has brought nothing for so long that its time is worth more elsewhere.

The same idea as `column_generation/stalling.py`: as long without a gain as the solve took to the last one.
Here all phases of the search count together, and it may go on when others have found something.
"""

from __future__ import annotations

import math

from dovetail.run.context import SolveContext
from dovetail.run.stopping import worthwhile

LEAST = 0.2
"""Seconds, at least: a few hundred batches of a small problem."""


class Yielding:
    """Looks at the incumbent; without one there is nothing to leave the time to."""

    def __init__(self, context: SolveContext) -> None:
        self._context = context
        self._known, self._idle, self._since = context.incumbent.objective, 0.0, context.monitor.elapsed
        gains = [row.elapsed for row in context.monitor.trace if row.source]
        self._gain = gains[-1] if gains else context.monitor.elapsed
        self.rounds = 0
        """That ended in a row without a gain."""

    def begin(self) -> None:
        """The search is at work from here; what others gained since it was counts as well."""
        self._since = self._context.monitor.elapsed
        self._look()

    def end(self) -> None:
        """Others are at work from here."""
        self._idle += self._context.monitor.elapsed - self._since

    def end_round(self) -> None:
        """One has ended."""
        self.rounds += 1
        self._look()

    def due(self) -> bool:
        """Whether it has searched in vain for as long as the solve had taken to the last gain."""
        self._look()
        idle = self._idle + self._context.monitor.elapsed - self._since
        return not math.isnan(self._known) and idle >= max(LEAST, self._gain)

    def _look(self) -> None:
        best = self._context.incumbent.objective
        if worthwhile(self._known, best):
            self._known, self._idle, self.rounds = best, 0.0, 0
            self._gain = self._since = self._context.monitor.elapsed


def yielding(context: SolveContext) -> Yielding:
    """That of all phases of a solve (see `SolveContext.once`)."""
    return Yielding(context)
