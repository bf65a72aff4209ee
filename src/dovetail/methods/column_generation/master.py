"""The master program: how much of each column, at least cost, within the coupling rows.

    min  cost'theta + shared cost + dear'(elastic)
    s.t. sum of theta over a component's columns = 1,   G z - elastic - level |h| <= h

Its duals are the prices. Where the master reaches a value that the integers cannot, all prices vanish; then
the *level* program (how far could every limit be lowered at this cost?) has prices that still tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.analysis.components import Components
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.methods.column_generation.pool import Coupling, Pool
from dovetail.mip.highs_model import HighsModel
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext


@dataclass(frozen=True, eq=False)
class Prices:
    """What a unit of each coupling row is worth, beside `on_cost` for a unit of the objective."""

    on_cost: float
    rows: FloatArray
    """(R,) never negative."""

    def of_columns(self, scaled: ScaledProblem, coupling: Coupling) -> FloatArray:
        """Each host column's cost at these prices."""
        return np.asarray(self.on_cost * scaled.host.cost + coupling.G.T @ self.rows)


@dataclass(frozen=True, eq=False)
class MasterSolution:
    """A solution of the master LP."""

    value: float
    theta: FloatArray
    shared: FloatArray
    prices: Prices
    convexity: FloatArray
    """(C,) what each component costs at these prices."""
    elastic: float
    """How much of the coupling rows it misses, in their scales."""

    def reduced_cost(self, pool: Pool) -> FloatArray:
        """What each column costs beyond its component's best at these prices."""
        prices = self.prices
        return np.asarray(
            prices.on_cost * pool.cost + pool.activity @ prices.rows - self.convexity[pool.owner]
        )


