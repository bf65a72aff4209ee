"""A bound, and what stands behind it.

Three questions decide what may be said of a bound: what is its value, which points does it hold for, and
whose arithmetic proved it. They travel together from the method that proves a bound to the result.

The gap: how near a bound has to come to an objective before the point is called optimal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import DovetailError
from dovetail.report.gains import HAIR

DEFAULT_GAP = 1e-4
"""Relative, as in Gurobi, HiGHS and CPLEX."""
LAST_DIGIT = 1e-9
"""Relative: what `gap=0` asks for. Sums of float64 numbers are not more exact than that."""


class Scope(StrEnum):
    """Which points a bound holds for."""

    WRITTEN = "written"
    """Points that meet the constraints exactly. A point that the check accepts may miss a constraint by 1e-6,
    and then be better than the bound by what that 1e-6 is worth."""
    CHECKED = "checked"
    """All points that the check accepts."""


class Support(StrEnum):
    """Whose arithmetic proved a bound."""

    PROOF = "proof"
    """Our own: multipliers of LPs, planes and intervals, rounded outward."""
    ENGINE = "engine"
    """A MIP engine's word, less its tolerances: nobody has repeated its search tree."""


@dataclass(frozen=True, eq=False)
class Bound:
    """No point in `scope` has an objective below `value`, in minimisation form."""

    value: float
    source: str = ""
    """Which part proved the bound (`report/gains.py` has the words)."""
    scope: Scope = Scope.CHECKED
    support: Support = Support.PROOF
    prices: FloatArray | None = None
    """(rows,) multipliers of the problem's constraints, where the bound was proved at given ones."""

    def better_than(self, other: Bound) -> bool:
        """Whether the value is higher, or the same with better support."""
        if self.value == other.value and math.isfinite(self.value):
            return self.support is Support.PROOF and other.support is Support.ENGINE
        return self.value > other.value


@dataclass(frozen=True)
class Estimate:
    """About what no point is below, in minimisation form: a sample says so, nothing is proved."""

    value: float
    error: float
    """One standard error."""


NO_BOUND = Bound(-math.inf)
"""While nothing is proved."""


class BoundFaultError(DovetailError, AssertionError):
    """A verified point is better than a bound that was called proven: some part of dovetail is wrong."""


def reconciled(bound: Bound, value: float, noise: float, gained: Callable[[], float | None]) -> Bound:
    """The bound beside a verified point of `value`: no more is proved of accepted points than that.

    `noise` is what sums of the objective round. Beyond it only a bound of the constraints as written may be
    undercut, by what the point `gained` by missing them (None: nobody knows); anything else is a
    `BoundFaultError`.
    """
    excess = bound.value - value
    if excess <= 0.0:
        return bound
    if excess > noise:
        room = gained() if bound.scope is Scope.WRITTEN else 0.0
        if room is not None and excess > noise + room:
            raise BoundFaultError(
                f"{bound.source or 'a method'} proved that no solution is below {bound.value:.12g} "
                f"(minimised), and a verified solution has {value:.12g}"
            )
    return replace(bound, value=value)


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
