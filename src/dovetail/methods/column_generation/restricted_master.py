"""The restricted master: one whole column per component, by a MIP over the columns found so far."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import HAIR
from dovetail.methods.column_generation.master import GAP, MasterSolution, lp_columns
from dovetail.methods.column_generation.pool import Pool
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import Program
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext


class RestrictedMaster:
    """Built anew for each solve: most columns of a pool have no place in it."""

    def __init__(self, context: SolveContext, pool: Pool) -> None:
        self._context, self._pool = context, pool
        self._components, self._coupling, self._host = pool.components, pool.coupling, pool.scaled.host
        self._shared = np.flatnonzero(pool.components.shared)

    def solve(
        self, master: MasterSolution, known: IntArray, budget: Budget, most: int
    ) -> tuple[IntArray, FloatArray] | None:
        """The best choice of one column per component, and the shared columns; started from those `known`.

        Only columns that can still pay at the master's prices are in it, at most `most` per component.
        """
        pool, coupling, host = self._pool, self._coupling, self._host
        which = self._promising(master, known, most)
        count, rows, shared = self._components.count, coupling.h.size, self._shared.size
        body = lp_columns(pool, which)[:-1]
        on_shared = sp.csr_array(sp.diags_array(1.0 / coupling.scale) @ coupling.G[:, self._shared])
        left = sp.vstack([sp.csr_array((count, shared)), on_shared], format="csr")
        program = Program(
            sp.csr_array(sp.hstack([left, body], format="csr")),
            np.concatenate([np.ones(count), np.full(rows, -np.inf)]),
            np.concatenate([np.ones(count), coupling.h / coupling.scale]),
            np.concatenate([host.lower[self._shared], np.zeros(which.size)]),
            np.concatenate([host.upper[self._shared], np.ones(which.size)]),
            np.concatenate([host.integer[self._shared], np.ones(which.size, dtype=bool)]),
        )
        with self._context.stopwatch.measure("engine"):
            live = LoadedHighs(program, seed=self._context.seed, threads=self._context.threads)
            live.set_objective(np.concatenate([host.cost[self._shared], pool.cost[which]]), 0.0)
            if known.size == count:
                incumbent = self._context.incumbent.x
                start = np.zeros(shared) if incumbent is None else incumbent[self._shared]
                live.set_start(np.concatenate([start, np.isin(which, known).astype(float)]))
            _, x, _ = live.run(budget, GAP)
        if x is None:
            return None
        return which[x[shared:] > 0.5], x[:shared]

    def _promising(self, master: MasterSolution, known: IntArray, most: int) -> IntArray:
        """Columns by reduced cost; none whose reduced cost is more than the choice `known` is above the LP.

        A choice with such a column would cost more than the known one.
        """
        pool, incumbent = self._pool, self._context.incumbent
        reduced = master.reduced_cost(pool)
        order, rank = pool.ranked(reduced)
        kept = order[rank < most]
        if known.size == self._components.count and master.elastic < HAIR and incumbent.x is not None:
            known_cost = float(np.sum(pool.cost[known])) + float(
                self._host.cost[self._shared] @ incumbent.x[self._shared]
            )
            kept = kept[reduced[kept] <= known_cost - master.value + HAIR]
        return np.union1d(kept, known)