class Master:
    """Live programs over a growing pool."""

    def __init__(
        self, context: SolveContext, scaled: ScaledProblem, parts: Components, coupling: Coupling, pool: Pool
    ) -> None:
        self._context, self._scaled, self._pool = context, scaled, pool
        self._parts, self._coupling = parts, coupling
        self._shared = np.flatnonzero(parts.shared)
        self._G_shared = sp.csr_array(coupling.G[:, self._shared])
        self._live: HighsModel | None = None
        self._in_it = 0

    def rebuild(self) -> None:
        """Begin anew: the pool was thinned out."""
        self._live = None

    def blend(self, budget: Budget, *, level_at: float | None = None) -> MasterSolution | None:
        """The master LP; with `level_at`, the level program at that cost."""
        live = self._loaded()
        pool, coupling, host = self._pool, self._coupling, self._scaled.host
        rows, shared = coupling.h.size, self._shared.size
        dear = 100.0 * max(1e-6, float(np.max(np.abs(pool.cost), initial=0.0)))
        own_cost = np.concatenate([host.cost[self._shared], np.full(rows, dear), [0.0], pool.cost])
        lower = np.concatenate([host.lower[self._shared], np.zeros(rows + 1 + pool.size)])
        upper = np.concatenate(
            [host.upper[self._shared], np.full(rows, np.inf), [0.0], np.full(pool.size, np.inf)]
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
            live.set_row_limits(self._parts.count + rows, -np.inf, ceiling)
            live.set_bounds(lower, upper)
            live.set_objective(cost, 0.0)
            _, x, _ = live.run(budget, 1e-6)
            if x is None:
                return None
            duals = live.row_duals()
        count = self._parts.count
        prices = Prices(
            1.0 if level_at is None else max(0.0, -float(duals[count + rows])),
            np.maximum(0.0, -duals[count : count + rows]) / coupling.scale,
        )
        return MasterSolution(
            float(own_cost @ x),
            x[shared + rows + 1 :],
            x[:shared],
            prices,
            duals[:count],
            float(np.sum(x[shared : shared + rows])),
        )

    def _loaded(self) -> HighsModel:
        """The live program with every column of the pool in it."""
        if self._live is None:
            self._live = self._empty()
            self._in_it = 0
        if self._in_it < self._pool.size:
            new = np.arange(self._in_it, self._pool.size)
            columns = self._columns(new)
            with self._context.stopwatch.measure("engine"):
                self._live.add_columns(columns)
            self._in_it = self._pool.size
        return self._live

    def _empty(self) -> HighsModel:
        coupling, count = self._coupling, self._parts.count
        rows, shared, host = coupling.h.size, self._shared.size, self._scaled.host
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
        return HighsModel(
            sp.csr_array(body),
            np.concatenate([np.ones(count), free, [-np.inf]]),
            np.concatenate([np.ones(count), coupling.h / coupling.scale, [np.inf]]),
            np.concatenate([host.lower[self._shared], np.zeros(rows + 1)]),
            np.concatenate([host.upper[self._shared], np.full(rows, np.inf), [0.0]]),
            np.zeros(shared + rows + 1, dtype=bool),
            seed=self._context.seed,
            threads=self._context.threads,
        )

    def _columns(self, which: IntArray) -> sp.csc_array:
        """Columns of the pool as columns of the program."""
        pool, count = self._pool, self._parts.count
        pick = sp.csc_array(
            (np.ones(which.size), (pool.owner[which], np.arange(which.size))), shape=(count, which.size)
        )
        use = pool.activity[which] / self._coupling.scale
        use[np.abs(use) < 1e-9] = 0.0
        cost = sp.csc_array(pool.cost[None, which])
        return sp.csc_array(sp.vstack([pick, sp.csc_array(use.T), cost], format="csc"))

    def join(
        self, blend: MasterSolution, known: IntArray, budget: Budget, most: int
    ) -> tuple[IntArray, FloatArray] | None:
        """The best choice of one column per component, by a short MIP that starts from the columns `known`.

        Only columns that can still pay at the blend's prices are in it, at most `most` per component.
        """
        pool, coupling, host = self._pool, self._coupling, self._scaled.host
        which = self._worth_joining(blend, known, most)
        count, rows, shared = self._parts.count, coupling.h.size, self._shared.size
        body = self._columns(which)[:-1]
        scaled = sp.csr_array(sp.diags_array(1.0 / coupling.scale) @ self._G_shared)
        left = sp.vstack([sp.csr_array((count, shared)), scaled], format="csr")
        whole = host.integer[self._shared]
        program = (
            sp.csr_array(sp.hstack([left, body], format="csr")),
            np.concatenate([np.ones(count), np.full(rows, -np.inf)]),
            np.concatenate([np.ones(count), coupling.h / coupling.scale]),
            np.concatenate([host.lower[self._shared], np.zeros(which.size)]),
            np.concatenate([host.upper[self._shared], np.ones(which.size)]),
            np.concatenate([whole, np.ones(which.size, dtype=bool)]),
        )
        with self._context.stopwatch.measure("engine"):
            live = HighsModel(*program, seed=self._context.seed, threads=self._context.threads)
            live.set_objective(np.concatenate([host.cost[self._shared], pool.cost[which]]), 0.0)
            if known.size == count:
                incumbent = self._context.incumbent.x
                begin = np.zeros(shared) if incumbent is None else incumbent[self._shared]
                live.set_start(np.concatenate([begin, np.isin(which, known).astype(float)]))
            _, x, _ = live.run(budget, 1e-6)
        if x is None:
            return None
        return which[x[shared:] > 0.5], x[:shared]

    def _worth_joining(self, blend: MasterSolution, known: IntArray, most: int) -> IntArray:
        pool = self._pool
        reduced = blend.reduced_cost(pool)
        order, rank = pool.ranked(reduced)
        kept = order[rank < most]
        incumbent = self._context.incumbent
        if known.size == self._parts.count and blend.elastic < 1e-9 and incumbent.x is not None:
            owned = float(np.sum(pool.cost[known])) + float(
                self._scaled.host.cost[self._shared] @ incumbent.x[self._shared]
            )
            kept = kept[reduced[kept] <= owned - blend.value + 1e-9]
        return np.union1d(kept, known)
