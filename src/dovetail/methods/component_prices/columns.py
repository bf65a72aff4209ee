"""Column generation (Dantzig and Wolfe): prices on coupling rows, columns from every component.

    repeat
        LP:       convex combinations of columns, at least cost, within the coupling rows  ->  prices
        pricing:  every component's best points at those prices, all in one LP  ->  columns
    choice:       one column per component, by swaps and a short MIP  ->  candidates

Idea: flipping a class has a fixed cost that no slope at an untouched point shows; a column is a real point,
so the LP weighs true costs against each other. Only the coupling rows carry prices: a price on every
x = u would be ambiguous at kinks. Weakness: pricing is local, so that it gives no bounds (`prices.py` proves
bounds at these prices).
"""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import EngineError
from dovetail.decomposition.choice import Choice, Relaxation, forgiven
from dovetail.decomposition.prices import highest
from dovetail.linearised.scaled_problem import scaled_problem
from dovetail.linearised.starts import Starts
from dovetail.methods.component_prices.kinds import component_kinds
from dovetail.methods.component_prices.pool import ColumnPool
from dovetail.methods.component_prices.pricing import Pricing
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.run.failures import expendable
from dovetail.structure.structure import structure_of

VANISHED = 1e-9
"""Prices, in their rows' scales, and weights below this are rounding errors of the LP."""
LEVEL_ROOM = 1e-7
"""Relative: the cost limit of the level LP exceeds the first LP's optimum by this, since rounding could make
it infeasible."""
MIP_SECONDS = 2.0
"""Seconds for the MIP of one choice: columns found in this time improve the solution more than an optimal
choice (water, n = 100 and 400, after 20 s: 43 and 261 with 0.5, 42 and 258 with 2, 43 and 257 with 8)."""
FULL, KEPT = 40, 20
"""Number of columns per component at which the pool is reduced, and the number that is kept: the LP grows
with it."""
MOST_POINTS = 200
"""Number of earlier points, evenly chosen, that become the first columns: descents leave thousands, and using
them all takes longer than the pricing that finds better ones (wine)."""
STEPS = 7
"""Sequential-LP steps of one pricing round: each makes columns, and the prices soon change."""
STARTS = 4
"""Kinds of starting points of pricing, in turn: a cycle of rounds has used all of them."""
SETTLED = 1e-4
"""Relative: prices for a proof are settled when a cycle of rounds lowers the LP's value by less."""


