"""When a search has brought nothing for so long that its time is worth more elsewhere.

The same idea as `column_generation/stalling.py`: as long without a gain as all before it took. Here the
search may go on later, when the others have had their turn.
"""

from __future__ import annotations

from dovetail.run.context import SolveContext

LEAST = 0.2
"""Seconds, at least: a few hundred batches of a small problem."""


class Yielding:
    """Looks at the incumbent; without one there is nothing to leave the time to."""

    def __init__(self, context: SolveContext) -> None:
        self._context, self._known = context, context.incumbent.x
        self._gain = context.monitor.elapsed

    def due(self) -> bool:
        """Whether nothing was gained for as long as the solve had taken until the last gain, or until now."""
        best, now = self._context.incumbent.x, self._context.monitor.elapsed
        if best is None or best is not self._known:
            self._known, self._gain = best, now
            return False
        return now - self._gain >= max(LEAST, self._gain)
