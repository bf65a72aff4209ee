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
TIGHTEN_SHARE, TIGHTEN_SECONDS = 0.08, 2.0
"""The same where they only make finite boxes tighter."""
TRIAL, WORTH = 8, 0.01
"""After so many inputs tightening goes on only if boxes shrank by this part."""


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


def tightened_box(problem: Problem, budget: Budget, *, seed: int = 0, threads: int = 1) -> Box:
    """`input_box`, then every input's least and largest value over the LP relaxation, as long as it pays."""
    box = input_box(problem, budget, seed=seed, threads=threads)
    mip = problem.mip.minimised()
    inputs = problem.inputs
    loose = inputs[box.finite[inputs] & (box.upper - box.lower > PAD)[inputs]]
    if loose.size == 0 or mip.rows == 0:
        return box
    part = budget.part(min(TIGHTEN_SHARE * budget.left, TIGHTEN_SECONDS))
    order = np.random.default_rng(seed).permutation(loose)
    return _shrunk(mip, box, order, part, seed, threads)


def _shrunk(mip: Mip, box: Box, inputs: np.ndarray, budget: Budget, seed: int, threads: int) -> Box:
    lower, upper = box.lower.copy(), box.upper.copy()
    ask = _Extremes(mip, box, budget, seed, threads)
    width = (upper - lower)[inputs]
    for done, j in enumerate(inputs):
        if budget.over:
            break
        if done == TRIAL and np.mean((upper - lower)[inputs[:done]] / width[:done]) > 1.0 - WORTH:
            break
        least, most = ask(j, 1.0), ask(j, -1.0)
        lower[j], upper[j] = max(lower[j], least), min(upper[j], most)
    _tidy(mip, lower, upper)
    return Box(lower, upper, complete=box.complete)


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
    """Least and largest value of the inputs that have no bound, over the LP relaxation."""
    lower, upper = box.lower.copy(), box.upper.copy()
    ask = _Extremes(mip, box, budget, seed, threads)
    for j in inputs:
        for sign, bounds in ((1.0, lower), (-1.0, upper)):
            if np.isfinite(bounds[j]):
                continue
            if budget.over:
                return Box(lower, upper, complete=False)
            bounds[j] = ask(j, sign)
    _tidy(mip, lower, upper)
    return Box(lower, upper)


class _Extremes:
    """Least (sign 1) and largest (sign -1) value of a column over the LP relaxation, warm and padded."""

    def __init__(self, mip: Mip, box: Box, budget: Budget, seed: int, threads: int) -> None:
        relaxed = replace(mip.relaxed(), lower=box.lower, upper=box.upper)
        nothing = np.empty(0, dtype=np.int64)
        self._session = HighsEngine().load(relaxed, nothing, seed=seed, threads=threads)
        self._budget, self._columns = budget, mip.columns

    def __call__(self, j: int, sign: float) -> float:
        cost = np.zeros(self._columns)
        cost[j] = sign
        try:
            answer = self._session.solve(Quadratic.linear(cost), budget=self._budget)
        except EngineError:
            return -sign * np.inf  # no bound from here; the input stays as it is on this side
        if answer.status is not MipStatus.OPTIMAL or answer.x is None:
            return -sign * np.inf
        return float(answer.x[j] - sign * PAD * max(1.0, abs(answer.x[j])))
