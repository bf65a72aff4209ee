"""The local optima that descents of one solve have ended in, by what they are worth."""

from __future__ import annotations

import bisect

from dovetail.linearised.descent import Iterate
from dovetail.run.context import SolveContext

SAME = 1e-5
"""Relative to 1 + |value|: two descents into the same optimum end closer than this, since each goes on until
the model predicts less than 1e-7."""


class LocalOptima:
    """Values, in order."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def add(self, iterate: Iterate) -> bool:
        """Whether a descent's end is an optimum that no descent has been at before; it is one then."""
        if not iterate.feasible:
            return False
        value, room = iterate.merit, SAME * (1.0 + abs(iterate.merit))
        place = bisect.bisect_left(self._values, value - room)
        if place < len(self._values) and self._values[place] <= value + room:
            return False
        bisect.insort(self._values, value)
        return True


def local_optima(context: SolveContext) -> LocalOptima:
    """Those of a solve, for all its phases (see `SolveContext.once`)."""
    return LocalOptima()
