"""A convex quadratic program inside PIQP, restricted to columns that can move and rows that contain them.

PIQP has no time limit and holds the interpreter's lock, so its iterations are limited.
"""

from __future__ import annotations

import numpy as np
import piqp
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray
from dovetail.core.mip import Mip
from dovetail.run.engine import Quadratic

MOST_ITERATIONS = 250
"""PIQP's own default: a few dozen are usual, and programs that need more go to HiGHS."""
SMALL, LARGE = 1e-3, 1e6
"""Objectives with numbers outside of these are scaled, as for HiGHS."""


class LoadedPiqp:
    """A program without integrality, between `lower` and `upper`; set up once, minimised often."""

    def __init__(self, mip: Mip, lower: FloatArray, upper: FloatArray) -> None:
        self._rest = np.where(lower == upper, lower, 0.0)
        self._free = np.flatnonzero(upper > lower)
        A = mip.A[:, self._free]
        used = np.diff(A.indptr) > 0
        used &= np.isfinite(mip.row_lower) | np.isfinite(mip.row_upper)  # PIQP grumbles about free rows
        shift = (mip.A @ self._rest)[used]
        row_lower, row_upper = mip.row_lower[used] - shift, mip.row_upper[used] - shift
        equal = row_lower == row_upper
        A = A[used]
        self._program = (
            sp.csc_matrix(A[equal]), row_lower[equal],
            sp.csc_matrix(A[~equal]), row_lower[~equal], row_upper[~equal],
            lower[self._free], upper[self._free],
        )  # fmt: skip
        self._solver = piqp.SparseSolver()
        self._solver.settings.max_iter = MOST_ITERATIONS
        self._weight: FloatArray | None = None

    def minimise(self, objective: Quadratic) -> tuple[FloatArray, float] | None:
        """Point and bound, or None if PIQP does not converge."""
        x = self._rest.copy()
        if self._free.size == 0:
            return x, -np.inf
        weight = objective.weight[self._free]
        cost = objective.cost[self._free] - weight * objective.centre[self._free]
        unit = _unit(weight, cost)  # PIQP's tolerances are absolute
        weight, cost = weight / unit, cost / unit
        if self._weight is not None and np.array_equal(weight, self._weight):
            self._solver.update(c=cost)
        else:
            # PIQP 0.6.4 needs ten times the iterations after an update of P: set up afresh instead
            self._solver.setup(sp.csc_matrix(sp.diags(weight)), cost, *self._program)
            self._weight = weight
        if self._solver.solve() != piqp.PIQP_SOLVED:
            return None
        result = self._solver.result
        x[self._free] = result.x
        # the constant that PIQP does not see: fixed columns, the offset, the squares of the centres
        seen = float(cost @ result.x + 0.5 * weight @ (result.x * result.x))
        return x, objective.value(x) + unit * (float(result.info.dual_obj) - seen)


def _unit(weight: FloatArray, cost: FloatArray) -> float:
    """The unit of the objective: 1 unless its numbers are very small or very large."""
    largest = max(float(weight.max(initial=0.0)), float(np.abs(cost).max(initial=0.0)))
    return 1.0 if largest == 0.0 or SMALL <= largest <= LARGE else 2.0 ** round(np.log2(largest))
