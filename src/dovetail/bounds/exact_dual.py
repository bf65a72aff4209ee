"""Multipliers corrected in fractions, until the reduced costs of columns without bounds vanish exactly.

A solver's multipliers make them vanish but for rounding. A few of the multipliers that are not zero are
moved, by about as much as the rounding, so that the sums are exactly right; the value of the corrected
multipliers is then added up in fractions too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray
from dovetail.core.mip import Mip

MOST_FREE, MOST_ENTRIES = 40, 20_000
"""Columns to correct, and entries of the program: fractions take 10 microseconds each, and grow."""

VANISHING = 1e-9
"""Reduced costs below this part of what they are the sum of are meant to be 0."""

Numbers = Mapping[int, Fraction]


def exact_reduced_cost(
    by_column: sp.csc_array, cost: FloatArray, y: FloatArray | Sequence[Fraction], j: int
) -> Fraction:
    """(cost - A'y)_j without any rounding."""
    total = Fraction(float(cost[j]))
    for k in range(by_column.indptr[j], by_column.indptr[j + 1]):
        price = y[by_column.indices[k]]
        if price:
            total -= Fraction(float(by_column.data[k])) * Fraction(price)
    return total


def corrected_value(
    mip: Mip, cost: FloatArray, offset: float, y: FloatArray, lower: FloatArray, upper: FloatArray
) -> float:
    """What `y` proves once it is corrected; -infinity where that fails or would take too long."""
    if mip.A.nnz > MOST_ENTRIES:
        return -math.inf
    by_column = sp.csc_array(mip.A)
    endless = np.isneginf(lower) | np.isposinf(upper)
    size = np.abs(cost) + abs(by_column).T @ np.abs(y)
    vanishing = (size > 0.0) & (np.abs(cost - by_column.T @ y) <= VANISHING * size)  # a sum of nothing is 0
    free = np.flatnonzero(endless & vanishing)
    if free.size == 0 or free.size > MOST_FREE:
        return -math.inf
    prices = [Fraction(float(v)) for v in y]
    missing = {int(j): exact_reduced_cost(by_column, cost, prices, int(j)) for j in free}
    moves = _solved(by_column, missing, y)
    if moves is None:
        return -math.inf
    for i, change in moves.items():
        prices[i] += change
    return _value(mip, by_column, cost, offset, prices, lower, upper)


def _solved(by_column: sp.csc_array, missing: Numbers, y: FloatArray) -> Numbers | None:
    """Changes of multipliers that are not zero, with sum_i A_ij change_i = missing_j; by elimination."""
    equations: list[tuple[dict[int, Fraction], Fraction]] = []
    for j, side in missing.items():
        entries = range(by_column.indptr[j], by_column.indptr[j + 1])
        row = {int(by_column.indices[k]): Fraction(float(by_column.data[k])) for k in entries}
        equations.append(({i: a for i, a in row.items() if y[i] != 0.0}, side))
    solved: list[tuple[int, dict[int, Fraction], Fraction]] = []
    for row, side in equations:
        for pivot, known, value in solved:
            row, side = _without(row, side, pivot, known, value)
        if not row:
            if side:
                return None
            continue
        pivot = max(row, key=lambda i: abs(row[i]))
        solved.append((pivot, row, side))
    changes: dict[int, Fraction] = {}
    for pivot, row, side in reversed(solved):
        rest = sum((a * changes.get(i, Fraction(0)) for i, a in row.items() if i != pivot), start=Fraction(0))
        changes[pivot] = (side - rest) / row[pivot]
    return changes


def _without(
    row: dict[int, Fraction], side: Fraction, pivot: int, known: dict[int, Fraction], value: Fraction
) -> tuple[dict[int, Fraction], Fraction]:
    """The equation less as much of a solved one as makes its pivot vanish."""
    if pivot not in row:
        return row, side
    factor = row[pivot] / known[pivot]
    less = {i: row.get(i, Fraction(0)) - factor * a for i, a in known.items()}
    return {i: a for i, a in {**row, **less}.items() if a}, side - factor * value


def _value(
    mip: Mip,
    by_column: sp.csc_array,
    cost: FloatArray,
    offset: float,
    prices: Sequence[Fraction],
    lower: FloatArray,
    upper: FloatArray,
) -> float:
    total = Fraction(offset)
    for price, low, high in zip(prices, mip.row_lower, mip.row_upper, strict=True):
        part = _least(price, low, high)
        if part is None:
            return -math.inf
        total += part
    for j in range(mip.n_columns):
        part = _least(exact_reduced_cost(by_column, cost, prices, j), lower[j], upper[j])
        if part is None:
            return -math.inf
        total += part
    return math.nextafter(float(total), -math.inf)


def _least(factor: Fraction, low: float, high: float) -> Fraction | None:
    """The least of factor x for x between the limits, or None where there is none."""
    if not factor:
        return Fraction(0)
    limit = float(low if factor > 0 else high)
    return factor * Fraction(limit) if math.isfinite(limit) else None
