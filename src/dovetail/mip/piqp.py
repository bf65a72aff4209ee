"""PIQP, the engine for programs without integers: an interior-point QP solver, fast and accurate.

PIQP's status infeasible or unbounded is numerical evidence, not a proof. HiGHS decides in these cases, and
also if PIQP does not converge.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import Mip
from dovetail.mip.highs import HighsSession
from dovetail.mip.loaded_piqp import LoadedPiqp
from dovetail.run.budget import Budget
from dovetail.run.engine import Bounds, Heard, MipAnswer, MipSession, MipStatus, Quadratic, certified


class PiqpEngine:
    """Continuous programs by PIQP."""

    name = "piqp"

    def refuses(self, mip: Mip, columns: IntArray) -> str | None:
        """Programs with integer columns that can move."""
        moving = np.flatnonzero(mip.integer & (mip.upper > mip.lower))
        if moving.size:
            return (
                f"PIQP solves continuous programs only, and {mip.column_name(int(moving[0]))} is "
                'integer; choose engine="highs".'
            )
        return None

    def load(self, mip: Mip, columns: IntArray, *, seed: int = 0, threads: int = 1) -> MipSession:
        """Set the program up once."""
        return PiqpSession(mip, columns, seed=seed, threads=threads)


class PiqpSession:
    """A continuous program inside PIQP, with HiGHS as a fallback."""

    def __init__(self, mip: Mip, columns: IntArray, *, seed: int, threads: int) -> None:
        self._mip, self._columns = mip, columns
        self._seed, self._threads = seed, threads
        self._program = LoadedPiqp(mip, mip.lower, mip.upper)

    def solve(
        self,
        objective: Quadratic,
        *,
        budget: Budget,
        start: FloatArray | None = None,
        gap: float = 1e-6,
        bounds: Bounds | None = None,
        cutoff: float = np.inf,
        heard: Heard | None = None,
    ) -> MipAnswer:
        """Minimise to PIQP's own accuracy (1e-8); the other arguments have no effect."""
        if budget.over:
            return MipAnswer(MipStatus.LIMIT, None, np.inf, -np.inf)
        program = self._program if bounds is None else LoadedPiqp(self._mip, *bounds)
        found = program.minimise(objective)
        if found is not None:
            x, bound = found
            try:
                return certified("PIQP", self._mip, objective, x, MipStatus.OPTIMAL, bound, bounds)
            except EngineError:
                pass  # HiGHS is used below
        return self._highs_session.solve(objective, budget=budget, start=start, gap=gap, bounds=bounds)

    @cached_property
    def _highs_session(self) -> MipSession:
        return HighsSession(self._mip, self._columns, seed=self._seed, threads=self._threads)
