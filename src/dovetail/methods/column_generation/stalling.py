"""When column generation has brought nothing for long: the rest of its time is worth more elsewhere."""

from __future__ import annotations

import math

ROUNDS = 12
"""Without a gain, at least: three restricted masters, each with columns of its own (water, 4x32: the first
two bring nothing where the third one does)."""
GAINED = 1e-4
"""Relative, of the master's value: less is no more than the LP over slightly different columns."""


class Stalling:
    """Looks at every round; it has stalled after as long without a gain as it took to get to the last one."""

    def __init__(self, seconds: float) -> None:
        self._begin = self._gain = seconds
        self._value, self._objective, self._idle = math.inf, math.nan, 0

    def after(self, seconds: float, value: float, objective: float) -> bool:
        """Whether a round that ended now has stalled: master's value in minimisation form, and incumbent."""
        cheaper = value < self._value - GAINED * (1.0 + abs(value))
        if cheaper or objective != self._objective:
            self._gain, self._idle = seconds, 0
            self._value, self._objective = min(value, self._value), objective
            return False
        self._idle += 1
        return self._idle >= ROUNDS and seconds - self._gain >= self._gain - self._begin
