"""The restricted master: one whole column per component, by a MIP over the columns found so far."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import HAIR
from dovetail.methods.column_generation.master import GAP, MasterSolution, lp_columns
from dovetail.methods.column_generation.pool import ColumnPool
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import Program
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext

SPARING = 1e-6
"""Relative to 1 + |use|: a column must use so much less to be taken at the same cost."""
SWAPS = 4
"""Per component, at most: each gains or spares something, so this is a guard and no rule."""
FOR_NOTHING = 1e12
"""Score of a gain that uses no resource: before any ratio of gain to use."""
IN_LP = 1e-6
"""Weights below this are the LP's rounding."""


class RestrictedMaster:
    """Built anew for each solve: most columns of a pool have no place in it."""

    def __init__(self, context: SolveContext, pool: ColumnPool) -> None:
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


def improve(pool: ColumnPool, chosen: IntArray, room: FloatArray, prices: FloatArray) -> IntArray:
    """Swap columns of `chosen` (one per component) for cheaper ones as long as the rows hold.

    `room` (R,) is what the limits leave beside shared columns; `prices` (R,) weigh the rows. Of columns
    that cost the same the one that uses least is taken first, which makes room for others.
    """
    chosen = chosen.copy()
    use = pool.activity @ prices
    sparing = -SPARING * (1.0 + np.abs(use))
    for _ in range(SWAPS * chosen.size):
        total = pool.activity[chosen].sum(axis=0)
        current = chosen[pool.owner]
        gain = pool.cost[current] - pool.cost
        more = use - use[current]
        better = np.flatnonzero((gain > HAIR) | ((gain > -HAIR) & (more < sparing)))
        after = total + pool.activity[better] - pool.activity[current[better]]
        better = better[np.all(after <= room + HAIR, axis=1)]
        if better.size == 0:
            break
        # something for nothing first; then the most gain per resource
        gain, more = gain[better], more[better]
        score = np.where(more <= HAIR, FOR_NOTHING * (1.0 + gain) - more, gain / np.maximum(more, HAIR))
        best = int(better[np.argmax(score)])
        chosen[pool.owner[best]] = best
    return chosen


def least_use(pool: ColumnPool, prices: FloatArray, count: int) -> IntArray | None:
    """The column of each component that uses least at these prices, or None while one has no column."""
    order, rank = pool.ranked(pool.activity @ prices)
    best = order[rank == 0]
    return best if best.size == count else None


def round_lp(
    pool: ColumnPool, theta: FloatArray, base: IntArray, room: FloatArray, prices: FloatArray
) -> IntArray:
    """The master LP's weights `theta` rounded: the largest put into `base` first, where rows still hold."""
    chosen = base.copy()
    total = pool.activity[chosen].sum(axis=0)
    for k in np.argsort(-theta, kind="stable"):
        if theta[k] < IN_LP:
            break
        c = pool.owner[k]
        after = total - pool.activity[chosen[c]] + pool.activity[k]
        if pool.cost[k] <= pool.cost[chosen[c]] + HAIR and np.all(after <= room + HAIR):
            chosen[c], total = k, after
    return improve(pool, chosen, room, prices)
