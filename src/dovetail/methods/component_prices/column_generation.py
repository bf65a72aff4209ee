"""Column generation (Dantzig and Wolfe): prices on coupling rows, columns from every component.

    repeat
        master LP:         convex combinations of columns, at least cost, within the coupling rows  ->  prices
        pricing:           every component's best points at those prices, all in one LP  ->  columns
        restricted master: one column per component, by greedy swaps and a short MIP  ->  candidates

Idea: flipping a class has a fixed cost that no slope at an untouched point shows; a column is a real point,
so the master weighs true costs against each other. Only the coupling rows carry prices: a price on every
x = u would be ambiguous at kinks. Weakness: useless with a single component; nothing is proved, since pricing
is local (the prices and columns are what a certified bound would start from).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.options import require_count, require_flags
from dovetail.linearised.descent import DescentOptions
from dovetail.linearised.mixed_integer_descent import MixedIntegerDescent
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.linearised.starts import Starts
from dovetail.methods.component_prices.master import (
    Master,
    MasterPrices,
    MasterSolution,
    RestrictedMaster,
    improve,
    least_use,
    round_lp,
)
from dovetail.methods.component_prices.pool import ColumnPool, CouplingLimits
from dovetail.methods.component_prices.pricing import Pricing
from dovetail.run.budget import Budget, StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress
from dovetail.structure.structure import structure_of

PRICE_NOISE = (0.05, 0.3)
"""Standard deviations of the prices' logarithms, in turn: near the master's for good columns, farther for
columns that differ."""
VANISHED = 1e-9
"""Prices in their rows' scales, and weights, below this are the LP's rounding."""
LEVEL_ROOM = 1e-7
"""Relative: the level LP may cost so much more than the master, or rounding would make it infeasible."""
EVEN_WEIGHT = 1e-3
"""Of the largest price, added to all: a row without a price is full soon after it is ignored."""
APART, PROOF_STEPS = 4, 12
"""Of descents for columns alone, which have no limits to hold beside their own rows: one in so many begins at
the master's solution, and steps of each."""
MIP_SECONDS = 2.0
"""For one restricted master: columns found meanwhile would be worth more than its optimum."""
MIP_COLUMNS = 15
"""Per component in the restricted master: fewer than the pool has, so that its seconds are enough."""
FULL, KEPT = 40, 20
"""Columns per component at which the pool is thinned out, and what is kept: the LP grows with it."""
POLISH_RADIUS, POLISH_SHARE, POLISH_STEPS = 0.1, 0.1, 3
"""Of a descent from a new incumbent: near it, for no more of the time left, and few outer steps."""


ROUNDS = 12
"""Without a gain, at least: three restricted masters, each with columns of its own (water, 4x32: the first
two bring nothing where the third one does)."""
GAINED = 1e-4
"""Relative, of the master's value: less is no more than the LP over slightly different columns."""


@dataclass(frozen=True)
class ColumnGeneration:
    """Options of the method.

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
    """Sequential-LP steps of one pricing round: each makes columns, and the prices change soon."""
    mip_every: int = 4
    """Rounds from one restricted master to the next: the pool has to grow in between."""
    yields: bool = False
    """Whether it ends, as if its time were over, when it has brought nothing for long (`Stalling`)."""

    name = "column-generation"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("ColumnGeneration: rounds", self.rounds, at_least=1)
        for option in ("patience", "steps", "mip_every"):
            require_count(f"ColumnGeneration: {option}", getattr(self, option), at_least=1)
        require_flags("ColumnGeneration", self, "yields")

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Begin with the points that are known, then generate columns."""
        run = ColumnGenerationRun(context, context.once(scaled_problem), self)
        context.keep(column_run, run)
        for z in context.archive.points:
            run.pool.add(z)
        for z in run.first_points():
            run.add(z)
        progress = Progress(context, self.rounds, self.patience * self.mip_every)
        stalling = Stalling(context.budget.seconds)
        while True:
            value = run.round(progress.done)
            outcome = progress.record(value)
            if outcome is not None:
                return outcome
            if stalling.after(context.budget.seconds, value, context.incumbent.objective) and self.yields:
                why = "columns brought nothing more for long"
                return MethodOutcome(StopReason.STALLED, progress.done, why, yielded=True)


def column_run(context: SolveContext) -> ColumnGenerationRun:
    """The last run of a solve, or one without columns (see `SolveContext.once`)."""
    return ColumnGenerationRun(context, context.once(scaled_problem), ColumnGeneration())


