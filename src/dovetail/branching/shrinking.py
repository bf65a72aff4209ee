"""A box made smaller: by the reduced costs of its LP, and by LPs of their own for single columns.

Both hold for points that cost less than the goal, and neither trusts the LP: multipliers prove each bound.
"""

from __future__ import annotations

import numpy as np

from dovetail.branching.candidates import widths
from dovetail.branching.input_sets import FEW_INPUTS
from dovetail.branching.model import Model
from dovetail.branching.relaxation import Multipliers, Solved, TriangleLp
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.deadline import require_time
from dovetail.core.mip import TOLERANCE
from dovetail.run.budget import Budget

ROUNDS = 3
"""Over all columns, as long as they bring something."""
LITTLE = 0.05
"""Of the widths of all columns that were asked, on average: less is nothing."""
HAIR = 1e-9
"""Relative: what a quotient and a sum round off, many times over."""


def by_prices(model: Model, lower: FloatArray, upper: FloatArray, room: float, prices: FloatArray) -> None:
    """In place: a column that costs more than the room that is left, away from its cheaper bound, stays near
    that one."""
    up = np.flatnonzero((prices > 0.0) & np.isfinite(lower))
    down = np.flatnonzero((prices < 0.0) & np.isfinite(upper))
    high = lower[up] + (room / prices[up] * (1.0 + HAIR) + HAIR * np.maximum(1.0, np.abs(lower[up])))
    low = upper[down] + (room / prices[down] * (1.0 + HAIR) - HAIR * np.maximum(1.0, np.abs(upper[down])))
    upper[up], lower[down] = np.minimum(upper[up], high), np.maximum(lower[down], low)
    whole = np.flatnonzero(model.host.integer)
    lower[whole], upper[whole] = np.ceil(lower[whole] - TOLERANCE), np.floor(upper[whole] + TOLERANCE)


def by_lps(
    model: Model, lp: TriangleLp, lower: FloatArray, upper: FloatArray, goal: float, budget: Budget
) -> bool:
    """In place, column by column; whether anything may be left."""
    for _ in range(ROUNDS):
        before = widths(model, lower, upper)
        for columns in _layers(model, lower, upper):
            if budget.over:
                return True
            narrowed = _ask(model, lp, lower, upper, columns, goal, budget)
            if narrowed is None or not model.tighten(lower[None], upper[None], goal)[0]:
                return False
            if narrowed < LITTLE:
                break
        after = widths(model, lower, upper)
        if after.sum() > (1.0 - LITTLE) * before.sum():
            break
    return True


def _layers(model: Model, lower: FloatArray, upper: FloatArray) -> list[IntArray]:
    """Columns that are asked together: inputs of networks that read few, then open neurons by their place."""
    few = []
    places: dict[int, list[IntArray]] = {}
    wide = widths(model, lower, upper) > 0.0
    for one in model.networks:
        some = wide[one.inputs].sum(1) <= FEW_INPUTS
        few.append(one.inputs[some].ravel())
        for place, columns in one.inner.items():
            places.setdefault(place, []).append(columns.ravel())
    inputs = np.unique(np.concatenate(few)) if few else np.empty(0, dtype=np.int64)
    found = [inputs[wide[inputs]]]
    for place in sorted(places):
        columns = np.unique(np.concatenate(places[place]))
        found.append(columns[model.open_neurons(lower, upper)[columns]])
    return [columns for columns in found if columns.size]


def _is_empty(model: Model, solved: Solved, lower: FloatArray, upper: FloatArray, goal: float) -> bool:
    """Whether the multipliers of an infeasible LP prove that nothing is left."""
    if solved.multipliers is None:
        return False
    found, _ = solved.multipliers.bound(model.host, model.networks, lower[None], upper[None], goal)
    return bool(found[0] > 0.0)


def _ask(
    model: Model,
    lp: TriangleLp,
    lower: FloatArray,
    upper: FloatArray,
    columns: IntArray,
    goal: float,
    budget: Budget,
) -> float | None:
    """The least and the most of each column, in place: by how much they narrowed on average; None where
    nothing is left."""
    lp.load(lower, upper)
    span = np.maximum(upper - lower, 1e-300)
    asked: list[tuple[int, float, Multipliers]] = []
    needless = {1.0: np.zeros(lower.size, dtype=bool), -1.0: np.zeros(lower.size, dtype=bool)}
    for column in columns:
        for sign in (1.0, -1.0):
            if budget.over:
                break
            if needless[sign][column]:
                continue
            require_time()
            cost = np.zeros(lower.size)
            cost[column] = sign
            solved = lp.again(cost, goal, budget)
            if solved.infeasible:
                if _is_empty(model, solved, lower, upper, goal):
                    return None
                continue
            if solved.multipliers is not None:
                asked.append((int(column), sign, solved.multipliers))
            if solved.x is not None:
                x = solved.x[: lower.size]
                needless[1.0] |= x <= lower + LITTLE * span
                needless[-1.0] |= x >= upper - LITTLE * span
    if not asked:
        return 0.0
    before = (upper[columns] - lower[columns]).copy()
    many = len(asked)
    found, _ = Multipliers.joined([m for *_, m in asked]).bound(
        model.host, model.networks, np.tile(lower, (many, 1)), np.tile(upper, (many, 1)), goal
    )
    for (column, sign, _), value in zip(asked, found, strict=True):
        if sign > 0.0:
            lower[column] = max(lower[column], value)
        else:
            upper[column] = min(upper[column], -value)
    whole = np.flatnonzero(model.host.integer)
    lower[whole], upper[whole] = np.ceil(lower[whole] - TOLERANCE), np.floor(upper[whole] + TOLERANCE)
    if np.any(lower > upper):
        return None
    return float(np.mean(1.0 - (upper[columns] - lower[columns]) / np.maximum(before, 1e-300)))
