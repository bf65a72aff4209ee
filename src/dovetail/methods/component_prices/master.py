"""The master LP: a convex combination of each component's columns, at least cost, within the coupling rows.

    min  cost'theta + shared cost + penalty'elastic
    s.t. sum of theta over a component's columns = 1,   G z - elastic - level scale <= h

Its duals are the prices. Where the master reaches a value that the integers cannot, all prices vanish; then
the *level* LP (how far could every limit be lowered at this cost?) has prices that still tell:

    min  level     s.t.  the same rows with elastic = 0, and cost'theta + shared cost <= this cost

The restricted master takes one whole column per component, by a MIP over the columns found so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import HAIR, SMALLEST, Mip
from dovetail.methods.component_prices.pool import ColumnPool, Columns, CouplingLimits
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import Program
from dovetail.mip.turns import answer_of
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.run.engine import MipStatus

ELASTIC_COST = 100.0
"""Missing a coupling row by its scale costs so many times the dearest column: more than any choice saves."""
SMALLEST_COST = 1e-6
"""Of the dearest column, where all cost nothing."""
GAP = 1e-6
"""Asked of HiGHS, for which it is an LP."""
SPARING = 1e-6
"""Relative to 1 + |use|: a column must use so much less to be taken at the same cost."""
SWAPS = 4
"""Per component, at most: each gains or spares something, so this is a guard and no rule."""
FOR_NOTHING = 1e12
"""Score of a gain that uses no resource: before any ratio of gain to use."""
IN_LP = 1e-6
"""Weights below this are the LP's rounding."""


@dataclass(frozen=True, eq=False)
class MasterPrices:
    """What a unit of each coupling row is worth, in units of `on_cost` times the objective."""

    on_cost: float
    """1 for the master LP; the dual of the limit on the cost for the level LP."""
    rows: FloatArray
    """(R,) minus the duals of G z <= h, never negative: what lowering h by a unit costs."""

    def of_columns(self, host: Mip, coupling: CouplingLimits) -> FloatArray:
        """Each host column's cost at these prices."""
        return np.asarray(self.on_cost * host.cost + coupling.G.T @ self.rows)


@dataclass(frozen=True, eq=False)
class MasterSolution:
    """A solution of the master LP, or of the level LP."""

    value: float
    """Cost, penalties for missed rows included."""
    theta: FloatArray
    """(K,) the weight of each column."""
    shared: FloatArray
    """The host's columns that belong to no component."""
    prices: MasterPrices
    convexity: FloatArray
    """(C,) duals of the convexity rows: what each component costs at these prices."""
    elastic: float
    """How much of the coupling rows it misses, in their scales, summed."""

    def reduced_cost(self, pool: ColumnPool) -> FloatArray:
        """What each column costs beyond its component's best at these prices."""
        prices = self.prices
        return np.asarray(
            prices.on_cost * pool.cost + pool.activity @ prices.rows - self.convexity[pool.owner]
        )


