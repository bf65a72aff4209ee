"""The smallest change of its rows that makes an infeasible host feasible: an elastic program.

    min  sum_i (s_i + t_i) / max(1, |side_i|)     s.t.   lower - s <= A x <= upper + t,  bounds,  integers

Bounds and integers stay as they are. The result is a suggestion, with a feasible point of the relaxed rows;
it is not proved to be the smallest change.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import DovetailError
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.core.widening import Widening, widenings
from dovetail.mip.highs import HighsEngine
from dovetail.run.budget import Budget
from dovetail.run.engine import Quadratic, least_seconds
from dovetail.run.failures import expendable
from dovetail.structure.boxes import class_limits

SECONDS, SHARE = 2.0, 0.2
"""Time limit, and share of the time left."""


def smallest_relaxation(
    problem: Problem, budget: Budget, *, seed: int = 0, threads: int = 1
) -> tuple[Widening, ...]:
    """Rows to widen so that the constraints become feasible, the smallest change first; empty if none is
    found in time."""
    part = budget.part(min(SECONDS, SHARE * budget.left))
    lower, upper, integer = class_limits(problem, problem.mip.lower, problem.mip.upper)
    if problem.mip.n_rows == 0 or np.any(lower > upper):
        return ()
    host = replace(problem.mip.minimised(), lower=lower, upper=upper, integer=integer)
    elastic = _elastic(host)
    if 2.0 * least_seconds(elastic) > part.left:
        return ()
    x = _point(elastic, part, seed, threads)
    missed = () if x is None else widenings(host, x[: host.n_columns])
    return tuple(one for one in missed if one.kind == "row")


def nearest_point(
    mip: Mip, rows: int, columns: IntArray, budget: Budget, *, seed: int = 0
) -> FloatArray | None:
    """The point that misses the first `rows` rows, and the bounds of `columns`, by least; all others hold.

        min t   s.t.   lower - t <= A x <= upper + t

    The point is a suggestion as well; None if none is found in time.
    """
    part = budget.part(min(SECONDS, SHARE * budget.left))
    unit = sp.eye_array(mip.n_columns, format="csr")[columns]
    given = np.concatenate([np.arange(rows), mip.n_rows + np.arange(columns.size)])
    A = sp.vstack([mip.A, unit], format="csr")
    row_lower = np.concatenate([mip.row_lower, mip.lower[columns]])
    row_upper = np.concatenate([mip.row_upper, mip.upper[columns]])
    lower, upper = mip.lower.copy(), mip.upper.copy()
    lower[columns], upper[columns] = -np.inf, np.inf
    none = np.full(given.size, np.inf)
    gives = sp.csr_array((np.ones(given.size), (given, np.zeros(given.size, dtype=int))), (A.shape[0], 1))
    kept_above = row_upper.copy()
    kept_above[given] = np.inf  # these rows are added below
    elastic = Mip(
        cost=np.append(np.zeros(mip.n_columns), 1.0),
        A=sp.vstack(
            [sp.hstack([A, gives]), sp.hstack([A[given], sp.csr_array(-np.ones((given.size, 1)))])],
            format="csr",
        ),
        row_lower=np.concatenate([row_lower, -none]),
        row_upper=np.concatenate([kept_above, row_upper[given]]),
        lower=np.append(lower, 0.0),
        upper=np.append(upper, np.inf),
        integer=np.append(mip.integer, False),
    )
    if 2.0 * least_seconds(elastic) > part.left:
        return None
    x = _point(elastic, part, seed, 1)
    return None if x is None else x[: mip.n_columns]


def _elastic(host: Mip) -> Mip:
    """The program with two slack columns for each row."""
    eye = sp.eye_array(host.n_rows, format="csr")
    below, above = np.isfinite(host.row_lower), np.isfinite(host.row_upper)
    dear = [
        np.where(given, 1.0 / np.maximum(1.0, np.abs(np.where(given, side, 0.0))), 0.0)
        for given, side in ((below, host.row_lower), (above, host.row_upper))
    ]
    none = np.zeros(host.n_rows)
    return Mip(
        cost=np.concatenate([np.zeros(host.n_columns), *dear]),
        A=sp.hstack([host.A, eye, -eye], format="csr"),
        row_lower=host.row_lower,
        row_upper=host.row_upper,
        lower=np.concatenate([host.lower, none, none]),
        upper=np.concatenate([host.upper, np.where(below, np.inf, 0.0), np.where(above, np.inf, 0.0)]),
        integer=np.concatenate([host.integer, np.zeros(2 * host.n_rows, dtype=bool)]),
    )


def _point(elastic: Mip, budget: Budget, seed: int, threads: int) -> FloatArray | None:
    with expendable("smallest change of the constraints", DovetailError):  # numbers too large for engines
        session = HighsEngine().load(elastic, np.empty(0, dtype=np.int64), seed=seed, threads=threads)
        return session.solve(Quadratic.linear(elastic.cost), budget=budget).x
    return None
