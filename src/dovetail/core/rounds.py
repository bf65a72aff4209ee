"""Methods that work in rounds: each round is a row of the trace, and one of four things ends them."""

from __future__ import annotations

from dovetail.core.budget import StopReason
from dovetail.core.lap import Lap
from dovetail.core.search import Outcome, Search


class Rounds:
    """Counts rounds and those in a row that brought nothing."""

    def __init__(self, search: Search, most: int | None, patience: int) -> None:
        self._search, self._most, self._patience = search, most, patience
        self._idle, self.done = 0, 0
        self._lap = Lap(search)

    def ended(self, value: float, objective: float = float("nan")) -> Outcome | None:
        """Record a round by what it thinks its point is worth; the outcome, if it was the last."""
        row = self._lap.tell(value, objective)
        self.done += 1
        self._idle = 0 if row.source else self._idle + 1
        self._lap = Lap(self._search)
        stop = self._stop()
        return None if stop is None else Outcome(stop, self.done)

    def exhausted(self) -> Outcome:
        """The outcome where there is nothing left to begin from."""
        return Outcome(self._search.budget.over or StopReason.STALLED, self.done)

    def _stop(self) -> StopReason | None:
        if self._search.incumbent.proved:
            return StopReason.PROVED
        if self._most is not None and self.done >= self._most:
            return StopReason.ITERATIONS
        stalled = self._idle >= self._patience
        return self._search.budget.over or (StopReason.STALLED if stalled else None)
