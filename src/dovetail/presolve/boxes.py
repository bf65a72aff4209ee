"""Boxes for the inputs of networks: from bounds, from rows, and from the host's LP relaxation.

The paper's water model, for one, bounds its inputs only through budgets. Rows are
propagated first, which is cheap; the LP is asked only about inputs still without a bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.budget import Budget
from dovetail.core.engine import MipStatus, Quadratic
from dovetail.core.errors import EngineError
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.mip.highs import HighsEngine

ROUNDS = 10
PAD = 1e-7
"""Derived bounds are widened by this much, times max(1, |bound|), so that rounding cuts nothing off."""
LP_SHARE = 0.25
"""Part of the time left that the LPs may use."""


@dataclass(frozen=True, eq=False)
class Box:
    """Bounds for every column, at least as tight as the host's own."""

    lower: FloatArray
    upper: FloatArray
    complete: bool = True
    """False where time ran out before every open input was asked about."""

    @property
    def finite(self) -> np.ndarray:
        """Which columns are bounded on both sides."""
        return np.isfinite(self.lower) & np.isfinite(self.upper)


def input_box(problem: Problem, budget: Budget, *, seed: int = 0, threads: int = 1) -> Box:
    """A box that holds every feasible point, finite on the inputs wherever the host makes it so."""
    mip = problem.mip.minimised()
    box = propagate(mip)
    open_inputs = problem.inputs[~box.finite[problem.inputs]]
    if open_inputs.size == 0 or mip.rows == 0:
        return box
    return _relaxation(mip, box, open_inputs, budget.part(LP_SHARE * budget.left), seed, threads)


def propagate(mip: Mip) -> Box:
    """Bounds implied by single rows, passed on from row to row for a few rounds."""
    lower, upper = mip.lower.copy(), mip.upper.copy()
    if mip.A.nnz == 0:
        return Box(lower, upper)
    a, column = mip.A.data, mip.A.indices
    row = np.repeat(np.arange(mip.rows), np.diff(mip.A.indptr))
    for _ in range(ROUNDS):
        before = (lower.copy(), upper.copy())
        least = np.where(a > 0, a * lower[column], a * upper[column])
        most = np.where(a > 0, a * upper[column], a * lower[column])
        room_up = mip.row_upper[row] - _others(least, row, mip.rows)
        room_down = mip.row_lower[row] - _others(most, row, mip.rows)
        with np.errstate(invalid="ignore"):
            cap = np.where(a > 0, room_up, room_down) / a
            floor = np.where(a > 0, room_down, room_up) / a
        cap[np.isnan(cap)], floor[np.isnan(floor)] = np.inf, -np.inf
        np.minimum.at(upper, column, cap + PAD * np.maximum(1.0, np.abs(cap)))
        np.maximum.at(lower, column, floor - PAD * np.maximum(1.0, np.abs(floor)))
        _tidy(mip, lower, upper)
        if _settled(before, (lower, upper)):
            break
    return Box(lower, upper)


def _others(contribution: FloatArray, row: np.ndarray, rows: int) -> FloatArray:
    """For each entry, the sum of its row's other contributions, which may be infinite."""
    infinite = ~np.isfinite(contribution)
    finite = np.where(infinite, 0.0, contribution)
    total = np.bincount(row, finite, rows)[row] - finite
    others_infinite = np.bincount(row, infinite, rows)[row] - infinite > 0
    sign = np.sign(contribution[infinite][0]) if np.any(infinite) else 1.0
    return np.where(others_infinite, sign * np.inf, total)


def _tidy(mip: Mip, lower: FloatArray, upper: FloatArray) -> None:
    """Integers get whole bounds; nothing gets looser than the host, and rounding never crosses bounds."""
    whole = mip.integer
    lower[whole] = np.ceil(lower[whole] - 1e-6)
    upper[whole] = np.floor(upper[whole] + 1e-6)
    np.maximum(lower, mip.lower, out=lower)
    np.minimum(upper, mip.upper, out=upper)
    crossed = lower > upper  # an infeasible host, or rounding: the host's own bounds are left to say so
    lower[crossed], upper[crossed] = mip.lower[crossed], mip.upper[crossed]


def _settled(before: tuple[FloatArray, FloatArray], after: tuple[FloatArray, FloatArray]) -> bool:
    with np.errstate(invalid="ignore"):
        moved = [
            np.abs(new - old) > 1e-3 * np.maximum(1.0, np.abs(new))
            for old, new in zip(before, after, strict=True)
        ]
    return not any(bool(np.any(change)) for change in moved)


def _relaxation(mip: Mip, box: Box, inputs: np.ndarray, budget: Budget, seed: int, threads: int) -> Box:
    """Least and largest value of single inputs over the LP relaxation, one warm LP after the other."""
    lower, upper = box.lower.copy(), box.upper.copy()
    relaxed = replace(mip.relaxed(), lower=lower, upper=upper)
    session = HighsEngine().load(relaxed, np.empty(0, dtype=np.int64), seed=seed, threads=threads)
    for j in inputs:
        for sign, bounds in ((1.0, lower), (-1.0, upper)):
            if np.isfinite(bounds[j]):
                continue
            if budget.over:
                return Box(lower, upper, complete=False)
            cost = np.zeros(mip.columns)
            cost[j] = sign
            try:
                answer = session.solve(Quadratic.linear(cost), budget=budget)
            except EngineError:
                continue  # no bound from here; the input stays open on this side
            if answer.status is MipStatus.OPTIMAL and answer.x is not None:
                bounds[j] = answer.x[j] - sign * PAD * max(1.0, abs(answer.x[j]))
    _tidy(mip, lower, upper)
    return Box(lower, upper)
