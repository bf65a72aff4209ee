"""A bound from multipliers, whatever solver they come from (Neumaier and Shcherbina, 2004).

For any multipliers y of the rows, and every x within rows and bounds,

    cost'x  =  y'(A x) + (cost - A'y)'x  >=  sum_i min(y_i row_i) + sum_j min((cost - A'y)_j x_j)

where each minimum is over the row's sides or the column's bounds. Nothing is asked of y: poor multipliers
give a poor bound, never a wrong one. All rounding is taken to the bound's disadvantage. With cost 0, a value
above 0 proves that there is no x at all (Farkas).

Where a column without a bound has a reduced cost of the wrong sign the value is -infinity. That sign may be
rounding. So such reduced costs are computed as fractions; multipliers are corrected, in fractions, until the
sums vanish; and where that takes too long they are rounded to fewer digits, which often does it too.
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import UNIT
from dovetail.bounds.exact_dual import corrected_value, exact_reduced_cost
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import Mip

GRIDS = (2.0**30, 2.0**20, 2.0**10)
"""Multipliers rounded to ever fewer digits: their sums often vanish exactly."""
FEW_EXACT = 2000
"""Columns whose reduced cost is computed as a fraction, at most: about 10 microseconds per entry."""


def dual_value(
    mip: Mip, cost: FloatArray, offset: float, y: FloatArray, lower: FloatArray, upper: FloatArray
) -> float:
    """The best bound on cost'x + offset that `y`, or `y` rounded, proves for x between these bounds."""
    if not np.all(np.isfinite(y)):
        return -math.inf
    y = usable(mip, y)
    value = _value(mip, cost, offset, y, lower, upper)
    if value == -math.inf:
        value = corrected_value(mip, cost, offset, y, lower, upper)
    for digits in GRIDS if value == -math.inf else ():
        value = max(value, _value(mip, cost, offset, _rounded(y, digits), lower, upper))
    return value


def _rounded(y: FloatArray, digits: float) -> FloatArray:
    top = float(np.max(np.abs(y), initial=0.0))
    if top == 0.0:
        return y
    step = 2.0 ** math.ceil(math.log2(top)) / digits
    return np.asarray(np.round(y / step) * step)


def usable(mip: Mip, y: FloatArray) -> FloatArray:
    """Multipliers of limits that are not there are dropped."""
    missing = ((y > 0) & np.isneginf(mip.row_lower)) | ((y < 0) & np.isposinf(mip.row_upper))
    return np.where(missing, 0.0, y)


def _value(
    mip: Mip, cost: FloatArray, offset: float, y: FloatArray, lower: FloatArray, upper: FloatArray
) -> float:
    side = np.where(y > 0, mip.row_lower, np.where(y < 0, mip.row_upper, 0.0))
    rows = y * side
    least, most = _reduced_costs(mip, cost, y)
    columns = np.minimum(_least_product(least, lower, upper), _least_product(most, lower, upper))
    columns = _exactly(mip, cost, y, lower, upper, columns)
    if np.any(np.isneginf(columns)):
        return -math.inf
    parts = np.concatenate([rows, columns])
    parts -= 2.0 * UNIT * np.abs(parts)  # each product is rounded once
    total = math.fsum((*parts.tolist(), offset))
    return total - 2.0 * UNIT * abs(total)


def _reduced_costs(mip: Mip, cost: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Limits of cost - A'y: sums of n products are off by at most n roundings of their sizes."""
    turned, sizes = mip.turned
    reduced = cost - turned @ y
    entries = np.diff(turned.indptr) + 2
    noise = 2.0 * UNIT * entries * (np.abs(cost) + sizes @ np.abs(y))
    return reduced - noise, reduced + noise


def _least_product(factor: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """The least of factor x for x between the bounds; nothing times infinity is nothing."""
    bound = np.where(factor > 0, lower, np.where(factor < 0, upper, 0.0))
    return np.where(factor == 0.0, 0.0, factor * bound)


def _exactly(
    mip: Mip, cost: FloatArray, y: FloatArray, lower: FloatArray, upper: FloatArray, columns: FloatArray
) -> FloatArray:
    """The columns' parts, those that seem infinite from exact reduced costs."""
    open_ones = np.flatnonzero(np.isneginf(columns))
    if open_ones.size == 0 or open_ones.size > FEW_EXACT:
        return columns
    columns, by_column = columns.copy(), sp.csc_array(mip.A)
    for j in open_ones:
        reduced = exact_reduced_cost(by_column, cost, y, int(j))
        limit = lower[j] if reduced > 0 else upper[j]
        if reduced == 0:
            columns[j] = 0.0
        elif math.isfinite(limit):
            with suppress(OverflowError):  # beyond all floats: it stays infinite
                columns[j] = float(reduced * Fraction(float(limit)))
    return columns
