"""Branch and bound of a MIP without predictors, whose bounds dovetail proves itself.

An engine's tree is much faster, but its claims depend on tolerances and on a presolve that cannot be
verified. This tree confirms the engine's claim on small programs, corrects a wrong claim, and returns the
bound proved so far where the program is too large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.bounds.safe_lp import SafeLp
from dovetail.branching.host import host_rows
from dovetail.branching.model import Model
from dovetail.branching.tree import Tree
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import HAIR, TOLERANCE, Mip
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus

ROUNDING = 1e-12
"""Relative to the terms of a row: above the rounding of sums of thousands of products."""


@dataclass(frozen=True, eq=False)
class Proof:
    """The result of a tree."""

    bound: float
    """A lower bound of the cost; infinity: infeasible."""
    x: FloatArray | None
    """The best point found, with integers exact; for the check."""
    value: float = math.inf
    """The cost of `x`."""
    unbounded: bool = False
    """The relaxation is unbounded, according to the solver."""


def branch_and_bound(
    mip: Mip,
    budget: Budget,
    *,
    cutoff: float = math.inf,
    slack: float = 0.0,
    nodes: int = 1,
    seed: int = 0,
    threads: int = 1,
) -> Proof:
    """Bound `mip`, in minimisation form, with about `nodes` boxes. Boxes that cannot improve `cutoff`, a
    known cost, by more than `slack` are closed."""
    root = SafeLp(mip, seed=seed, threads=threads).minimise(mip.cost, mip.offset, budget)
    if root.status is MipStatus.UNBOUNDED:
        return Proof(-math.inf, None, unbounded=True)
    best, value = _cheapest(mip, [] if root.x is None else [root.x], None, cutoff)
    if root.bound >= value - slack:
        return Proof(root.bound, best, math.inf if best is None else value)
    host = host_rows(mip, 0, [], np.empty(0, dtype=np.int64))
    made = Model(host, (), mip.lower.copy(), mip.upper.copy(), mip.n_columns)
    tree = Tree(made, seed=seed, threads=threads, counted=False)
    while len(tree) and tree.boxes < nodes and not budget.over:
        points = [*tree.step(value - slack, budget), *tree.left]
        tree.left.clear()
        best, value = _cheapest(mip, points, best, value)
    bound = max(root.bound, tree.bound)
    return Proof(bound, best, math.inf if best is None else value)


def _cheapest(
    mip: Mip, points: list[FloatArray], best: FloatArray | None, value: float
) -> tuple[FloatArray | None, float]:
    """The best point and its cost, or the cost to beat, after more points."""
    for x in points:
        whole = np.where(mip.integer, np.round(x[: mip.n_columns]), x[: mip.n_columns])
        if _holds(mip, x[: mip.n_columns], whole) and mip.objective(whole) < value:
            best, value = whole, mip.objective(whole)
    return best, value


def _holds(mip: Mip, x: FloatArray, whole: FloatArray) -> bool:
    """Whether a point is integral up to rounding and satisfies the rows likewise."""
    if np.max(np.abs(whole - x), initial=0.0) > TOLERANCE:
        return False
    room = HAIR + ROUNDING * (abs(mip.A) @ np.abs(whole))
    return bool(np.all(mip.row_violation(whole) <= room))
