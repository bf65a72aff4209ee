"""Column generation (Dantzig and Wolfe): prices on coupling rows, columns from every component.

    repeat
        LP:       convex combinations of columns, at least cost, within the coupling rows  ->  prices
        pricing:  every component's best points at those prices, all in one LP  ->  columns
        choice:   one column per component, by swaps and a short MIP  ->  candidates

Idea: flipping a class has a fixed cost that no slope at an untouched point shows; a column is a real point,
so the LP weighs true costs against each other. Only the coupling rows carry prices: a price on every x = u
would be ambiguous at kinks. Weakness: useless with a single component; pricing is local, so that it proves
nothing (`prices.py` proves bounds at these prices).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import EngineError
from dovetail.core.options import require_count
from dovetail.decomposition.choice import Choice, Relaxation, forgiven
from dovetail.decomposition.prices import highest
from dovetail.linearised.descent import DescentOptions, MixedIntegerDescent
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.linearised.starts import Starts
from dovetail.methods.component_prices.kinds import component_kinds
from dovetail.methods.component_prices.pool import ColumnPool
from dovetail.methods.component_prices.pricing import Pricing
from dovetail.run.budget import Budget
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.failures import expendable
from dovetail.run.progress import Progress
from dovetail.structure.structure import structure_of

PRICE_NOISE = (0.05, 0.3)
"""Standard deviations of the prices' logarithms, in turn: near the LP's for good columns, farther for columns
that differ. Columns for a proof go without: of two wines the bound is 5.984 in half the time of 5.987."""
VANISHED = 1e-9
"""Prices, in their rows' scales, and weights below this are rounding errors of the LP."""
LEVEL_ROOM = 1e-7
"""Relative: the cost limit of the level LP exceeds the first LP's optimum by this, since rounding could make
it infeasible."""
MIP_SECONDS = 2.0
"""Seconds for the MIP of one choice: columns found in this time would be worth more than its optimum (water,
n = 100 and 400, after 20 s: 43 and 261 with 0.5, 42 and 258 with 2, 43 and 257 with 8)."""
FULL, KEPT = 40, 20
"""Number of columns per component at which the pool is reduced, and the number that is kept: the LP grows
with it."""
POLISH_RADIUS, POLISH_SHARE, POLISH_STEPS = 0.1, 0.1, 3
"""Limits of a descent from a new incumbent: a radius near it, a share of the time left, and few outer
steps."""
MOST_POINTS = 200
"""Number of earlier points, evenly chosen, that become the first columns: descents leave thousands, and using
them all takes longer than the pricing that finds better ones (wine)."""
STARTS = 4
"""Kinds of starting points of pricing, in turn: a cycle of rounds has used all of them."""
SETTLED = 1e-4
"""Relative: prices for a proof are settled when a cycle of rounds lowers the LP's value by less."""


