"""The host with inputs held in cells and outputs as the trees have them: an LP that is never infeasible.

Rows, and bounds of outputs, may be missed at a price. The LP's value is convex in all bounds, so that its
multipliers say what any other choice of cells costs *at least*: moves are tried in that order, and most of
them never.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import Mip
from dovetail.linearised.merit import ROW_PENALTY
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import Program
from dovetail.run.budget import Budget
from dovetail.structure.trees import TreeProblem, TreeSample

WIDEST = 1e4
"""A column counts for its cost times its width, but no wider than this: free columns may be endless."""
HELD = 1e-7
"""What may be missed in sum by a point that counts as feasible, for the search."""


def _limited(sample: TreeSample, host: Mip) -> IntArray:
    """Outputs that have bounds to be missed: a class is 0 or 1 by itself, and no row should say so again."""
    lower, upper = host.lower[sample.outputs], host.upper[sample.outputs]
    if sample.block.classifies:
        return sample.outputs[(lower > 0.0) | (upper < 1.0)]
    return sample.outputs[np.isfinite(lower) | np.isfinite(upper)]


@dataclass(frozen=True, eq=False)
class CellPoint:
    """The best point of the host in some cells."""

    cells: IntArray
    outputs: FloatArray
    """(columns,) as the trees say; 0 where a column is no output."""
    value: float
    """Cost and penalties."""
    x: FloatArray
    missed: float
    reduced: FloatArray
    """(columns,) what the value gains per unit of each column's bound."""


class CellProgram:
    """One LP, solved again and again with other bounds."""

    def __init__(self, trees: TreeProblem, *, seed: int, threads: int) -> None:
        self._trees, host = trees, trees.host
        limited = np.array([j for sample in trees.samples for j in _limited(sample, host)], dtype=np.int64)
        rows = sp.csr_array((np.ones(limited.size), (np.arange(limited.size), limited)),
                            shape=(limited.size, host.n_columns))  # fmt: skip
        A = sp.vstack([host.A, rows], format="csr")
        row_lower = np.concatenate([host.row_lower, host.lower[limited]])
        row_upper = np.concatenate([host.row_upper, host.upper[limited]])
        size = abs(A).max(axis=1).toarray().ravel() if A.shape[0] else np.empty(0)
        self._size = np.where(size > 0.0, size, 1.0)
        self._rows, self._missing = sp.csr_array(A.T), np.zeros(2 * A.shape[0])
        eye = sp.eye_array(A.shape[0])
        program = Program(
            sp.csr_array(sp.hstack([A, eye, -eye], format="csr")),
            row_lower,
            row_upper,
            *self._bounds(host.lower, host.upper),
            np.zeros(host.n_columns + self._missing.size, dtype=bool),
        )
        self._live = LoadedHighs(program, seed=seed, threads=threads)
        self.set_cost(host.cost)

    def set_cost(self, cost: FloatArray) -> None:
        """What columns cost from now on, and what missing a row does beside that."""
        host = self._trees.host
        width = np.minimum(host.upper - host.lower, WIDEST)
        at_stake = float(np.sqrt(np.sum((cost * width) ** 2))) or 1.0
        price = ROW_PENALTY * at_stake / self._size
        self._host_cost, self._cost = cost, np.concatenate([cost, price, price])
        self._live.set_objective(self._cost, host.offset)

    def solve(self, cells: IntArray, outputs: FloatArray, budget: Budget) -> CellPoint | None:
        """The best point, or None where the engine came to nothing."""
        host = self._trees.host
        lower, upper = self._trees.bounds_in(cells, outputs)
        self._live.set_bounds(*self._bounds(lower, upper))
        _, found, _ = self._live.run(budget, 0.0)
        if found is None:
            return None
        x = np.clip(found[: host.n_columns], lower, upper)
        reduced = self._host_cost - self._rows @ self._live.row_duals()
        missed = float(found[host.n_columns :].sum())
        return CellPoint(cells, outputs, float(self._cost @ found) + host.offset, x, missed, reduced)

    def _bounds(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (
            np.concatenate([lower, self._missing]),
            np.concatenate([upper, self._missing + np.inf]),
        )
