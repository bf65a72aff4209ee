"""How near to a proven bound is near enough: optimal, or what the caller asked for."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.mip import Mip
from dovetail.core.stated_program import StatedProgram
from dovetail.report.gains import HAIR

OPTIMALITY = 1e-6
"""An objective meets a bound when they are this close relative to the objective, or a hair apart."""

DEAREST = 1e3
"""The highest price of a row, relative to 1 + |objective|, that a missed row is excused by."""


def optimality_gap(mip: Mip | StatedProgram, objective: float) -> float:
    """How close a bound has to come: a constant in the objective does not make the two closer.

    Neither one that is added to a small objective, nor one that a large one is taken off from.
    """
    return OPTIMALITY * min(abs(objective), abs(objective - mip.offset)) + HAIR


def meets(mip: Mip | StatedProgram, objective: float, bound: float) -> bool:
    """Whether a bound proves an objective."""
    return abs(objective - bound) <= optimality_gap(mip, objective)


def explained(value: float, bound: float, missed: float) -> bool:
    """Whether a point may be so far beyond a bound of the rows as written, since it misses some by `missed`.

    What rows are worth is not known here: by far most have prices below `DEAREST` times the objective. A
    point that meets its rows explains nothing.
    """
    return missed > HAIR and bound - value <= DEAREST * missed * (1.0 + abs(value))


@dataclass(frozen=True)
class GapLimit:
    """A search ends where the gap is no larger: either of the two is enough, and 0 asks for an optimum."""

    relative: float = 0.0
    """|objective - bound| / |objective|, as `Result.gap` has it."""
    absolute: float = 0.0
    """|objective - bound|."""

    def met(self, objective: float, bound: float) -> bool:
        """Whether the bound is as near as was asked for; never where nothing was."""
        apart = abs(objective - bound)
        near = self.relative > 0.0 and apart <= self.relative * abs(objective)
        return bool(near or (self.absolute > 0.0 and apart <= self.absolute))
