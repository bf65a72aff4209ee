"""PIQP as the engine for programs without integers: an interior-point QP, fast and accurate.

PIQP has no time limit and holds the interpreter's lock, so its iterations are bounded.
Its word on infeasible or unbounded programs is numerical evidence, not a proof: HiGHS is
asked instead, as it is where PIQP does not converge (programs with hardly any weight).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import piqp
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.budget import Budget
from dovetail.core.engine import Bounds, MipAnswer, MipSession, MipStatus, Quadratic, certified
from dovetail.core.errors import EngineError
from dovetail.core.mip import Mip

MOST_ITERATIONS = 250


class PiqpEngine:
    """Continuous programs by PIQP."""

    name = "piqp"

    def refuses(self, mip: Mip, columns: IntArray) -> str | None:
        """Integer columns that can move."""
        moving = np.flatnonzero(mip.integer & (mip.upper > mip.lower))
        if moving.size:
            return (
                f"PIQP solves continuous programs only, and {mip.column_name(int(moving[0]))} is "
                'integer; choose engine="highs".'
            )
        return None

    def load(self, mip: Mip, columns: IntArray, *, seed: int = 0, threads: int = 1) -> MipSession:
        """Factorise the pattern once."""
        from dovetail.mip.highs import HighsSession

        def rescue() -> MipSession:
            return HighsSession(mip, columns, seed=seed, threads=threads)

        return PiqpSession(mip, rescue=rescue)


class PiqpSession:
    """A continuous program inside PIQP; columns that cannot move are left out of it."""

    def __init__(self, mip: Mip, *, rescue: Callable[[], MipSession] | None) -> None:
        self._mip = mip
        self._make_rescue = rescue
        self._whole = _Reduced(mip, mip.lower, mip.upper)

    def solve(
        self,
        objective: Quadratic,
        *,
        budget: Budget,
        start: FloatArray | None = None,
        gap: float = 1e-6,
        bounds: Bounds | None = None,
    ) -> MipAnswer:
        """Minimise to PIQP's own accuracy (1e-8); `start` and `gap` have no use here."""
        if budget.over:
            return MipAnswer(MipStatus.LIMIT, None, np.inf, -np.inf)
        program = self._whole if bounds is None else _Reduced(self._mip, *bounds)
        found = program.minimise(objective)
        if found is not None:
            x, bound = found
            try:
                return certified("PIQP", self._mip, objective, x, MipStatus.OPTIMAL, bound, bounds)
            except EngineError:
                pass  # HiGHS is asked below
        return self._rescue.solve(objective, budget=budget, start=start, gap=gap, bounds=bounds)

    @cached_property
    def _rescue(self) -> MipSession:
        if self._make_rescue is None:
            raise EngineError("PIQP did not converge.")
        return self._make_rescue()


class _Reduced:
    """The columns that can move, and the rows that they touch."""

    def __init__(self, mip: Mip, lower: FloatArray, upper: FloatArray) -> None:
        self._rest = np.where(lower == upper, lower, 0.0)
        self._free = np.flatnonzero(upper > lower)
        A = mip.A[:, self._free]
        used = np.diff(A.indptr) > 0
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
        """Point and bound, or None where PIQP does not converge."""
        x = self._rest.copy()
        if self._free.size == 0:
            return x, -np.inf
        weight = objective.weight[self._free]
        cost = objective.cost[self._free] - weight * objective.centre[self._free]
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
        return x, float(result.info.dual_obj) + objective.value(x) - seen
