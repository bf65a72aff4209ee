"""Prices from columns, certified: a bound for many samples of a network that rows tie together.

    repeat
        master LP over the columns found so far  ->  prices on the coupling rows
        every component's least cost at those prices, proved by branching over ReLUs  ->  a bound
        cheaper points that were met on the way  ->  columns

Idea: the prices are found without any proof, and one proof at good prices is worth many at bad ones.
Weakness: a network of four layers and more has too many ReLUs that may change sign; and what whole columns
lose against convex combinations of them, the bound never gets back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from dovetail.bounds.planes.kernels import used_kernels
from dovetail.bounds.whole_objective import next_step
from dovetail.core.amounts import several
from dovetail.core.arrays import FloatArray
from dovetail.methods.certified_prices.coupled_problem import (
    CoupledProblem,
    Priced,
    PricedProblem,
    first_ones_fit,
)
from dovetail.methods.column_generation.master import Master
from dovetail.methods.column_generation.method import ColumnGenerationRun, column_run
from dovetail.methods.relu_branching.move_search import MoveSearch
from dovetail.methods.relu_branching.search import ReluSearch, SearchOptions
from dovetail.methods.relu_branching.targets import Neurons, Targets, is_relu_network
from dovetail.run.bound import Bound
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress
from dovetail.structure.move_sets import MoveSet
from dovetail.structure.structure import structure_of

TOLERANCE, FINEST = 2e-3, 1e-5
"""Of a component, relative to what its cheaper class saves: a search ends when it is as near to a point. The
first where objectives may be anything; as fine as the second where that brings the next whole step."""
NUDGE = 1e-4
"""Relative: so much farther than a point on a class's very edge, lest rounding put it on the other side."""
DEVICE_NODES, DEVICE_CELLS = 32768, 131072
"""Bounded at a time on a GPU, of either search: with fewer cells it waits for Python."""
FEW_NEURONS = 64
"""On a GPU: with more of them cells of moves are better than signs of neurons (measured: 2x16 and 4x32)."""
MOST_COMPONENTS = 3000
"""No proof of more of them ends in minutes."""
BEGINNING_SECONDS, BEGINNING_SHARE = 3e-4, 0.3
"""What it takes to begin with one component (water), and the most of the time left that all may take."""
ROUNDING = 0.01
"""Of a logit: where the deployed network may be off by more, the outcome says so: no time closes that gap."""
LOOK, REPORT = 0.25, 1.0
"""Seconds from one look at the bound to the next, and from one row of the trace to the next."""


Search = ReluSearch | MoveSearch


class PriceSource(Protocol):
    """Columns of all components, and prices at which they are in balance."""

    def prices(self) -> FloatArray | None:
        """(R,) on the coupling rows, upper sides first, then lower ones; None where there are none."""
        ...

    def known_costs(self, prices: FloatArray) -> FloatArray:
        """(C,) what the cheapest column of each component costs at these prices."""
        ...

    def add(self, z: FloatArray) -> int:
        """A point's components as columns; how many are new."""
        ...


class ColumnPrices:
    """Of a run of column generation: by its master LP."""

    def __init__(self, context: SolveContext, run: ColumnGenerationRun) -> None:
        self._context, self._run = context, run
        self._master = Master(context, run.pool)

    def prices(self) -> FloatArray | None:
        """Of the master LP over the columns found so far."""
        master = self._master.solve(self._context.budget)
        return None if master is None else master.prices.rows

    def known_costs(self, prices: FloatArray) -> FloatArray:
        """Of the pool."""
        return self._run.pool.least_costs(prices)

    def add(self, z: FloatArray) -> int:
        """To the pool."""
        before = self._run.pool.size
        self._run.add(z)
        return self._run.pool.size - before


def column_prices(context: SolveContext) -> PriceSource | None:
    """Of the last run of column generation, or of a short one."""
    return ColumnPrices(context, context.once(column_run))


def coupled_problem(context: SolveContext) -> CoupledProblem | None:
    """The problem of a solve as coupled components; made once (see `SolveContext.once`)."""
    return CoupledProblem.of(context.once(structure_of), context.device or "cpu")


