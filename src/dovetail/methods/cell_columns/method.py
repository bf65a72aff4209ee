"""Boxes of cells as columns: tree ensembles of several samples that share rows.

    repeat
        LP:      one box for each component, in parts, within the coupling rows   ->  prices, and a bound
                 (no row is scarce: prices of the choice that fills the rows least)
        leave out boxes that cost more at these prices than the best point leaves
        cut the cheapest open boxes of each component; close those whose cheapest corner is a true point
    now and then: the same with whole points, a small MIP                     ->  points
    with few boxes left, or none open: with whole boxes                       ->  a bound, and boxes to cut

Idea: only a sample's effect on shared rows matters, and in this effect most of its thousands of boxes are
dominated by others. Boxes stay valid for all prices, so that a round costs a single LP. Weakness: the least
use of a box is taken by intervals, so that rows over several inputs of a sample give weak bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.box import UNIT, propagate
from dovetail.bounds.dual_value import lagrangian_constant, next_step, objective_step
from dovetail.bounds.safe_lp import SafeLp
from dovetail.branching.confirmed import EngineSettings, stands
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import HAIR
from dovetail.core.words import several
from dovetail.decomposition.choice import Columns, Relaxation, SharedColumns
from dovetail.methods.cell_columns.frontier import Frontier, TreeComponent, tree_components
from dovetail.methods.cell_descent.method import cell_search
from dovetail.mip.answers import answer_of
from dovetail.run.bound import Bound, Support
from dovetail.run.budget import Budget, StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.engine import MipAnswer, MipStatus
from dovetail.run.failures import expendable
from dovetail.run.progress import Progress
from dovetail.structure.components import Components
from dovetail.structure.structure import structure_of
from dovetail.structure.trees import TreeProblem

MOST_COMPONENTS = 500
"""Largest number of components, each of which takes some ms to begin with."""
FEW_CUTS, TURNS = 12, 4
"""Number of boxes of one component divided at once, and of rounds between two LPs, while its cheapest is
open."""
CUTS = 24
"""The same limits once all boxes that the prices need are closed."""
MIP_EVERY, MIP_SECONDS = 8, 2.0
"""Rounds between two MIPs for points, doubled after one without success, and its time limit."""
FEW_BOXES = 1_250
"""Number of boxes of all components up to which a MIP over them is solved. The MIP gets as much time as
the work before it."""
NOTHING = 1e-12
"""Smaller prices of the cost count as 0."""
FREE = 1e-9
"""Relative to 1 + |cost|: a coupling row whose total price is smaller is not scarce."""
EVEN = 1e-3
"""Weight of coupling rows without a price beside the cost, because they may have one in the next round."""
DESCENTS_SHARE = 0.1
"""Share of the time left for descents before such a MIP."""
PATIENCE = 8
"""Largest number of rounds until the first box is closed."""
MOST_BOXES = 200_000
"""Largest number of boxes of all components: a GB, and LPs of seconds."""
LP_BOXES = 40
"""Largest number of boxes of each component in the LP: the cheapest at the previous prices. Any prices prove
a bound."""
LOADS = 3
"""Number of times that such an LP is solved again with the boxes that its own prices make cheap."""
STEP, PART = 1.0 - 1e-6, 0.4
"""Fractions of a step of the objective, and of the allowed gap: smaller improvements do not matter. The
proof of a MIP may leave half of the gap."""
GAP = 1e-9
"""The gap for the engine, as in `exact_mip`."""
NONE = "cell columns: no components of tree ensembles that share constraints"
NO_POINT = "no combination of boxes satisfies the shared constraints, proved by an LP"


def tree_parts(context: SolveContext) -> Components | None:
    """The components of a problem of tree ensembles that share coupling rows; None for others."""
    structure = context.once(structure_of)
    parts = structure.proved_parts if structure.trees is not None else None
    return parts if parts is not None and parts.coupled and parts.count <= MOST_COMPONENTS else None


@dataclass(frozen=True)
class CellColumns:
    """Bounds and points from the boxes of each component."""

    name = "cell-columns"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Run until no box is open and the MIP over all of them is solved, or the time is over."""
        run = context.once(_run)
        if run is None:
            return MethodOutcome(StopReason.STALLED, 0, NONE)
        return run.run(context)


