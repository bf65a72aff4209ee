"""How fast one part of the loop raises its bound, beside the others."""

from __future__ import annotations

import math
from bisect import bisect_right


class Pace:
    """The work of one part in seconds, by counts, and what bounds it has come to."""

    def __init__(self) -> None:
        self._efforts, self._bounds = [0.0], [-math.inf]

    def add(self, effort: float, bound: float) -> None:
        """So much more work, and the bound by then."""
        self._efforts.append(self.effort + effort)
        self._bounds.append(bound)

    @property
    def effort(self) -> float:
        """All of its work."""
        return self._efforts[-1]

    def bound_after(self, effort: float) -> float:
        """The bound when so much was done."""
        return self._bounds[bisect_right(self._efforts, effort) - 1]