@dataclass(frozen=True)
class ColumnGeneration:
    """Column generation: prices on shared constraints, columns of each component, combined by a MIP.

    >>> import dovetail as dt
    >>> mip = dt.Mip(  # two samples, one budget; each is worth 1 where its class is 1
    ...     cost=[0.0, 0.0, -1.0, -1.0], A=[[1.0, 1.0, 0.0, 0.0]], row_lower=[0.0], row_upper=[1.2], upper=1.0
    ... )
    >>> problem = dt.Problem(mip)
    >>> block = problem.add_predictor(
    ...     lambda X: X - 0.5, inputs=[[0], [1]], outputs=[[2], [3]], output_type="classification"
    ... )
    >>> dt.solve(problem, dt.ColumnGeneration(rounds=5), log=False).objective
    -2.0
    """

    rounds: int | None = None
    """None: until the time is over or `patience` restricted masters brought nothing."""
    patience: int = 25
    steps: int = 7
    """Sequential-LP steps of one pricing round: each makes columns, and the prices soon change."""
    mip_every: int = 4
    """Rounds from one restricted master to the next: the pool has to grow in between."""

    name = "column-generation"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("ColumnGeneration: rounds", self.rounds, at_least=1)
        for option in ("patience", "steps", "mip_every"):
            require_count(f"ColumnGeneration: {option}", getattr(self, option), at_least=1)

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Begin with the points that are known, then generate columns."""
        run = ColumnGenerationRun(context, context.once(scaled_problem), self)
        progress = Progress(context, self.rounds, self.patience * self.mip_every)
        while True:
            outcome = progress.record(run.round(progress.done, choose=True))
            if outcome is not None:
                return outcome


def column_prices(context: SolveContext) -> ColumnGenerationRun:
    """Columns for a proof; made once (see `SolveContext.once`). A column of one component is a column of all
    similar components."""
    alike = [kind.columns for kind in context.once(component_kinds)]
    return ColumnGenerationRun(context, context.once(scaled_problem), ColumnGeneration(), alike)


class ColumnGenerationRun:
    """Pool and pricing of one problem, and the rounds over them."""

    def __init__(
        self,
        context: SolveContext,
        scaled: ScaledProblem,
        options: ColumnGeneration,
        alike: Sequence[IntArray] = (),
    ) -> None:
        """`alike`: (members, columns) of components that may have each other's columns."""
        self.context, self._scaled, self._options, self._alike = context, scaled, options, alike
        self._components = context.once(structure_of).parts
        self.pool = ColumnPool(scaled, self._components)
        self._pricing = Pricing(context, scaled, self._components)
        self._starts = Starts(context, scaled)
        self._descent = MixedIntegerDescent(context, scaled, DescentOptions(on_point=self.pool.add))
        self._rng = np.random.default_rng(context.seed + 2)
        self._polished: FloatArray | None = None
        self._prices = np.zeros(self.pool.limit.size)
        self._rounds, self._values = 0, list[float]()
        """Rounds for a proof, and the LP's values before the rounds since columns came from elsewhere."""
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
        """(R,) prices of the LP, after some more rounds of columns, as long as these gain; None while a
        component has no column."""
        self.context = context
        for _ in range(rounds):
            if context.over or self._settled:
                break
            self._values.append(self.round(self._rounds, choose=False))
            self._rounds += 1
        found = self._relaxed(context.budget)
        self._prices = self._prices if found is None else found.prices
        return None if found is None else found.prices

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
        check does, the pool does not. Returns how many are new."""
        before, budget = self.pool.size, self.context.budget
        self._keep(self._completed(z))
        cost = self._priced(1.0, self._prices)
        self._pricing.answer(cost, z, self._options.steps, budget, self._keep)
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

    def round(self, number: int, *, choose: bool) -> float:
        """Prices, new columns and, now and then, a choice; returns the LP's value."""
        budget = self.context.budget
        found = self._relaxed(budget)
        on_cost, prices = self._prices_of(found, number, budget)
        noise = choose * PRICE_NOISE[number % 2] * self._rng.standard_normal(prices.size)
        start = self._start(found, number)
        if start is not None:
            cost = self._priced(on_cost, prices * np.exp(noise))
            self._pricing.answer(cost, start, self._options.steps, budget, self._keep)
        if choose and found is not None and self._choice_due(number):
            self._choose()
        self._thin_pool()
        return float("nan") if found is None else found.value + self._scaled.host.offset

    def _choice_due(self, number: int) -> bool:
        """When to choose: after two rounds, for a first solution; then every few rounds, and in the last
        one."""
        options = self._options
        last = options.rounds is not None and number == options.rounds - 1
        return number == 1 or last or number % options.mip_every == options.mip_every - 1

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

    def _choose(self) -> None:
        """One column per component, from the incumbent's or the cheapest: by the LP and swaps as long as that
        gains, otherwise by a MIP."""
        context, pool = self.context, self.pool
        before, known = context.incumbent.x, self._known_columns()
        found = self._relaxed(context.budget)
        if found is None:
            return
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
                return  # the pool still improves: more columns are worth more than a MIP
            choice.decide(context.budget.part(MIP_SECONDS), 0.0)
            self._offer(choice, base, "master")
        self._polish()

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

    def _polish(self) -> None:
        """A local descent from a new incumbent, integers and classes included."""
        best = self.context.incumbent.x
        if best is None or best is self._polished:
            return
        part = self.context.budget.part(POLISH_SHARE * self.context.budget.left)
        self._descent.descend(best, POLISH_RADIUS, part, "polish", steps=POLISH_STEPS)
        self._polished = self.context.incumbent.x

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
