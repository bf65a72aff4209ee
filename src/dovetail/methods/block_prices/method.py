"""A bound for problems that fall apart but for some rows: prices on these, and every block's least cost.

    columns    points of single components, from what was searched before and from pricing by descents
    master LP  the cheapest convex combination of columns within the coupling rows  ->  prices p >= 0
    blocks     at these prices the least cost of each component; of alike ones once: by branching over signs
               where its inputs are a closed-form set, by its own exact MIP where that leaves too much out
    bound      offset - p'h + sum of the blocks' bounds        (weak duality: true for any p)
    repeat     with the blocks' cheapest points as columns

Idea: an engine sees nothing of a whole problem with several networks; one network with its own rows is closed
in seconds. Weakness: what convex combinations gain over true points stays as a gap.

Components are alike that have the same rows, bounds, costs, networks and entries in coupling rows. They cost
the same at any prices, so that one proof serves all of them: every column of one is a column of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from dovetail.bounds.box import UNIT
from dovetail.bounds.lagrangian import lagrangian_constant, priced_cost
from dovetail.core.arrays import FloatArray
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.linearised.starts import Starts
from dovetail.methods.block_prices.block_program import BlockProgram
from dovetail.methods.block_prices.sign_search import blocks_at, neurons_of
from dovetail.methods.certified_prices.coupled_problem import CoupledProblem
from dovetail.methods.certified_prices.method import coupled_problem
from dovetail.methods.column_generation.master import Master
from dovetail.methods.column_generation.pool import ColumnPool, CouplingLimits
from dovetail.methods.column_generation.pricing import Pricing
from dovetail.methods.relu_branching.sign_pairs import KnownNeurons
from dovetail.run.bound import Bound, Support
from dovetail.run.budget import Budget, StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress
from dovetail.structure.structure import structure_of

MOST_KINDS, MOST_NEURONS = 8, 120
"""Different blocks, and neurons of one that may change sign: more come to nothing in a minute."""
MIP_NEURONS = 50
"""Engines close that many; with more, a MIP comes to nothing where signs have come to their end."""
MOST_POINTS = 200
"""Of those that were searched before, evenly spread, as first columns: descents leave thousands, which take
longer to look at than the pricing that makes better ones (wine)."""
PRICING_SHARE, PRICING_ROUNDS, STEPS = 0.05, 40, 12
"""Descents for columns before a proof at the master's prices: of the time left, at most so many, and steps of
each. They take a hundredth of what a proof takes, and every column saves some of those."""
TIGHTEN_SHARE = 0.05
"""Of the time, for LPs over each block's own rows, once."""
PROOF_SHARE = 0.9
"""Of the time left, for the blocks at one set of prices: a proof that is cut short is still one. Where less
is left than the last one took, another one would bring nothing."""
SMOOTHING = 0.3
"""Weight of the prices with the best bound so far: the master's own jump about."""
ENOUGH = 1e-4
"""Relative: what is left between the bound and the master's value is not worth another proof."""


@dataclass(frozen=True, eq=False)
class PricedBlocks:
    """What is known of a problem that can be bounded so."""

    scaled: ScaledProblem
    coupling: CouplingLimits
    programs: tuple[BlockProgram, ...]

    @property
    def count(self) -> int:
        """Components in all."""
        return sum(program.members for program in self.programs)

    @property
    def unstable(self) -> int:
        """Neurons of the largest block that may change sign."""
        return max(program.layers.unstable for program in self.programs)


def priced_blocks(context: SolveContext) -> PricedBlocks | None:
    """Whether and how a problem can be bounded by prices; made once (see `SolveContext.once`)."""
    scaled, structure = context.once(scaled_problem), context.once(structure_of)
    parts = structure.parts
    coupling = CouplingLimits.of(scaled, parts)
    if parts.count < 2 or coupling.h.size == 0 or not np.all(structure.tight_box.finite[parts.shared]):
        return None
    kinds = structure.kinds(MOST_KINDS)
    if kinds is None:
        return None
    programs = []
    for columns, rows in kinds:
        program = BlockProgram.of(structure.proved, columns, rows, context)
        if program is None or program.layers.unstable > MOST_NEURONS:
            return None
        programs.append(program)
    return PricedBlocks(scaled, coupling, tuple(programs))


