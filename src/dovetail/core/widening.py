"""The smallest changes of limits that make a point feasible."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, NameOf
from dovetail.core.mip import TOLERANCE, Mip

DIGITS = 6
"""Digits of a suggested limit, rounded outwards."""


@dataclass(frozen=True)
class Widening:
    """One limit of a row or a column, and the value that would admit the point."""

    kind: str
    """"row" or "column"."""
    name: str
    side: str
    """"lower" or "upper"."""
    limit: float
    needed: float

    @property
    def amount(self) -> float:
        """The change of the limit."""
        return abs(self.needed - self.limit)

    def __str__(self) -> str:
        kind = "constraint" if self.kind == "row" else "variable"
        named = self.name if self.name.startswith("row[") else f"{kind} {self.name}"
        return f"the {self.side} limit of {named} from {self.limit:.{DIGITS}g} to {self.needed:.{DIGITS}g}"


def widenings(mip: Mip, x: FloatArray) -> tuple[Widening, ...]:
    """Every limit of rows and columns that `x` violates, the smallest violation first."""
    rows = _violated_limits("row", mip.A @ x, mip.row_lower, mip.row_upper, mip.row_name)
    columns = _violated_limits("column", x, mip.lower, mip.upper, mip.column_name)
    return tuple(sorted((*rows, *columns), key=lambda one: one.amount))


def _violated_limits(
    kind: str, value: FloatArray, lower: FloatArray, upper: FloatArray, name_of: NameOf
) -> list[Widening]:
    found = []
    for side, limits, beyond in (("lower", lower, lower - value), ("upper", upper, value - upper)):
        for k in np.flatnonzero(beyond > TOLERANCE):
            needed = _rounded_outward(float(value[k]), upwards=side == "upper")
            found.append(Widening(kind, name_of(int(k)), side, float(limits[k]), needed))
    return found


def _rounded_outward(value: float, *, upwards: bool) -> float:
    """The value with few digits, rounded so that the point is admitted up to the tolerance of the check."""
    near = float(f"{value:.{DIGITS}g}")
    if abs(near - value) <= 0.5 * TOLERANCE or not math.isfinite(value):
        return near
    unit = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - DIGITS)
    steps = math.ceil(value / unit) if upwards else math.floor(value / unit)
    return float(f"{steps * unit:.{DIGITS}g}")