class Master:
    """A live LP over a growing pool."""

    def __init__(self, context: SolveContext, pool: Columns, *, elastic: bool = True) -> None:
        """Rows that are not `elastic` have to hold."""
        self._context, self._pool, self._most_missed = context, pool, np.inf if elastic else 0.0
        self._components, self._coupling, self._host = pool.components, pool.coupling, pool.host
        self._shared, self.status = pool.shared, MipStatus.LIMIT
        self._G_shared = sp.csr_array(pool.coupling.G[:, self._shared])
        self._live: LoadedHighs | None = None
        self._loaded_columns = 0

    def rebuild(self) -> None:
        """Begin anew: columns were taken out of the pool."""
        self._live = None

    def solve(self, budget: Budget, *, level_at: float | None = None) -> MasterSolution | None:
        """The master LP, or the level LP at the cost `level_at`; None where it has no solution."""
        live = self._loaded()
        pool, coupling, host = self._pool, self._coupling, self._host
        rows, shared = coupling.h.size, self._shared.size
        penalty = ELASTIC_COST * max(SMALLEST_COST, float(np.max(np.abs(pool.cost), initial=0.0)))
        own_cost = np.concatenate([host.cost[self._shared], np.full(rows, penalty), [0.0], pool.cost])
        lower = np.concatenate([host.lower[self._shared], np.zeros(rows + 1 + pool.size)])
        upper = np.concatenate(
            [host.upper[self._shared], np.full(rows, self._most_missed), [0.0], np.full(pool.size, np.inf)]
        )
        ceiling = np.inf
        cost = own_cost
        if level_at is not None:
            upper[shared : shared + rows] = 0.0
            lower[shared + rows], upper[shared + rows] = -1.0, np.inf
            cost = np.zeros(own_cost.size)
            cost[shared + rows] = 1.0
            ceiling = level_at
        with self._context.stopwatch.measure("engine"):
            live.set_row_limits(self._components.count + rows, -np.inf, ceiling)
            live.set_bounds(lower, upper)
            live.set_objective(cost, 0.0)
            self.status, x, _ = live.run(budget, GAP)
            if x is None or self.status is MipStatus.INFEASIBLE:
                return None
            duals = live.row_duals()
        return self._solution(x, duals, own_cost, is_level=level_at is not None)

    def _solution(
        self, x: FloatArray, duals: FloatArray, own_cost: FloatArray, *, is_level: bool
    ) -> MasterSolution:
        count, rows, shared = self._components.count, self._coupling.h.size, self._shared.size
        prices = MasterPrices(
            max(0.0, -float(duals[count + rows])) if is_level else 1.0,
            np.maximum(0.0, -duals[count : count + rows]) / self._coupling.scale,
        )
        return MasterSolution(
            float(own_cost @ x),
            x[shared + rows + 1 :],
            x[:shared],
            prices,
            duals[:count],
            float(np.sum(x[shared : shared + rows])),
        )

    def _loaded(self) -> LoadedHighs:
        """The live program with every column of the pool in it."""
        if self._live is None:
            self._live = self._empty()
            self._loaded_columns = 0
        if self._loaded_columns < self._pool.size:
            new = np.arange(self._loaded_columns, self._pool.size)
            columns = lp_columns(self._pool, new)
            with self._context.stopwatch.measure("engine"):
                self._live.add_columns(columns)
            self._loaded_columns = self._pool.size
        return self._live

    def _empty(self) -> LoadedHighs:
        coupling, count = self._coupling, self._components.count
        rows, shared, host = coupling.h.size, self._shared.size, self._host
        scaled = sp.csr_array(sp.diags_array(1.0 / coupling.scale) @ self._G_shared)
        body = sp.block_array(
            [
                [sp.csr_array((count, shared)), sp.csr_array((count, rows)), sp.csr_array((count, 1))],
                [scaled, -sp.eye_array(rows), sp.csr_array(-np.ones((rows, 1)))],
                [sp.csr_array(host.cost[None, self._shared]), sp.csr_array((1, rows)), sp.csr_array((1, 1))],
            ],
            format="csr",
        )
        free = np.full(rows, -np.inf)
        program = Program(
            sp.csr_array(body),
            np.concatenate([np.ones(count), free, [-np.inf]]),
            np.concatenate([np.ones(count), coupling.h / coupling.scale, [np.inf]]),
            np.concatenate([host.lower[self._shared], np.zeros(rows + 1)]),
            np.concatenate([host.upper[self._shared], np.full(rows, np.inf), [0.0]]),
            np.zeros(shared + rows + 1, dtype=bool),
        )
        return LoadedHighs(program, seed=self._context.seed, threads=self._context.threads)


def lp_columns(pool: Columns, which: IntArray) -> sp.csc_array:
    """Some of the pool as columns of a program: convexity rows, coupling rows in their scales, cost."""
    convexity = sp.csc_array(
        (np.ones(which.size), (pool.owner[which], np.arange(which.size))),
        shape=(pool.components.count, which.size),
    )
    use = pool.activity[which] / pool.coupling.scale
    use[np.abs(use) < SMALLEST] = 0.0
    cost = sp.csc_array(pool.cost[None, which])
    return sp.csc_array(sp.vstack([convexity, sp.csc_array(use.T), cost], format="csc"))


class RestrictedMaster:
    """Built anew for each solve: most columns of a pool have no place in it."""

    def __init__(self, context: SolveContext, pool: ColumnPool) -> None:
        self._context, self._pool = context, pool

    def solve(
        self, master: MasterSolution, known: IntArray, budget: Budget, most: int
    ) -> tuple[IntArray, FloatArray] | None:
        """The best choice of one column per component, and the shared columns; started from those `known`.

        Only columns that can still pay at the master's prices are in it, at most `most` per component.
        """
        context, pool = self._context, self._pool
        which, shared, start = self._promising(master, known, most), pool.shared, None
        if known.size == pool.components.count:
            best = context.incumbent.x
            own = np.zeros(shared.size) if best is None else best[shared]
            start = np.concatenate([own, np.isin(which, known).astype(float)])
        with context.stopwatch.measure("engine"):
            answer = answer_of(
                "MIP of a choice", pool.as_mip(which), budget, seed=context.seed, threads=context.threads,
                start=start, gap=GAP,
            )  # fmt: skip
        if answer is None or answer.x is None:
            return None
        return which[answer.x[shared.size :] > 0.5], answer.x[: shared.size]

    def _promising(self, master: MasterSolution, known: IntArray, most: int) -> IntArray:
        """Columns by reduced cost; none whose reduced cost is more than the choice `known` is above the LP.

        A choice with such a column would cost more than the known one.
        """
        pool, incumbent = self._pool, self._context.incumbent
        reduced = master.reduced_cost(pool)
        order, rank = pool.ranked(reduced)
        kept = order[rank < most]
        if known.size == pool.components.count and master.elastic < HAIR and incumbent.x is not None:
            known_cost = float(np.sum(pool.cost[known])) + float(
                pool.host.cost[pool.shared] @ incumbent.x[pool.shared]
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
