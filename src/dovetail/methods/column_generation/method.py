"""Dual decomposition proper: prices on coupling rows, columns from every component, a master to join them.

    repeat
        master:  how much of each column, at least cost, within the coupling rows  ->  prices
        pricing: every component answers with its best points at those prices, all in one LP  ->  columns
        joining: one column per component, by greedy swaps and a short MIP  ->  candidates

Idea: flipping a class has a fixed cost that no slope at an untouched point shows; a column is a real point,
so the master weighs true costs against each other. Only the coupling rows carry prices: a price on every
x = u would be ambiguous at kinks. Weakness: useless with a single component; nothing is proved, since pricing
is local (the prices and columns are what a certified bound would start from).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.options import require_count
from dovetail.linearised.descent import Options
from dovetail.linearised.mixed_integer_descent import MixedIntegerDescent
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.linearised.starts import Starts
from dovetail.methods.column_generation import greedy
from dovetail.methods.column_generation.master import Master, MasterSolution, Prices
from dovetail.methods.column_generation.pool import Coupling, Pool
from dovetail.methods.column_generation.pricing import Pricing
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress

NOISE = (0.05, 0.3)
"""Prices are shaken by these factors in turn, so that columns differ."""
VANISHED = 1e-9
JOIN_SECONDS = 2.0
JOINED = 15
"""Columns per component in the joining MIP."""
FULL, THINNED = 40, 20
"""Columns per component at which the pool is thinned out, and what is kept."""


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
    """None: until the time is over or `patience` joinings brought nothing."""
    patience: int = 25
    steps: int = 7
    """Sequential-LP steps of one pricing round."""
    join_every: int = 4

    name = "column-generation"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("ColumnGeneration: rounds", self.rounds, at_least=1)
        for option in ("patience", "steps", "join_every"):
            require_count(f"ColumnGeneration: {option}", getattr(self, option), at_least=1)

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Begin with the points that are known, then price and join."""
        run = ColumnGenerationRun(context, context.once(scaled_problem), self)
        for z in context.archive.points:
            run.pool.add(z)
        run.begin()
        progress = Progress(context, self.rounds, self.patience * self.join_every)
        while True:
            outcome = progress.record(run.round(progress.done))
            if outcome is not None:
                return outcome


