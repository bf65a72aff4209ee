"""Objectives that take whole steps only: what is proved between two steps holds up to the next one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray


def next_whole(value: float, cost: FloatArray, offset: float, whole: BoolArray) -> float:
    """No objective offset + cost'x at or above `value` is below it; in exact arithmetic.

    Steps are known where only columns that are `whole` in every accepted point cost anything.
    """
    paying = cost != 0.0
    if not math.isfinite(value) or not np.any(paying) or np.any(paying & ~whole):
        return value
    costs = [Fraction(abs(c)) for c in np.unique(cost[paying]).tolist()]
    common = math.lcm(*(c.denominator for c in costs))
    step = Fraction(math.gcd(*(int(c * common) for c in costs)), common)
    start = Fraction(offset)
    reached = start + math.ceil((Fraction(value) - start) / step) * step
    return max(value, math.nextafter(float(reached), -math.inf))