class ColumnGenerationRun:
    """Pool, master and pricing of one problem, and the rounds over them."""

    def __init__(self, context: SolveContext, scaled: ScaledProblem, options: ColumnGeneration) -> None:
        self._context, self._scaled, self._options = context, scaled, options
        self._components = context.once(structure_of).parts
        self.coupling = CouplingLimits.of(scaled, self._components)
        self.pool = ColumnPool(scaled, self._components, self.coupling)
        self._master = Master(context, self.pool)
        self._restricted = RestrictedMaster(context, self.pool)
        self._pricing = Pricing(context, scaled, self._components)
        self._starts = Starts(context, scaled)
        self._descent = MixedIntegerDescent(context, scaled, DescentOptions(on_point=self.pool.add))
        self._rng = np.random.default_rng(context.seed + 2)
        self._polished: FloatArray | None = None

    def first_points(self) -> list[FloatArray]:
        """Of first columns: the incumbent, the least active point, the cheapest one."""
        points = self._context.incumbent.x, self._starts.least_activity(), self._starts.cheapest()
        return [z for z in points if z is not None]

    def completed(self, z: FloatArray) -> FloatArray:
        """A point with what the predictors say."""
        networks = self._scaled.networks
        return np.asarray(networks.with_predictions(z[None], networks.values(z))[0])

    def add(self, z: FloatArray) -> IntArray:
        """A point's components as columns: (C,) their numbers, -1 where not valid."""
        return self.pool.add(self.completed(z))

    def master_prices(self, budget: Budget) -> FloatArray | None:
        """(R,) of the coupling rows, by the master LP; None while a component has no column."""
        master = self._master.solve(budget)
        return None if master is None else master.prices.rows

    def price(self, budget: Budget, rounds: int, on_column: Callable[[FloatArray], object]) -> None:
        """Columns alone: descents at the master's prices, one in `APART` from its solution, the others from
        random points."""
        nothing = MasterPrices(1.0, np.zeros(self.coupling.h.size))
        for number in range(rounds):
            if budget.over:
                break
            master = self._master.solve(budget)
            if master is None or number % APART:
                start = self._starts.random()
            else:
                start = self.pool.convex_combination(master.theta, self._scaled.ranges.middle)
            prices = nothing if master is None else master.prices
            cost = prices.of_columns(self._scaled.host, self.coupling)
            if start is not None:
                self._pricing.answer(cost, start, PROOF_STEPS, budget, on_column)

    def descend(
        self, z: FloatArray, prices: FloatArray, budget: Budget, on_column: Callable[[FloatArray], object]
    ) -> None:
        """The same from one point, at these prices."""
        cost = MasterPrices(1.0, prices).of_columns(self._scaled.host, self.coupling)
        self._pricing.answer(cost, z, PROOF_STEPS, budget, on_column)

    def round(self, number: int) -> float:
        """Prices, new columns and, now and then, a restricted master; returns the master's value."""
        budget, options = self._context.budget, self._options
        master = self._master.solve(budget)
        prices = self._prices(master, number)
        noise = PRICE_NOISE[number % 2] * self._rng.standard_normal(prices.rows.size)
        cost = MasterPrices(prices.on_cost, prices.rows * np.exp(noise)).of_columns(
            self._scaled.host, self.coupling
        )
        start = self._start(master, number)
        if start is not None:
            self._pricing.answer(cost, start, options.steps, budget, self.pool.add)
        if master is not None and self._candidates_due(number):
            self._offer_candidates()
        self._thin_pool(master)
        return float("nan") if master is None else master.value + self._scaled.host.offset

    def _candidates_due(self, number: int) -> bool:
        """After two rounds, for a first point; then every few, and in the last one."""
        options = self._options
        last = options.rounds is not None and number == options.rounds - 1
        return number == 1 or last or number % options.mip_every == options.mip_every - 1

    def _prices(self, master: MasterSolution | None, number: int) -> MasterPrices:
        """Of the master; in odd rounds, and where those vanish, of the level LP."""
        nothing = MasterPrices(1.0, np.zeros(self.coupling.h.size))
        if master is None:
            return nothing
        vanished = np.max(master.prices.rows * self.coupling.scale, initial=0.0) < VANISHED
        if (number % 2 or vanished) and master.elastic < VANISHED:
            level = self._master.solve(
                self._context.budget, level_at=master.value + LEVEL_ROOM * (1.0 + abs(master.value))
            )
            if level is not None and np.max(level.prices.rows, initial=0.0) > 0.0:
                return level.prices
        return master.prices

    def _start(self, master: MasterSolution | None, number: int) -> FloatArray | None:
        """Where pricing begins: the incumbent, the least active point and the master's solution in turn."""
        least_activity, best = self._starts.least_activity(), self._context.incumbent.x
        if master is None:
            return self._starts.random() if number else least_activity
        base = least_activity if least_activity is not None else self._scaled.ranges.middle
        choices = [best, least_activity, self.pool.convex_combination(master.theta, base)]
        known = [z for z in choices if z is not None]
        return known[number % len(known)]

    def _offer_candidates(self) -> None:
        """One column per component: by greedy swaps as long as that helps, else by the restricted master."""
        incumbent = self._context.incumbent
        before = incumbent.x
        master = self._master.solve(self._context.budget)
        if master is None:
            return
        shared = np.flatnonzero(self._components.shared)
        base = (before if before is not None else self._scaled.ranges.middle).copy()
        base[shared] = master.shared if before is None else before[shared]
        for chosen in self._greedy_choices(master, base, shared):
            incumbent.offer(self.pool.point(chosen, base), "greedy")
        if incumbent.x is not before:
            return  # the pool is still getting better: more columns are worth more than a MIP
        known = self._known_columns()
        known = known if np.all(known >= 0) else np.empty(0, dtype=np.int64)
        budget = self._context.budget.part(MIP_SECONDS)
        found = self._restricted.solve(master, known, budget, MIP_COLUMNS)
        if found is not None:
            base[shared] = found[1]
            incumbent.offer(self.pool.point(found[0], base), "master")
        self._polish()

    def _greedy_choices(self, master: MasterSolution, base: FloatArray, shared: IntArray) -> list[IntArray]:
        """From the incumbent's columns and from those that use least, towards the master's weights."""
        pool, weights = self.pool, self._row_weights(master)
        room = self.coupling.h - self.coupling.G[:, shared] @ base[shared]
        known = self._known_columns()
        least = least_use(pool, weights, self._components.count)
        choices = []
        if np.all(known >= 0):
            choices.append(improve(pool, known, room, weights))
            choices.append(round_lp(pool, master.theta, known, room, weights))
        if least is not None:
            choices.append(round_lp(pool, master.theta, least, room, weights))
        return choices

    def _known_columns(self) -> IntArray:
        """(C,) the incumbent's columns; -1 where it has none."""
        best = self._context.incumbent.x
        return self.add(best) if best is not None else np.full(self._components.count, -1)

    def _row_weights(self, master: MasterSolution) -> FloatArray:
        """What rows weigh in greedy swaps: their prices, and never nothing."""
        even = 1.0 / self.coupling.scale
        prices = master.prices.rows
        top = float(np.max(prices * self.coupling.scale, initial=0.0))
        return even if top < VANISHED else prices + EVEN_WEIGHT * top * even

    def _polish(self) -> None:
        """A local descent from a new incumbent, integers and classes included."""
        best = self._context.incumbent.x
        if best is None or best is self._polished:
            return
        part = self._context.budget.part(POLISH_SHARE * self._context.budget.left)
        self._descent.descend(best, POLISH_RADIUS, part, "polish", steps=POLISH_STEPS)
        self._polished = self._context.incumbent.x

    def _thin_pool(self, master: MasterSolution | None) -> None:
        """Keep the columns with the least reduced cost, those in use and the incumbent's."""
        pool, count = self.pool, self._components.count
        if master is None or pool.size < FULL * count:
            return
        master = self._master.solve(self._context.budget)
        if master is None:
            return
        order, rank = pool.ranked(master.reduced_cost(pool))
        kept = order[(rank < KEPT) | (master.theta[order] > VANISHED)]
        known = self._known_columns()
        pool.keep(np.union1d(kept, known[known >= 0]))
        self._master.rebuild()


class Stalling:
    """Looks at every round; it has stalled after as long without a gain as it took to get to the last one."""

    def __init__(self, seconds: float) -> None:
        self._begin = self._gain = seconds
        self._value, self._objective, self._idle = math.inf, math.nan, 0

    def after(self, seconds: float, value: float, objective: float) -> bool:
        """Whether a round that ended now has stalled: master's value in minimisation form, and incumbent."""
        cheaper = value < self._value - GAINED * (1.0 + abs(value))
        if cheaper or objective != self._objective:
            self._gain, self._idle = seconds, 0
            self._value, self._objective = min(value, self._value), objective
            return False
        self._idle += 1
        return self._idle >= ROUNDS and seconds - self._gain >= self._gain - self._begin