class ColumnGenerationRun:
    """Pool, master and pricing of one problem, and the rounds over them."""

    def __init__(self, context: SolveContext, scaled: ScaledProblem, options: ColumnGeneration) -> None:
        self._context, self._scaled, self._options = context, scaled, options
        self._parts = scaled.parts
        self.coupling = Coupling.of(scaled, self._parts)
        self.pool = Pool(scaled, self._parts, self.coupling)
        self._master = Master(context, scaled, self._parts, self.coupling, self.pool)
        self._pricing = Pricing(context, scaled, self._parts)
        self._starts = Starts(context, scaled)
        self._walk = MixedIntegerDescent(context, scaled, Options(seen=self.pool.add))
        self._rng = np.random.default_rng(context.seed + 2)
        self._polished: FloatArray | None = None

    def begin(self) -> None:
        """First columns: the incumbent, the calm point, the cheapest one."""
        for z in (self._context.incumbent.x, self._starts.least_activity(), self._starts.cheapest()):
            if z is not None:
                self._add(z)

    def _add(self, z: FloatArray) -> IntArray:
        networks = self._scaled.networks
        return self.pool.add(networks.with_predictions(z[None], networks.values(z))[0])

    def round(self, number: int) -> float:
        """Prices, new columns and, now and then, a joining; returns the master's value."""
        budget, options = self._context.budget, self._options
        blend = self._master.blend(budget)
        prices = self._prices(blend, number)
        shaken = prices.rows * np.exp(NOISE[number % 2] * self._rng.standard_normal(prices.rows.size))
        cost = Prices(prices.on_cost, shaken).of_columns(self._scaled, self.coupling)
        start = self._start(blend, number)
        if start is not None:
            self._pricing.answer(cost, start, options.steps, budget, self.pool.add)
        if blend is not None and self._time_to_join(number):
            self._join()
        self._thin(blend)
        return float("nan") if blend is None else blend.value + self._scaled.host.offset

    def _time_to_join(self, number: int) -> bool:
        """After two rounds, for a first point; then every few, and in the last one."""
        options = self._options
        last = options.rounds is not None and number == options.rounds - 1
        return number == 1 or last or number % options.join_every == options.join_every - 1

    def _prices(self, blend: MasterSolution | None, number: int) -> Prices:
        """Of the master; in odd rounds, and where those vanish, of the level program."""
        nothing = Prices(1.0, np.zeros(self.coupling.h.size))
        if blend is None:
            return nothing
        vanished = np.max(blend.prices.rows * self.coupling.scale, initial=0.0) < VANISHED
        if (number % 2 or vanished) and blend.elastic < VANISHED:
            level = self._master.blend(
                self._context.budget, level_at=blend.value + 1e-7 * (1.0 + abs(blend.value))
            )
            if level is not None and np.max(level.prices.rows, initial=0.0) > 0.0:
                return level.prices
        return blend.prices

    def _start(self, blend: MasterSolution | None, number: int) -> FloatArray | None:
        """Where pricing begins: the incumbent, the calm point and the master's blend in turn."""
        least_activity, best = self._starts.least_activity(), self._context.incumbent.x
        if blend is None:
            return self._starts.random() if number else least_activity
        choices = [
            best,
            least_activity,
            self.pool.blend(
                blend.theta, least_activity if least_activity is not None else self._scaled.ranges.middle
            ),
        ]
        known = [z for z in choices if z is not None]
        return known[number % len(known)]

    def _join(self) -> None:
        """Candidates from the pool: by hand as long as that helps, else by a short MIP, polished."""
        context, pool, count = self._context, self.pool, self._parts.count
        blend = self._master.blend(context.budget)
        if blend is None:
            return
        prices = self._weights(blend)
        incumbent = context.incumbent.x
        shared = np.flatnonzero(self._parts.shared)
        base = incumbent if incumbent is not None else self._scaled.ranges.middle
        base = base.copy()
        base[shared] = blend.shared if incumbent is None else incumbent[shared]
        room = self.coupling.h - self.coupling.G[:, shared] @ base[shared]
        known = self._add(incumbent) if incumbent is not None else np.full(count, -1)
        sparing = greedy.least_use(pool, prices, count)
        picks = []
        if np.all(known >= 0):
            picks.append(greedy.improve(pool, known, room, prices))
            picks.append(greedy.favourites(pool, blend.theta, known, room, prices))
        if sparing is not None:
            picks.append(greedy.favourites(pool, blend.theta, sparing, room, prices))
        for chosen in picks:
            context.incumbent.offer(pool.point(chosen, base), "greedy")
        if context.incumbent.x is not incumbent:
            return  # the pool is still getting better: more columns are worth more than a MIP
        if context.incumbent.x is not None:
            known = self._add(context.incumbent.x)
        known = known if np.all(known >= 0) else np.empty(0, dtype=np.int64)
        joined = self._master.join(blend, known, context.budget.part(JOIN_SECONDS), JOINED)
        if joined is not None:
            base[shared] = joined[1]
            context.incumbent.offer(pool.point(joined[0], base), "join")
        self._polish()

    def _weights(self, blend: MasterSolution) -> FloatArray:
        """What rows weigh where columns are joined by hand: their prices, and never nothing."""
        even = 1.0 / self.coupling.scale
        prices = blend.prices.rows
        top = float(np.max(prices * self.coupling.scale, initial=0.0))
        return even if top < VANISHED else prices + 1e-3 * top * even

    def _polish(self) -> None:
        """A local descent from a new incumbent, integers and classes included."""
        best = self._context.incumbent.x
        if best is None or best is self._polished:
            return
        budget = self._context.budget
        self._walk.descend(best, 0.1, budget.part(0.1 * budget.left), "polish", steps=3)
        self._polished = self._context.incumbent.x

    def _thin(self, blend: MasterSolution | None) -> None:
        pool, count = self.pool, self._parts.count
        if blend is None or pool.size < FULL * count:
            return
        blend = self._master.blend(self._context.budget)
        if blend is None:
            return
        order, rank = pool.ranked(blend.reduced_cost(pool))
        kept = order[(rank < THINNED) | (blend.theta[order] > VANISHED)]
        best = self._context.incumbent.x
        known = self._add(best) if best is not None else np.empty(0, dtype=np.int64)
        pool.keep(np.union1d(kept, known[known >= 0]))
        self._master.rebuild()