def _run(context: SolveContext) -> _BoxColumns | None:
    """The state of a solve, which continues where it was (see `SolveContext.once`)."""
    parts, trees = tree_parts(context), context.once(structure_of).loose_trees
    if parts is None or trees is None:
        return None
    found = list(tree_components(trees, parts))
    run = _BoxColumns(context, trees, parts, found)
    return run if all(np.all(np.isfinite(frontier.use)) for frontier in run.frontiers) else None


class _BoxColumns:
    """The boxes of all components, and the resulting bounds."""

    def __init__(
        self, context: SolveContext, trees: TreeProblem, parts: Components, found: list[TreeComponent]
    ) -> None:
        self._context, self._host, self._parts, self._components = context, trees.host, parts, found
        self._coupling = parts.coupling(trees.host)
        self._scale = np.maximum(np.abs(self._coupling[1]), 1.0)
        self._even = np.append(0.0, 1.0 / self._scale)
        self.frontiers = [Frontier(one, seed=context.seed, threads=context.threads) for one in found]
        self._box = propagate(trees.host)
        self._size = np.maximum(np.abs(self._box.lower), np.abs(self._box.upper))
        self._step = objective_step(trees.host, trees.host.integer)
        self._rest = [frontier.least_active(self._even, context.budget) for frontier in self.frontiers]
        self._prices = self._guide = self._priced(self._even[1:])
        """Prices of cost and coupling rows: for bounds, and for the search."""
        self._rows_alone = replace(trees.host, cost=np.zeros(trees.host.n_columns), offset=0.0)
        self._rounds, self._next_offer, self._wait = 0, 1, MIP_EVERY  # most points belong to closed boxes
        self._settled, self._clock, self._next_proof = False, Budget(), 0.0

    def run(self, context: SolveContext) -> MethodOutcome:
        """Continue the loop."""
        self._context, progress, done = context, Progress(context), False
        while not (context.over or done):
            status = MipStatus.INFEASIBLE if self._lacks_boxes else self._price()
            if status is MipStatus.INFEASIBLE:
                return self._nothing_left(progress)
            if status is not MipStatus.OPTIMAL:  # no time, no end of a shared column, or an engine's failure
                break
            self._leave_out()
            if self._lacks_boxes:
                continue
            done = all(np.all(frontier.closed) for frontier in self.frontiers)
            if done or self._rounds >= self._next_offer:
                self._look_for_points()
            if done:
                self._prove(context.budget)
            elif self._settled and self._boxes <= FEW_BOXES and self._clock.seconds >= self._next_proof:
                began = self._clock.seconds
                self._prove(context.budget.part(max(MIP_SECONDS, began)))
                self._next_proof = 2.0 * self._clock.seconds - began
            if not done:
                self._refine()
            self._rounds += 1
            progress.record(context.incumbent.bound)
            done |= self._boxes > MOST_BOXES
            done |= self._rounds >= PATIENCE and not any(frontier.ever_closed for frontier in self.frontiers)
        closed = sum(int(frontier.closed.sum()) for frontier in self.frontiers)
        message = f"cell columns: {several(self._boxes, 'box', 'boxes')} open, {closed:,} not divisible"
        return MethodOutcome(context.over or StopReason.STALLED, progress.done, message)

    @property
    def _boxes(self) -> int:
        return sum(frontier.size for frontier in self.frontiers)

    @property
    def _lacks_boxes(self) -> bool:
        """Whether a component has no boxes left."""
        return any(frontier.size == 0 for frontier in self.frontiers)

    @property
    def _settings(self) -> EngineSettings:
        context = self._context
        return EngineSettings(context.seed, context.threads, context.incumbent.gap)

    def _nothing_left(self, progress: Progress) -> MethodOutcome:
        """No choice of boxes is left: no solution is better than the best one, or the problem is
        infeasible."""
        context, choice, target = self._context, self._choice([f.use for f in self.frontiers]), self._target
        infeasible = choice is None
        if choice is not None:
            mip = choice.as_mip(self._host.offset)
            with context.stopwatch.measure("engine"):
                lp = SafeLp(mip, seed=context.seed, threads=context.threads)
                infeasible = lp.minimise(mip.cost, mip.offset, context.budget).bound == np.inf
        message = "cell columns: no choice of boxes is left"
        if infeasible and np.isfinite(target):
            self._raise(target)
        elif infeasible:
            return MethodOutcome(StopReason.PROVED, progress.done, NO_POINT, infeasible=True)
        return MethodOutcome(context.over or StopReason.STALLED, progress.done, message)

    def _choice(self, uses: list[FloatArray]) -> Columns | None:
        """(boxes, 1 + R) least uses of each component; None if one has none."""
        if any(len(use) == 0 for use in uses):
            return None
        owner, use = np.repeat(np.arange(len(uses)), [len(use) for use in uses]), np.concatenate(uses)
        shared = SharedColumns.of(self._host, self._parts.shared, self._coupling[0])
        return Columns(len(uses), self._coupling[1], self._scale, shared, owner, use[:, 0], use[:, 1:])

    @property
    def _target(self) -> float:
        """The cost limit in minimisation form: points above it do not improve the best one by a step of
        the objective or by the allowed gap."""
        mip, incumbent = self._context.problem.mip, self._context.incumbent
        if incumbent.x is None:
            return np.inf
        better = max(self._step * STEP, PART * incumbent.allowed_gap)
        return float(mip.sign * incumbent.objective - better)

    def _price(self) -> MipStatus:
        """Prices of the LP over the boxes that are cheapest at the previous prices; its status."""
        status = MipStatus.INFEASIBLE
        few = self._cheapest(self._guide)
        # the few may not fit together although all boxes do
        for which in (few, [np.arange(frontier.size) for frontier in self.frontiers]):
            choice = self._choice_among(which)
            if choice is None or status is not MipStatus.INFEASIBLE:
                continue
            status, found = self._solved_lp(choice)
            if found is None:
                continue
            self._prices = self._guide = self._priced(found.prices)
            little = FREE * (1.0 + abs(found.value))
            if np.max(found.prices / self._even[1:], initial=0.0) <= little:
                self._load(found.value + little, which)
        return status

    def _solved_lp(self, choice: Columns, cost: float | None = None) -> tuple[MipStatus, Relaxation | None]:
        """Solve the LP of a fractional choice, or of the least loaded choice up to a cost; a failed engine
        counts as no time."""
        context = self._context
        with context.stopwatch.measure("engine"), expendable("LP of a choice", EngineError):
            return choice.relaxed(context.budget, level_at=cost)
        return MipStatus.LIMIT, None

    @staticmethod
    def _priced(prices: FloatArray) -> FloatArray:
        """(1 + R,) prices from duals."""
        return np.append(1.0, prices)

    def _load(self, cost: float, which: list[IntArray]) -> None:
        """Prices of the least loaded choice up to a cost; of all boxes, not only of `which`."""
        for _ in range(LOADS):
            choice = self._choice_among(which)
            found = None if choice is None else self._solved_lp(choice, cost)[1]
            if found is None:
                return
            own = found.on_cost
            has_price = own > NOTHING
            loads = self._guide = np.append(has_price, found.prices / (own if has_price else 1.0))
            cheaper = self._cheapest(loads)
            wider = [np.union1d(some, more) for some, more in zip(which, cheaper, strict=True)]
            if sum(map(len, wider)) == sum(map(len, which)):
                return
            which = wider

    def _cheapest(self, prices: FloatArray) -> list[IntArray]:
        """A few boxes of least cost for each component."""
        return [np.argsort(frontier.keys(prices), kind="stable")[:LP_BOXES] for frontier in self.frontiers]

    def _choice_among(self, which: list[IntArray]) -> Columns | None:
        return self._choice([f.use[some] for f, some in zip(self.frontiers, which, strict=True)])

    def _leave_out(self) -> None:
        """Drop boxes that no better point than the best one can use, at several prices."""
        self._leave_out_at(self._prices)
        if self._guide is not self._prices and not self._lacks_boxes:
            self._leave_out_at(self._guide)

    def _leave_out_at(self, prices: FloatArray) -> None:
        """Drop boxes by weak duality, which also gives a bound; if the cost has no price, by
        infeasibility."""
        keys, of_cost = [frontier.keys(prices) for frontier in self.frontiers], bool(prices[0] > 0.0)
        host, target = (self._host, self._target) if of_cost else (self._rows_alone, 0.0)
        constant = lagrangian_constant(
            host, *self._coupling, prices[1:], self._parts.shared, self._box, self._size
        )
        terms = np.array([constant, *(key.min() for key in keys)])
        bound = float(terms.sum() - 8.0 * UNIT * terms.size * np.abs(terms).sum())
        if of_cost:
            self._raise(min(bound, target))
        room = target - bound
        if np.isfinite(room):
            for frontier, key in zip(self.frontiers, keys, strict=True):
                frontier.keep(key - key.min() <= room + HAIR * (1.0 + abs(target)))

    def _raise(self, bound: float, support: Support = Support.PROOF) -> None:
        """Round a bound up to the next possible objective."""
        stepped = next_step(self._host, self._step, bound)
        self._context.incumbent.raise_bound(Bound(stepped, "columns", support=support))

    def _refine(self) -> None:
        """Refine components whose cheapest box is open; if all are closed, all components."""
        prices, budget, self._settled = self._looked_for, self._context.budget, True
        for frontier, rest in zip(self.frontiers, self._rest, strict=True):
            for _ in range(TURNS):
                if (
                    self._context.over
                    or frontier.size == 0
                    or frontier.closed[np.argmin(frontier.keys(prices))]
                ):
                    break
                self._settled = False
                frontier.refine(FEW_CUTS, prices, rest, budget)
        for frontier, rest in zip(self.frontiers, self._rest, strict=True) if self._settled else ():
            if not self._context.over:
                frontier.refine(CUTS, prices, rest, budget)

    @property
    def _looked_for(self) -> FloatArray:
        return np.asarray(self._guide + EVEN * (self._even + self._priced(0.0 * self._even[1:])))

    def _look_for_points(self) -> None:
        """Descents, and a MIP over all known points; half as often after each failure."""
        context, before = self._context, self._context.incumbent.x
        self._descend(context.budget.part(DESCENTS_SHARE * context.budget.left))
        self._offer(context.budget.part(MIP_SECONDS))
        self._wait = MIP_EVERY if context.incumbent.x is not before else 2 * self._wait
        self._next_offer = self._rounds + self._wait

    def _descend(self, budget: Budget) -> None:
        """Points for components without a closed box."""
        prices, known = self._looked_for, self._context.incumbent.x
        for component, frontier in zip(self._components, self.frontiers, strict=True):
            if budget.over:
                return
            if known is not None:
                frontier.met_at(known[component.columns], prices, budget)
            if not frontier.ever_closed:
                frontier.descend(prices, budget)

    def _prove(self, budget: Budget) -> None:
        """A bound from the best choice of boxes; its open boxes are refined."""
        choice, context = self._choice([frontier.use for frontier in self.frontiers]), self._context
        answer = None if choice is None else self._solved(choice, np.inf, budget)
        if choice is None or answer is None:
            return
        target = self._target
        with context.stopwatch.measure("engine"):
            found = stands(choice.as_mip(self._host.offset), answer, self._settings, budget, target)
        self._raise(min(found.bound, target), found.support)
        if answer.x is None or answer.value > target:
            return
        first = 0
        for frontier, rest, box in zip(self.frontiers, self._rest, _chosen(choice, answer.x), strict=True):
            size = frontier.size
            if not frontier.closed[box - first]:
                frontier.look_into(np.array([box - first]), self._looked_for, rest, context.budget)
            first += size

    def _offer(self, budget: Budget) -> None:
        """Offer the best choice of points, and the best point in their cells."""
        choice = self._choice([frontier.used for frontier in self.frontiers])
        answer = None if choice is None else self._solved(choice, self._target, budget)
        if choice is None or answer is None or answer.x is None:
            return
        search, x = self._context.once(cell_search), np.clip(0.0, self._host.lower, self._host.upper)
        known = [point for frontier in self.frontiers for point in frontier.points]
        for component, number in zip(self._components, _chosen(choice, answer.x), strict=True):
            x[component.columns] = known[number]
        search.look_at(search.trees.cells.of_point(x), self._context, descend=False)

    def _solved(self, choice: Columns, cutoff: float, budget: Budget) -> MipAnswer | None:
        context, mip = self._context, choice.as_mip(self._host.offset)
        with context.stopwatch.measure("engine"):
            return answer_of(
                "MIP of a choice", mip, budget, seed=context.seed, threads=context.threads, gap=GAP,
                cutoff=cutoff,
            )  # fmt: skip


def _chosen(choice: Columns, x: FloatArray) -> IntArray:
    """(components,) the box of each with the largest weight at a point of the program."""
    order, rank = choice.ranked(-x[choice.shared.cost.size :])
    return np.asarray(order[rank == 0])
