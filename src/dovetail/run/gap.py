"""The gap: how near a bound has to come to an objective before the point is called optimal."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.report.gains import HAIR

DEFAULT_GAP = 1e-4
"""Relative, as in Gurobi, HiGHS and CPLEX."""
LAST_DIGIT = 1e-9
"""Relative: what `gap=0` asks for. Sums of float64 numbers are not more exact than that."""


@dataclass(frozen=True)
class GapLimit:
    """A point is optimal where the gap is no larger; either of the two limits is enough."""

    relative: float = DEFAULT_GAP
    """|objective - bound| / |objective|, as `Result.gap` has it."""
    absolute: float = 0.0
    """|objective - bound|."""

    @property
    def of_engine(self) -> float:
        """The relative gap that a MIP engine is asked for: half of it, since its tolerances take some too."""
        return 0.5 * max(self.relative, LAST_DIGIT)

    def allowed(self, objective: float) -> float:
        """How far from `objective` a bound may be."""
        return max(max(self.relative, LAST_DIGIT) * abs(objective), self.absolute, HAIR)

    def met(self, objective: float, bound: float) -> bool:
        """Whether a bound is as near as was asked for."""
        return abs(objective - bound) <= self.allowed(objective)
