"""Small programs of every kind that an engine may meet, and their optima, found without any engine."""

from __future__ import annotations

import itertools

import numpy as np

from dovetail.core.arrays import IntArray
from dovetail.core.mip import Mip
from dovetail.run.engine import Quadratic

KINDS = ("continuous", "binary", "integer", "mixed", "wide")
"""What the columns are; `wide` has integers between -200 and 200 beside continuous columns."""

NEAR = 9
"""Wide integers are enumerated between -9 and 9: the objectives' weights keep every optimum inside."""


def program(kind: str, rng: np.random.Generator) -> tuple[Mip, IntArray]:
    """A small bounded program of a kind, with a feasible point, and the columns that carry weights."""
    if kind == "continuous":
        integer = np.zeros(3, bool)
    elif kind in ("binary", "integer"):
        integer = np.ones(4, bool)
    else:
        integer = np.array([True, True, False, False])
    n = len(integer)
    lower = np.where(integer, 0.0, -1.0) if kind != "integer" else rng.integers(-3, 1, n).astype(float)
    upper = {"binary": np.ones(n), "integer": lower + rng.integers(1, 6, n)}.get(kind, np.full(n, 2.0))
    if kind == "wide":
        lower[:2], upper[:2] = -200.0, 200.0
    A = rng.normal(0, 1, (2, n)).round(3)
    inside = np.clip(rng.uniform(-1.0, 2.0, n), lower, upper)
    inside = np.where(integer, np.round(inside), inside)
    sides = A @ inside
    mip = Mip(
        cost=np.zeros(n),
        A=A,
        row_lower=[-np.inf, sides[1] - 1.0],
        row_upper=[sides[0] + 0.5, sides[1] + 1.0],
        lower=lower,
        upper=upper,
        integer=integer,
    )
    return mip, np.arange(n)[: max(2, n - 1)]


def objective(mip: Mip, columns: IntArray, rng: np.random.Generator) -> Quadratic:
    """Random costs, and weights around random centres."""
    weight, centre = np.zeros(mip.n_columns), np.zeros(mip.n_columns)
    weight[columns] = rng.uniform(0.2, 5.0, columns.size)
    centre[columns] = rng.uniform(-1.5, 2.5, columns.size)
    return Quadratic(rng.normal(0, 1, mip.n_columns), float(rng.normal()), weight, centre)


def true_minimum(mip: Mip, goal: Quadratic) -> float:
    """Every combination of integers, and for the continuous rest every set of limits that may be active.

    A convex quadratic is least at a point that its active limits, held as equations, make unique.
    """
    fixed, free = np.flatnonzero(mip.integer), np.flatnonzero(~mip.integer)
    near = [range(int(max(mip.lower[j], -NEAR)), int(min(mip.upper[j], NEAR)) + 1) for j in fixed]
    X = np.zeros((int(np.prod([len(values) for values in near])), mip.n_columns))
    X[:, fixed] = list(itertools.product(*near))
    A, eye = mip.A.toarray(), np.eye(mip.n_columns)
    h = np.concatenate([mip.row_upper, -mip.row_lower, mip.upper, -mip.lower])
    G, h = np.vstack([A, -A, eye, -eye])[np.isfinite(h)], h[np.isfinite(h)]
    room = h - X @ G.T
    pull = np.tile(goal.weight[free] * goal.centre[free] - goal.cost[free], (len(X), 1))
    best = np.inf
    for count in range(free.size + 1):
        for active in map(list, itertools.combinations(np.flatnonzero(G[:, free].any(axis=1)), count)):
            E = G[active][:, free]
            system = np.block([[np.diag(goal.weight[free]), E.T], [E, np.zeros((count, count))]])
            if np.linalg.matrix_rank(system) < len(system):
                continue
            Z = X.copy()
            Z[:, free] = np.linalg.solve(system, np.hstack([pull, room[:, active]]).T)[: free.size].T
            inside = Z[np.max(Z @ G.T - h, axis=1) <= 1e-9]
            best = min([best, *map(goal.value, inside)])
    return best
