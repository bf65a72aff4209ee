"""Objectives that take whole steps only: a bound between two steps is as good as the next one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dovetail.core.arrays import BoolArray
from dovetail.core.mip import Mip

SAFETY = 1e-9
"""Relative to the number of steps: what the few operations here can be off by, and much more."""
HAIR = 1e-12
"""Relative: what adding steps to an offset can be off by."""
MOST_STEPS = 1e9
"""Beyond so many steps one of them is as small as rounding."""


def objective_step(mip: Mip, integer: BoolArray) -> float:
    """All objectives of points differ from the offset by whole multiples of it; 0 where nothing is known.

    Nothing but `integer` columns may cost anything, and integers of an accepted point are exact.
    """
    if np.any(mip.cost[~integer] != 0.0) or not np.any(mip.cost):
        return 0.0
    costs = [Fraction(abs(float(c))) for c in np.unique(mip.cost[mip.cost != 0.0])]
    common = math.lcm(*(c.denominator for c in costs))
    step = Fraction(math.gcd(*(int(c * common) for c in costs)), common)
    return float(step) if Fraction(float(step)) == step else 0.0


def next_step(mip: Mip, step: float, bound: float) -> float:
    """The least objective that such a program can have at or above a bound, in minimisation form."""
    if step == 0.0 or not math.isfinite(bound):
        return bound
    steps = (bound - mip.offset) / step
    if abs(steps) > MOST_STEPS:
        return bound
    reached = mip.offset + math.ceil(steps - SAFETY * (1.0 + abs(steps))) * step
    return max(bound, reached - HAIR * (abs(reached) + abs(mip.offset)))