def applies(context: SolveContext) -> bool:
    """Whether components look like samples whose least cost can be proved, and rows couple them.

    All of them are looked at when a proof begins: thousands take seconds, which it may never get.
    """
    structure = context.once(structure_of)
    coupled = structure.proved_parts.coupled and structure.proved_parts.count <= MOST_COMPONENTS
    return coupled and first_ones_fit(structure, context.device or "cpu")


@dataclass(frozen=True)
class CertifiedPrices:
    """Proves a bound; what it meets on the way becomes columns."""

    batch: int = 1024
    """Nodes bounded at a time, on the CPU."""
    source: Callable[[SolveContext], PriceSource | None] = column_prices
    """Whose prices are proved."""

    name = "certified-prices"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Passes of prices and proofs until the time is over or they bring nothing."""
        if BEGINNING_SECONDS * context.once(structure_of).samples > BEGINNING_SHARE * context.budget.left:
            return MethodOutcome(StopReason.STALLED, 0, "certified prices: too many components for the time")
        coupled = context.once(coupled_problem)
        if coupled is None or coupled.parts.count < 2 or coupled.sides.count == 0:
            return MethodOutcome(
                StopReason.STALLED, 0, "certified prices: components are no closed-form sets"
            )
        source = self.source(context)
        if source is None:
            return MethodOutcome(StopReason.STALLED, 0, "certified prices: there are no prices")
        rows, count = coupled.sides.count, coupled.parts.count
        context.monitor.say(f"  proof: prices on {rows} rows, {count} components")
        certification = _Certification(context, coupled, source, self.batch)
        ended = ""
        while not ended:
            ended = context.over or certification.once()
        best = context.problem.mip.sign * certification.best
        passes = several(certification.passes, "pass", "passes")
        found = f"{passes}, {several(certification.nodes, 'node')}, bound {best:.6g}{_rounding(coupled)}"
        if certification.left_out:
            found += f", {several(certification.left_out, 'component')} left as they were for want of memory"
        said = "; ".join(filter(None, [f"certified prices: {found} ({ended})", used_kernels()]))
        return MethodOutcome(context.over or StopReason.STALLED, certification.passes, said)


def _rounding(coupled: CoupledProblem) -> str:
    """What the rounding of deployed classifiers costs, where that is much."""
    of_classes = [group.slack for group in coupled.groups if group.block.classifies]
    most = max((float(slack.max(initial=0.0)) for slack in of_classes), default=0.0)
    return "" if most <= ROUNDING else f", {most:.2g} of a logit left to the network's own rounding"


class _Certification:
    """Passes over one problem."""

    def __init__(
        self, context: SolveContext, coupled: CoupledProblem, source: PriceSource, batch: int
    ) -> None:
        self._context, self._coupled, self._source, self._batch = context, coupled, source, batch
        self._progress = Progress(context)
        self._row_prices: FloatArray | None = None
        self.best, self.nodes, self.passes, self.left_out = -np.inf, 0, 0, 0

    def once(self) -> str:
        """One set of prices, proved; why there is no use in another one, or nothing."""
        context = self._context
        prices = self._source.prices()
        if prices is None or prices.size != self._coupled.sides.count:
            return "there are no prices"
        self._row_prices, at = self._coupled.row_prices(prices), self._coupled.at(prices)
        known = self._source.known_costs(prices)
        reachable = at.bound([_known(part, known) for part in at.parts])
        if self.stepped(reachable) <= max(self.best, context.incumbent.bound):
            return "no prices prove more"
        tolerance = self._tolerance(reachable)
        searches = [self._search(part, known, tolerance) for part in at.parts]
        watch = _Watch(self, at, searches)
        ended = [search.run(context.budget, watch.enough) for search in searches if search is not None]
        self.nodes += sum(search.nodes for search in searches if search is not None)
        self.left_out += sum(search.left_out for search in searches if search is not None)
        self.passes += 1
        self.raise_bound(at.bound([_lower(search) for search in searches]))
        limits = [one for one in ended if one not in ("closed", "enough")]
        added, violated = self._add_columns(at, searches)
        if limits or added:
            return "; ".join(dict.fromkeys(limits))
        if violated:
            return f"given up: the sets leave out {violated}, which cheaper points violate"
        return "no cheaper point is left"

    @property
    def over(self) -> StopReason | None:
        """Why nothing more is to be proved."""
        return self._context.over

    def _tolerance(self, reachable: float) -> float:
        """Fine enough for the next whole step, if that is not too fine."""
        step, count = self._coupled.step, self._coupled.parts.count
        if step == 0.0 or not np.isfinite(reachable):
            return TOLERANCE
        room = reachable - (self.stepped(reachable) - step)
        return float(np.clip(0.5 * room / count, FINEST, TOLERANCE))

    def stepped(self, bound: float) -> float:
        """The next whole step of the objective, where it has steps."""
        return next_step(self._coupled.mip, self._coupled.step, bound)

    def raise_bound(self, value: float) -> None:
        """Tell the incumbent, in whole steps where objectives have them."""
        value = self.stepped(value)
        self.best = max(self.best, value)
        self._context.incumbent.raise_bound(Bound(value, "prices", prices=self._row_prices))
        self._progress.record(value)

    def _search(self, part: Priced, known: FloatArray, tolerance: float) -> Search | None:
        if part.targets is None:
            return None
        search = self._made(part.targets, tolerance * part.worth)
        search.know(torch.as_tensor(_known(part, known)))
        return search

    def _made(self, targets: Targets, tolerance: float) -> Search:
        """Over signs of ReLUs where there are few of them; over moves for other networks, and on a GPU."""
        graph, on_cpu = targets.planes.graph, targets.shift.device.type == "cpu"
        nodes, cells = (self._batch, self._batch) if on_cpu else (DEVICE_NODES, DEVICE_CELLS)
        if is_relu_network(graph) and (on_cpu or Neurons(graph).count <= FEW_NEURONS):
            return ReluSearch(targets, SearchOptions(batch=nodes, tolerance=tolerance))
        return MoveSearch(targets, batch=cells, tolerance=tolerance)

    def _add_columns(self, at: PricedProblem, searches: list[Search | None]) -> tuple[int, str]:
        """The cheapest points met, all components at once: how many columns are new, and what one of these
        points violates that its set leaves out."""
        problem, met = self._context.problem, list[MoveSet]()
        mip, z = problem.mip, self._context.incumbent.x
        z = np.clip(np.zeros(mip.n_columns), mip.lower, mip.upper) if z is None else z.copy()
        for part, search in zip(at.parts, searches, strict=True):
            if search is None:
                continue
            moves = search.best_moves.cpu().numpy()
            for k in np.flatnonzero(search.met.cpu().numpy()):
                one = part.group.sets[part.asked[k]]
                z[one.inputs], z[one.columns] = one.values((1.0 + NUDGE) * moves[k], mip)
                met.append(one)
        added = self._source.add(z)
        if added:
            return added, ""
        z = problem.predict(z)
        return 0, next(filter(None, (one.violated(self._coupled.mip, z) for one in met)), "")


class _Watch:
    """Says when a search has done enough, and reports now and then."""

    def __init__(
        self, certification: _Certification, at: PricedProblem, searches: list[Search | None]
    ) -> None:
        self._certification, self._at, self._searches = certification, at, searches
        self._looked = self._reported = time.perf_counter()

    def enough(self, search: Search) -> bool:
        """Whether all is proved that can be at these prices, up to a whole step."""
        now, certification = time.perf_counter(), self._certification
        if now - self._looked < LOOK:
            return False
        self._looked = now
        lower = self._at.bound([_lower(one) for one in self._searches])
        upper = self._at.bound(
            [None if one is None else one.reachable.cpu().numpy() for one in self._searches]
        )
        if now - self._reported > REPORT:
            self._reported = now
            certification.raise_bound(lower)
        return bool(certification.over) or certification.stepped(lower) >= certification.stepped(upper)


def _lower(search: Search | None) -> FloatArray | None:
    return None if search is None else search.lower.cpu().numpy()


def _known(part: Priced, known: FloatArray) -> FloatArray:
    """(asked,) values of targets that the cheapest columns have."""
    owners = np.array([one.number for one in part.group.parts])[part.asked]
    cheaper = known[owners] < part.other[part.asked]  # a column that has the class asked for
    cutoff = np.inf if part.targets is None else part.targets.cutoff.cpu().numpy()
    return np.where(cheaper, known[owners] - part.base[part.asked], cutoff)
