"""A bound, the solutions for which it holds, and the arithmetic that proved it.

The method that proves a bound states its value, its scope and its support; all three reach the result
unchanged. `GapLimit` says how small the gap must be for a solution to be called optimal.
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
SMALLEST_GAP = 1e-9
"""Relative: the gap for `gap=0`, because sums of float64 numbers are not more exact."""


class Scope(StrEnum):
    """Which points a bound holds for."""

    WRITTEN = "written"
    """Points that satisfy the constraints exactly. A point that the check accepts may violate a constraint by
    1e-6, and may therefore be better than the bound by the gain from this violation."""
    CHECKED = "checked"
    """All points that the check accepts."""


class Support(StrEnum):
    """Whose arithmetic proved a bound."""

    PROOF = "proof"
    """Our own: multipliers of LPs, planes and intervals, rounded outward."""
    ENGINE = "engine"
    """A MIP engine's bound, less its tolerances, without a proof of our own."""


@dataclass(frozen=True, eq=False)
class Bound:
    """No point in `scope` has an objective below `value`, in minimisation form."""

    value: float
    source: str = ""
    """The part that proved the bound (in words: `report/gains.py`)."""
    scope: Scope = Scope.CHECKED
    support: Support = Support.PROOF
    prices: FloatArray | None = None
    """(rows,) multipliers of the constraints, if the bound was proved at given multipliers."""

    def better_than(self, other: Bound) -> bool:
        """Whether the value is higher, or the same with better support."""
        if self.value == other.value and math.isfinite(self.value):
            return self.support is Support.PROOF and other.support is Support.ENGINE
        return self.value > other.value


@dataclass(frozen=True)
class Estimate:
    """An estimate of a bound from a sample, in minimisation form; not a proof."""

    value: float
    error: float
    """The standard error of the estimate."""


NO_BOUND = Bound(-math.inf)
"""The bound before anything is proved."""


class BoundFaultError(DovetailError, AssertionError):
    """A verified point is better than a proven bound: some part of dovetail is wrong."""


def reconciled(bound: Bound, value: float, noise: float, gained: Callable[[], float | None]) -> Bound:
    """The bound after a verified point with this `value` was found: at most that value. `noise` is the
    rounding of the objective. Only a bound for the constraints as written may exceed the value, by the
    amount that the point `gained` by violating constraints (None: unknown); otherwise a `BoundFaultError`
    is raised."""
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
    """The gap up to which a point is optimal; reaching one of the two limits suffices."""

    relative: float = DEFAULT_GAP
    """|objective - bound| / |objective|, as `Result.gap` has it."""
    absolute: float = 0.0
    """|objective - bound|."""

    @property
    def of_engine(self) -> float:
        """The relative gap for a MIP engine: half of ours, because its tolerances take a part."""
        return 0.5 * max(self.relative, SMALLEST_GAP)

    def allowed(self, objective: float) -> float:
        """The allowed distance of a bound from `objective`."""
        return max(max(self.relative, SMALLEST_GAP) * abs(objective), self.absolute, HAIR)

    def met(self, objective: float, bound: float) -> bool:
        """Whether a bound is close enough."""
        return abs(objective - bound) <= self.allowed(objective)
