"""The stopping rule: what ends a method, decided here for all of them.

    proved      the best point is as near to the bound as the caller asked for
    target      it is as good as the caller asked for, whatever is proved
    time        the deadline of the budget; or what stopped it before: Ctrl-C, a callback
    iterations  as many as were asked for
    stalled     so many in a row that brought nothing

Agreement of the two halves, which ends Algorithm 1 besides, is its own (`methods/dual_decomposition.py`);
what a solve is called in the end is decided in `solving/status.py`.
"""

from __future__ import annotations

import math

from dovetail.run.budget import Budget, StopReason
from dovetail.run.lifted_incumbent import AnyIncumbent


def over(incumbent: AnyIncumbent, budget: Budget) -> StopReason | None:
    """Why nothing more is to be done, by any method; None while there is."""
    if incumbent.proved:
        return StopReason.PROVED
    return StopReason.TARGET if incumbent.on_target else budget.over


WORTH = 1e-6
"""Relative to 1 + |objective|: a smaller gain keeps no search going. The check allows rows as much (the
least sum of three squares: 23 descents instead of 61, whose gains were from 2e-9 to 2e-10)."""


def worthwhile(before: float, now: float) -> bool:
    """Whether an objective is a gain over one before; NaN where no point was known.

    >>> from dovetail.run.stopping import worthwhile
    >>> worthwhile(float("nan"), 3.0), worthwhile(3.0, 2.9), worthwhile(3.0, 3.0 - 1e-7)
    (True, True, False)
    """
    if math.isnan(before) or math.isnan(now):
        return math.isnan(before) and not math.isnan(now)
    return abs(now - before) > WORTH * (1.0 + abs(before))


class StoppingRule:
    """Counts iterations, and those in a row that brought nothing."""

    def __init__(self, most: int | None = None, patience: int | None = None) -> None:
        self._most, self._patience = most, patience
        self._idle, self.done = 0, 0

    def after(self, *, gained: bool, over: StopReason | None) -> StopReason | None:
        """An iteration has ended: why it was the last, or None."""
        self.done += 1
        self._idle = 0 if gained else self._idle + 1
        if over:
            return over
        if self._most is not None and self.done >= self._most:
            return StopReason.ITERATIONS
        stalled = self._patience is not None and self._idle >= self._patience
        return StopReason.STALLED if stalled else None