@dataclass(frozen=True)
class BlockPrices:
    """The bound as a phase."""

    name = "block-prices"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Prove at one set of prices after the other, while that helps."""
        known = context.once(priced_blocks)
        if known is None:
            return MethodOutcome(StopReason.STALLED, 0, "no blocks that prices could tell apart")
        blocks = f"{known.count} blocks of {len(known.programs)} kinds, up to {known.unstable} neurons"
        context.monitor.say(f"  proof: prices on {known.coupling.h.size} coupling rows; {blocks}")
        run, progress, short = _BlockBounds(context, known), Progress(context), False
        while not context.over and not short:
            value = run.round()
            progress.record(value)
            if value - run.best <= ENOUGH * (1.0 + abs(value)):
                break
            short = context.budget.left < run.proof_seconds
        message = f"block prices: bound {context.problem.mip.sign * run.best:.6g} after {run.proofs} proofs"
        if run.violated:
            message += f"; the sets leave out {run.violated}, which cheaper points violate"
        return MethodOutcome(context.over or StopReason.STALLED, progress.done, message, yielded=short)


class _BlockBounds:
    """Columns, master and blocks of one problem."""

    def __init__(self, context: SolveContext, known: PricedBlocks) -> None:
        self._context, self._coupling, self._scaled = context, known.coupling, known.scaled
        structure = context.once(structure_of)
        self._parts = parts = structure.parts
        self._pool = ColumnPool(known.scaled, parts, known.coupling)
        self._master, self._pricing = Master(context, self._pool), Pricing(context, known.scaled, parts)
        self._starts = Starts(context, known.scaled)
        self._coupled = context.once(coupled_problem)
        self._ranges: list[KnownNeurons] = []
        self._writes = known.unstable <= MIP_NEURONS
        self._programs, self._tightened = list(known.programs), False
        self._engines = ["highs", "scip"] if find_spec("pyscipopt") is not None else ["highs"]
        self._prices = np.zeros(known.coupling.h.size)
        self._loose, self._box = structure.loose.mip, structure.loose_box
        self._size = np.maximum(np.abs(self._box.lower), np.abs(self._box.upper))
        self._rows, self._limits = parts.coupling(self._loose)
        self.best, self.proofs, self.proof_seconds = -np.inf, 0, 0.0
        self.violated = ""
        """What signs leave out and the cheapest blocks violate, where no MIP takes over."""
        points = context.archive.points
        for z in (*points[:: 1 + len(points) // MOST_POINTS], context.incumbent.x, self._starts.cheapest()):
            if z is not None:
                self._add(z)

    def _add(self, z: FloatArray) -> None:
        """The components of a point as columns, each of every component that is like its own."""
        networks = self._scaled.networks
        z = networks.with_predictions(z[None], networks.values(z))[0]
        self._pool.add(z)
        turns = max(program.members for program in self._programs)
        for turn in range(1, turns):
            turned = z.copy()
            for program in self._programs:
                turned[program.columns] = z[np.roll(program.columns, turn, axis=0)]
            self._pool.add(turned)

    def round(self) -> float:
        """Columns, prices, a proof at them; the master's value, in minimisation form."""
        budget = self._context.budget
        value = self._columns(budget.part(PRICING_SHARE * budget.left))
        master = self._master.solve(budget)
        if master is None:
            return value
        weight = SMOOTHING if np.isfinite(self.best) else 0.0
        prices = weight * self._prices + (1.0 - weight) * master.prices.rows
        before = budget.left
        if self._coupled is None:
            bound = self._proved(prices, budget.part(PROOF_SHARE * before))
        else:  # it grows all the time, and what it knows is lost with the prices
            self._support = Support.PROOF
            bound = self._proved_by_signs(prices, self._coupled, budget)
        self.proofs, self.proof_seconds = self.proofs + 1, before - budget.left
        if bound > self.best:
            self.best, self._prices = bound, prices
            rows = None if self._coupled is None else self._coupled.row_prices(prices)
            self._context.incumbent.raise_bound(Bound(bound, "prices", support=self._support, prices=rows))
        return master.value + self._scaled.host.offset

    def _columns(self, budget: Budget) -> float:
        """Descents at the master's prices, each from another start; the last master's value."""
        value = np.inf
        for number in range(PRICING_ROUNDS):
            master = self._master.solve(budget)
            if budget.over or self._context.over:
                break
            rows = np.zeros(self._coupling.h.size) if master is None else master.prices.rows
            value = value if master is None else master.value + self._scaled.host.offset
            start = self._start(None if master is None else master.theta, number)
            if start is not None:
                cost = self._scaled.host.cost + self._coupling.G.T @ rows
                self._pricing.answer(cost, start, STEPS, budget, self._add)
        return value

    def _start(self, theta: FloatArray | None, number: int) -> FloatArray | None:
        """The master's combination, then random points."""
        if theta is None or number % 4:
            return self._starts.random()
        return self._pool.convex_combination(theta, self._scaled.ranges.middle)

    def _proved(self, prices: FloatArray, budget: Budget) -> float:
        """The bound at these prices; the blocks' cheapest points become columns."""
        context, cost = self._context, priced_cost(self._loose, self._rows, prices)
        shared = self._parts.shared
        self._tighten(budget.part(TIGHTEN_SHARE * budget.left))
        total = lagrangian_constant(
            self._loose, self._rows, self._limits, prices, shared, self._box, self._size
        )
        z = self._scaled.ranges.middle.copy()
        closed, self._support = True, Support.PROOF
        for turn, program in enumerate(self._programs):
            part = budget.part(budget.left / (len(self._programs) - turn))
            known = self._cheapest(program, cost)
            if known is None:
                return -np.inf
            own = cost[program.columns[0]]
            with context.stopwatch.measure("engine"):
                answer = program.least(own, known, self._engines[0], context, part)
            total += program.members * answer.bound
            z[program.columns] = known if answer.x is None else answer.x
            closed &= answer.closed
            self._support = Support.ENGINE if answer.by_engine else self._support
        self._add(z)
        if not closed:
            self._engines.reverse()  # the other one may do better
        return total - 8.0 * UNIT * abs(total)

    def _tighten(self, budget: Budget) -> None:
        """LPs over the blocks' own rows, before the first MIP."""
        if not self._tightened:
            self._tightened = True
            with self._context.stopwatch.measure("engine"):
                self._programs = [program.tightened(self._context, budget) for program in self._programs]

    def _proved_by_signs(self, prices: FloatArray, coupled: CoupledProblem, budget: Budget) -> float:
        """The same by branching over signs.

        What it leaves out (integers, all rows but one, limits of outputs) may make points cheaper than any
        column: where that is the end of it, MIPs take over, or the outcome says what it is.
        """
        known = self._pool.least_costs(prices)
        with self._context.stopwatch.measure("nn"):
            self._ranges = self._ranges or neurons_of(coupled, budget)
            found = blocks_at(self._context, coupled, self._ranges, prices, known, budget)
        if found.z is not None:
            self._add(found.z)
        cheapest = self._pool.least_costs(prices)
        room = found.room + ENOUGH * (1.0 + abs(found.bound))
        if found.closed and float(np.sum(cheapest - found.least)) > room:
            if self._writes:
                self._coupled = None
            elif found.z is not None:
                z = self._context.problem.predict(found.z)
                sets = (one for group in coupled.groups for one in group.sets)
                self.violated = next(filter(None, (one.violated(coupled.mip, z) for one in sets)), "")
        return found.bound

    def _cheapest(self, program: BlockProgram, cost: FloatArray) -> FloatArray | None:
        """The cheapest column of a kind of component, over its own columns."""
        pool, first = self._pool, program.columns[0]
        owner = self._parts.owner[first]
        component = int(owner[owner >= 0][0])
        mine = np.flatnonzero(pool.owner == component)
        if mine.size == 0:
            return None
        prices_of = [float(cost[pool.members[component]] @ pool.points[k]) for k in mine]
        z = np.clip(0.0, self._scaled.host.lower, self._scaled.host.upper)  # what is fixed, where it is fixed
        z[pool.members[component]] = pool.points[mine[int(np.argmin(prices_of))]]
        return np.asarray(z[first])