class ComponentColumns:
    """Columns of all components, and prices at which they are in balance (`PriceSource`)."""

    def __init__(self, context: SolveContext) -> None:
        self.context, self._scaled = context, context.once(scaled_problem)
        self._alike = [kind.columns for kind in context.once(component_kinds)]
        """(members, columns) of components that may have each other's columns."""
        self._components = context.once(structure_of).parts
        self.pool = ColumnPool(self._scaled, self._components)
        self._pricing = Pricing(context, self._scaled, self._components)
        self._starts = Starts(context, self._scaled)
        self._prices = np.zeros(self.pool.limit.size)
        self._rounds, self._values = 0, list[float]()
        """Rounds so far, and the LP's values before those since columns came from elsewhere."""
        self._chosen = 0
        """Columns at the last choice."""
        points = context.archive.points
        for z in points[:: 1 + len(points) // MOST_POINTS]:
            self._keep(z)
        for first in (context.incumbent.x, self._starts.least_activity(), self._starts.cheapest()):
            if first is not None:
                self._keep(self._completed(first))

    def _completed(self, z: FloatArray) -> FloatArray:
        """A point with its outputs set to the predictors' answers."""
        networks = self._scaled.networks
        return np.asarray(networks.with_predictions(z[None], networks.values(z))[0])

    def prices(self, context: SolveContext, rounds: int) -> FloatArray | None:
        """(R,) by the LP, after some more rounds of columns, as long as these improve the LP, and a choice;
        None while a component has no column."""
        self.context = context
        for _ in range(rounds):
            if context.over or self._settled:
                break
            self._values.append(self._round())
        known, found = self._known_columns(), self._relaxed(context.budget)
        if found is None:
            return None
        self._prices = found.prices
        if self.pool.size > self._chosen:
            self._choose(found, known)
            self._chosen = self.pool.size
        return self._prices

    @property
    def _settled(self) -> bool:
        """Whether the last cycle of rounds gained little."""
        if len(self._values) <= STARTS or not np.isfinite(self._values[-1 - STARTS]):
            return False
        return self._values[-1 - STARTS] - self._values[-1] <= SETTLED * (1.0 + abs(self._values[-1]))

    def known_costs(self, prices: FloatArray) -> FloatArray:
        """(C,) the cost of the cheapest column of each component at these prices."""
        return self.pool.least_costs(prices)

    def add(self, z: FloatArray) -> int:
        """A point's components as columns, and the result of a descent from it: a proof relaxes rows as the
        check does, the pool does not. Returns the number of new columns."""
        before, budget = self.pool.size, self.context.budget
        self._keep(self._completed(z))
        cost = self._priced(1.0, self._prices)
        self._pricing.answer(cost, z, STEPS, budget, self._keep)
        if self.pool.size > before:
            self._values.clear()
        return self.pool.size - before

    def _keep(self, z: FloatArray) -> None:
        self.pool.add(z)
        for turn in range(1, max(map(len, self._alike), default=1)):
            turned = z.copy()
            for columns in self._alike:
                turned[columns] = z[np.roll(columns, turn, axis=0)]
            self.pool.add(turned)

    def _priced(self, on_cost: float, rows: FloatArray) -> FloatArray:
        """Each host column's cost at prices of cost and coupling rows."""
        return np.asarray(on_cost * self._scaled.host.cost + self.pool.G.T @ rows)

    @property
    def _highest(self) -> FloatArray:
        """(R,) the largest cost of a unit of a row."""
        dearest = float(np.max(np.abs(self.pool.cost), initial=0.0))
        return highest((dearest or 1.0) / self.pool.scale)

    def _relaxed(self, budget: Budget, level_at: float | None = None) -> Relaxation | None:
        with self.context.stopwatch.measure("engine"), expendable("LP of columns", EngineError):
            return self.pool.relaxed(budget, self._highest, level_at=level_at)[1]
        return None

    def _round(self) -> float:
        """Prices and new columns; returns the LP's value."""
        found, number = self._relaxed(self.context.budget), self._rounds
        on_cost, prices = self._prices_of(found, number, self.context.budget)
        start = self._start(found, number)
        if start is not None:
            cost = self._priced(on_cost, prices)
            self._pricing.answer(cost, start, STEPS, self.context.budget, self._keep)
        self._thin_pool()
        self._rounds += 1
        return float("nan") if found is None else found.value + self._scaled.host.offset

    def _prices_of(self, found: Relaxation | None, number: int, budget: Budget) -> tuple[float, FloatArray]:
        """Prices on the cost and on rows: of the LP; in odd rounds, and if those vanish, of the level LP."""
        if found is None:
            return 1.0, np.zeros(self.pool.limit.size)
        vanished = np.max(found.prices * self.pool.scale, initial=0.0) < VANISHED
        if (number % 2 or vanished) and found.missed < VANISHED:
            level = self._relaxed(budget, found.value + LEVEL_ROOM * (1.0 + abs(found.value)))
            if level is not None and np.max(level.prices, initial=0.0) > 0.0:
                return level.on_cost, level.prices
        return 1.0, found.prices

    def _start(self, found: Relaxation | None, number: int) -> FloatArray | None:
        """The start of pricing: the incumbent, the least active point, the LP's solution or a random
        point."""
        least_activity, best = self._starts.least_activity(), self.context.incumbent.x
        if found is None:
            return self._starts.random() if number else least_activity
        base = least_activity if least_activity is not None else self._scaled.ranges.middle
        choices = [
            best,
            least_activity,
            self.pool.convex_combination(found.weight, base),
            self._starts.random(),
        ]
        assert len(choices) == STARTS
        known = [z for z in choices if z is not None]
        return known[number % len(known)]

    def _choose(self, found: Relaxation, known: IntArray) -> None:
        """One column per component, from the `known` or the cheapest: by the LP and swaps as long as that
        helps, else by a MIP."""
        context, pool = self.context, self.pool
        before = context.incumbent.x
        if np.any(known < 0):
            order, rank = pool.ranked(found.reduced_cost(pool))
            known = order[rank == 0]
        base = self._scaled.ranges.middle if before is None else before
        first = np.isin(np.arange(pool.size), known)
        at = base[self._components.shared]
        with context.stopwatch.measure("engine"), expendable("choice of columns", EngineError):
            choice = Choice(pool, first, self._highest, forgiven(pool.limit), at=at)
            choice.relax(found.prices, context.budget)
            self._offer(choice, base, "greedy")
            if context.incumbent.x is not before:
                return  # the pool still improves: more columns help more than a MIP
            choice.decide(context.budget.part(MIP_SECONDS), 0.0)
            self._offer(choice, base, "master")

    def _offer(self, choice: Choice, base: FloatArray, source: str) -> None:
        z = self.pool.point(choice.chosen, base)
        z[self._components.shared] = choice.at
        self.context.incumbent.offer(z, source)

    def _known_columns(self) -> IntArray:
        """(C,) the incumbent's columns; -1 for missing ones."""
        best = self.context.incumbent.x
        if best is None:
            return np.full(self._components.count, -1)
        return self.pool.add(self._completed(best))

    def _thin_pool(self) -> None:
        """Keep the columns with the least reduced cost, the used ones and the incumbent's."""
        pool = self.pool
        found = self._relaxed(self.context.budget) if pool.size >= FULL * self._components.count else None
        if found is None:
            return
        order, rank = pool.ranked(found.reduced_cost(pool))
        kept = order[(rank < KEPT) | (found.weight[order] > VANISHED)]
        known = self._known_columns()
        pool.keep(np.union1d(kept, known[known >= 0]))
