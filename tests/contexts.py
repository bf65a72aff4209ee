"""A problem taken apart for tests: a search without `solve`, and what scipy and enumeration say of it."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from dovetail.mip.highs import HighsEngine
from dovetail.run.bound import GapLimit
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext, Start
from dovetail.run.incumbent import Incumbent
from dovetail.run.monitor import Monitor
from dovetail.run.work import Stopwatch


def context_of(problem, seconds=60.0, seed=0, start=None) -> SolveContext:
    """What a method is given, without the method."""
    budget, stopwatch = Budget(seconds), Stopwatch()
    incumbent = Incumbent(problem, HighsEngine(), budget, stopwatch, seed=seed, gap=GapLimit(1e-6))
    return SolveContext(problem, incumbent, budget, Monitor(budget), stopwatch, Start(start), seed)


def by_scipy(mip) -> tuple[float, np.ndarray] | None:
    """Objective (in the user's sense) and point that scipy's own HiGHS finds, or None if infeasible."""
    low = mip.minimised()
    limits = [] if low.n_rows == 0 else [LinearConstraint(low.A, low.row_lower, low.row_upper)]
    found = milp(
        low.cost,
        constraints=limits,
        integrality=low.integer.astype(int),
        bounds=Bounds(low.lower, low.upper),
        options={"mip_rel_gap": 0.0, "presolve": True},
    )
    if found.x is None:
        assert found.status == 2, found.message
        return None
    return mip.objective(found.x), found.x


def choices(problem) -> np.ndarray:
    """(T, columns) every point of a problem whose decisions are all integers, outputs as predicted."""
    mip = problem.mip
    decisions = np.setdiff1d(np.arange(mip.n_columns), problem.outputs)
    ranges = [np.arange(np.ceil(mip.lower[j]), np.floor(mip.upper[j]) + 1) for j in decisions]
    points = np.zeros((int(np.prod([r.size for r in ranges])), mip.n_columns))
    points[:, decisions] = list(itertools.product(*ranges))
    return np.array([problem.predict(x) for x in points])


def breach(mip, x) -> float:
    """By how much a point misses rows, bounds and integers."""
    activity = mip.A @ x
    return float(
        np.max(
            np.concatenate(
                [
                    mip.row_lower - activity,
                    activity - mip.row_upper,
                    mip.lower - x,
                    x - mip.upper,
                    np.abs(x - np.round(x))[mip.integer],
                    [0.0],
                ]
            )
        )
    )


def best_of(problem, points) -> tuple[float, np.ndarray] | None:
    """The best feasible one of some completed points, in the user's sense, or None."""
    mip = problem.mip
    kept = [x for x in points if breach(mip, x) <= 1e-9]
    if not kept:
        return None
    best = min(kept, key=lambda x: mip.sign * mip.objective(x))
    return mip.objective(best), best
