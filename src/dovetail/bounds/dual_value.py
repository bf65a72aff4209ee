"""A bound from any multipliers (Neumaier and Shcherbina, 2004)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import UNIT, Box
from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import Mip


def dual_value(
    mip: Mip, cost: FloatArray, offset: float, y: FloatArray, lower: FloatArray, upper: FloatArray
) -> float:
    """The best bound on cost'x + offset that `y`, perhaps corrected, proves for x between these bounds."""
    if not np.all(np.isfinite(y)):
        return -math.inf
    y = usable(mip, y)
    value = _value(mip, cost, offset, y, lower, upper)
    if value == -math.inf:
        value = corrected_value(mip, cost, offset, y, lower, upper)
    return value


def usable(mip: Mip, y: FloatArray) -> FloatArray:
    """Multipliers without those of infinite limits."""
    missing = ((y > 0) & np.isneginf(mip.row_lower)) | ((y < 0) & np.isposinf(mip.row_upper))
    return np.where(missing, 0.0, y)


def _value(
    mip: Mip, cost: FloatArray, offset: float, y: FloatArray, lower: FloatArray, upper: FloatArray
) -> float:
    side = np.where(y > 0, mip.row_lower, np.where(y < 0, mip.row_upper, 0.0))
    rows = y * side
    least, most = _reduced_costs(mip, cost, y)
    columns = np.minimum(_least_product(least, lower, upper), _least_product(most, lower, upper))
    if np.any(np.isneginf(columns)):
        return -math.inf
    parts = np.concatenate([rows, columns])
    parts -= 2.0 * UNIT * np.abs(parts)  # each product is rounded once
    total = math.fsum((*parts.tolist(), offset))
    return total - 2.0 * UNIT * abs(total)


def _reduced_costs(mip: Mip, cost: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Intervals of cost - A'y: sums of n products are off by at most n roundings of their sizes."""
    turned, sizes = mip.turned
    reduced = cost - turned @ y
    entries = np.diff(turned.indptr) + 2
    noise = 2.0 * UNIT * entries * (np.abs(cost) + sizes @ np.abs(y))
    return reduced - noise, reduced + noise


def _least_product(factor: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """The least of factor x for x between the bounds; 0 times infinity is 0."""
    bound = np.where(factor > 0, lower, np.where(factor < 0, upper, 0.0))
    return np.where(factor == 0.0, 0.0, factor * bound)


MOST_FREE, MOST_ENTRIES = 40, 20_000
"""Largest numbers of columns to correct, and of entries: fractions take 10 microseconds each, and grow."""

ZERO_COST = 1e-9
"""Reduced costs below this fraction of their terms are meant to be 0."""

Numbers = Mapping[int, Fraction]


def exact_reduced_cost(
    by_column: sp.csc_array, cost: FloatArray, y: FloatArray | Sequence[Fraction], j: int
) -> Fraction:
    """(cost - A'y)_j in exact arithmetic."""
    total = Fraction(float(cost[j]))
    for k in range(by_column.indptr[j], by_column.indptr[j + 1]):
        price = y[by_column.indices[k]]
        if price:
            total -= Fraction(float(by_column.data[k])) * Fraction(price)
    return total


def corrected_value(
    mip: Mip, cost: FloatArray, offset: float, y: FloatArray, lower: FloatArray, upper: FloatArray
) -> float:
    """What `y` proves after a correction; -infinity if that fails or would take too long."""
    if mip.A.nnz > MOST_ENTRIES:
        return -math.inf
    by_column = sp.csc_array(mip.A)
    endless = np.isneginf(lower) | np.isposinf(upper)
    size = np.abs(cost) + abs(by_column).T @ np.abs(y)
    vanishing = (size > 0.0) & (np.abs(cost - by_column.T @ y) <= ZERO_COST * size)  # an empty sum is 0
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
    return _exact_value(mip, by_column, cost, offset, prices, lower, upper)


def _solved(by_column: sp.csc_array, missing: Numbers, y: FloatArray) -> Numbers | None:
    """Changes of nonzero multipliers with sum_i A_ij change_i = missing_j, by elimination."""
    equations: list[tuple[dict[int, Fraction], Fraction]] = []
    for j, side in missing.items():
        entries = range(by_column.indptr[j], by_column.indptr[j + 1])
        row = {int(by_column.indices[k]): Fraction(float(by_column.data[k])) for k in entries}
        equations.append(({i: a for i, a in row.items() if y[i] != 0.0}, side))
    solved: list[tuple[int, dict[int, Fraction], Fraction]] = []
    for row, side in equations:
        for pivot, known, value in solved:
            row, side = _eliminated(row, side, pivot, known, value)
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


def _eliminated(
    row: dict[int, Fraction], side: Fraction, pivot: int, known: dict[int, Fraction], value: Fraction
) -> tuple[dict[int, Fraction], Fraction]:
    """The equation minus a multiple of a solved one that eliminates its pivot."""
    if pivot not in row:
        return row, side
    factor = row[pivot] / known[pivot]
    less = {i: row.get(i, Fraction(0)) - factor * a for i, a in known.items()}
    return {i: a for i, a in {**row, **less}.items() if a}, side - factor * value


def _exact_value(
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
        part = _exact_least(price, low, high)
        if part is None:
            return -math.inf
        total += part
    for j in range(mip.n_columns):
        part = _exact_least(exact_reduced_cost(by_column, cost, prices, j), lower[j], upper[j])
        if part is None:
            return -math.inf
        total += part
    return math.nextafter(float(total), -math.inf)


def _exact_least(factor: Fraction, low: float, high: float) -> Fraction | None:
    """The exact least of factor x for x between the limits, or None if it is infinite."""
    if not factor:
        return Fraction(0)
    limit = float(low if factor > 0 else high)
    return factor * Fraction(limit) if math.isfinite(limit) else None


SAFETY = 1e-9
"""Tolerance relative to the number of steps, above the rounding of the few operations here."""
HAIR = 1e-12
"""Relative: the rounding of adding steps to an offset."""
MOST_STEPS = 1e9
"""With more steps, one step would be below rounding."""


def objective_step(mip: Mip, integer: BoolArray) -> float:
    """A number such that all objectives differ from the offset by multiples of it; 0 if not known. Only
    `integer` columns may have costs, and integers of an accepted point are exact."""
    if np.any(mip.cost[~integer] != 0.0) or not np.any(mip.cost):
        return 0.0
    costs = [Fraction(abs(float(c))) for c in np.unique(mip.cost[mip.cost != 0.0])]
    common = math.lcm(*(c.denominator for c in costs))
    step = Fraction(math.gcd(*(int(c * common) for c in costs)), common)
    return float(step) if Fraction(float(step)) == step else 0.0


def next_step(mip: Mip, step: float, bound: float) -> float:
    """The least possible objective of such a program at or above a bound, in minimisation form."""
    if step == 0.0 or not math.isfinite(bound):
        return bound
    steps = (bound - mip.offset) / step
    if abs(steps) > MOST_STEPS:
        return bound
    reached = mip.offset + math.ceil(steps - SAFETY * (1.0 + abs(steps))) * step
    return max(bound, reached - HAIR * (abs(reached) + abs(mip.offset)))


def priced_cost(mip: Mip, G: sp.csr_array, prices: FloatArray) -> FloatArray:
    """(columns,) costs of columns at these prices."""
    return np.asarray(mip.cost + G.T @ prices)


def lagrangian_constant(
    mip: Mip,
    G: sp.csr_array,
    h: FloatArray,
    prices: FloatArray,
    shared: BoolArray,
    box: Box,
    size: FloatArray,
) -> float:
    """The bound for any components; minus infinity if a shared column with a cost has no bound.

    `mip` is in minimisation form, `box` holds all its points, `size` is the largest absolute value of each
    column there. The effect of rounding in the priced costs is subtracted, too.
    """
    cost = priced_cost(mip, G, prices)
    counts = shared & (cost != 0.0)
    side = np.where(cost > 0.0, box.lower, box.upper)[counts]
    terms = [mip.offset, *(-prices * h).tolist(), *(cost[counts] * side).tolist()]
    if not np.all(np.isfinite(terms)):
        return -math.inf
    priced = abs(G).T @ prices
    moved = priced > 0.0  # all other costs are exact
    entries = np.diff(sp.csc_array(G).indptr)[moved] + 4
    slip = 2.0 * UNIT * float((entries * (np.abs(mip.cost) + priced)[moved]) @ size[moved])
    return math.fsum(terms) - slip - 4.0 * UNIT * float(np.abs(terms).sum())
