"""Prices on the rows that components share, and a proof at them: a bound.

    repeat
        columns      of all components, prices on the rows, and a choice (`decomposition`)
        proof        every component's least cost at these prices  ->  a bound (`shared_rows.py`)
        cheapest points that the proof has met  ->  columns

Idea: a MIP engine cannot solve the whole problem with many networks, but a bound for a single network with
its own rows is proved quickly; prices are found without proofs, and one proof at good prices is better than
many at bad prices. Weakness: the gain of convex combinations over whole columns is lost in the bound.

Provers: batched branching over boxes of moves (`decomposition/proof.py`), if it ends; if components are
samples of networks over closed-form sets, branching over signs of neurons, all components in a batch
(`signs.py`); if they are of few kinds, and those sets leave out important constraints, branch and bound of
each kind as a problem of its own (`kinds.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dovetail.bounds.planes.kernels import used_kernels
from dovetail.core.arrays import FloatArray
from dovetail.core.words import several
from dovetail.decomposition import TemplatePricing
from dovetail.decomposition.method import NO_BLOCKS, BlockPricing, priced_blocks
from dovetail.decomposition.plan import template_plan
from dovetail.methods.component_prices.coupled_problem import CoupledProblem
from dovetail.methods.component_prices.kinds import MORE, KindProof, component_kinds
from dovetail.methods.component_prices.shared_rows import SharedRows
from dovetail.methods.component_prices.signs import SignOracle, SignProof
from dovetail.run.bound import Bound
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.failures import expendable
from dovetail.run.progress import Progress
from dovetail.structure.structure import structure_of

TOLERANCE, FINEST = 2e-3, 1e-5
"""For a component, relative to the saving of its cheaper class: a search ends when its bound is this close to
a point. The first for general objectives; refined to the second if that reaches the next whole step."""
ENOUGH = 1e-4
"""Relative: a smaller distance between the bound and the limit of the columns needs no further proof. For
values, the tolerance of all searches together."""
HALF = 0.5
"""Fraction of the allowed gap that all components together may leave."""
SMOOTHING = 0.3
"""Weight of the prices with the best bound so far: the master's own jump about."""
IDLE = 2
"""Number of passes in a row without a higher bound: four more gained nothing either (water, n = 400)."""
BEGINNING_SECONDS, BEGINNING_SHARE = 3e-4, 0.3
"""Time to begin with one component (water), and the largest share of the time left for all."""
FEW_NEURONS = 50
"""Trees of a component close with this number of neurons; with more they make no progress where signs have
ended."""
ROUNDING = 0.01
"""Fraction of a logit: if the deployed network's error is larger, the outcome reports it, because no time
closes that gap."""
REPORTED = 0.05
"""Fraction of the remaining gap: a gain of this size gets a row of the trace."""
ROUNDS, FIRST_NODES, GROWTH = 4, 1024, 4
"""Rounds of columns before each proof, the nodes of the first proof, and their growth from one update of the
prices to the next."""
MOST_CERTIFIED = 20_000
"""With more blocks computing the sets of their moves takes more than a minute. At 10,000 samples of
water (2x16) the proof raises the bound from the trivial 10,000 to 4,019 in a minute."""
NAME = "certified prices"


def coupled_problem(context: SolveContext) -> CoupledProblem | None:
    """The problem of a solve as coupled components; made once (see `SolveContext.once`)."""
    structure = context.once(structure_of)
    few = structure.proved_parts.count <= MOST_CERTIFIED
    return CoupledProblem.of(structure, context.device or "cpu") if few else None


@dataclass(frozen=True)
class BlockPrices:
    """Prices on shared constraints, good points of each component (columns), choices among them, and the
    least cost of each component at the prices, proved where it can be. Components that are equal up to their
    data are priced together (`TemplatePricing`).

    >>> import dovetail as dt
    >>> mip = dt.Mip(  # two samples, one budget; each is worth 1 where its class is 1
    ...     cost=[0.0, 0.0, -1.0, -1.0], A=[[1.0, 1.0, 0.0, 0.0]], row_lower=[0.0], row_upper=[1.2], upper=1.0
    ... )
    >>> problem = dt.Problem(mip)
    >>> block = problem.add_predictor(
    ...     lambda X: X - 0.5, inputs=[[0], [1]], outputs=[[2], [3]], output_type="classification"
    ... )
    >>> dt.solve(problem, dt.BlockPrices(), log=False).objective
    -2.0
    """

    pricing: TemplatePricing = field(default_factory=TemplatePricing)
    batch: int = 1024
    """Nodes bounded at a time, on the CPU."""

    name = "block-prices"
    uses_cluster = True

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Columns, and then passes of prices and proofs until the time is over or they do not improve the
        bound. If branching over boxes ends, it has proved all blocks, or would take too long for all."""
        plan = context.once(template_plan)
        if plan is None:
            return MethodOutcome(StopReason.STALLED, 0, NO_BLOCKS)
        few = plan.count <= MOST_CERTIFIED and plan.as_components
        with priced_blocks(context, plan, self.pricing) as pricing:
            outcome = pricing.solve(ROUNDS if few else None)
            if context.over or not few or pricing.branched:
                return outcome
            with expendable(NAME):
                proof = self._proved(context, pricing)
                return replace(proof, message="; ".join(filter(None, [outcome.message, proof.message])))
        return outcome

    def _proved(self, context: SolveContext, pricing: BlockPricing) -> MethodOutcome:
        """The passes."""
        structure = context.once(structure_of)
        if BEGINNING_SECONDS * structure.samples > BEGINNING_SHARE * context.budget.left:
            return MethodOutcome(StopReason.STALLED, 0, f"{NAME}: too many components for the time")
        coupled = context.once(coupled_problem)
        run = _Run(context, coupled, pricing, self.batch)
        rows, count = run.rows.sides.count, run.rows.parts.count
        context.monitor.say(f"  proof: prices on {rows} constraints, {count} components")
        ended = ""
        while not ended:
            ended = context.over or run.once()
        best = context.problem.mip.sign * run.best
        run.end()
        found = f"{several(run.passes, 'pass', 'passes')}, {several(run.nodes, 'node')}, bound {best:.6g}"
        found += "" if coupled is None else _rounding(coupled)
        if run.left_out:
            found += f", {several(run.left_out, 'component')} not refined for lack of memory"
        said = "; ".join(filter(None, [f"{NAME}: {found} ({ended})", used_kernels()]))
        said = said if run.passes else f"{NAME}: {ended}"
        return MethodOutcome(context.over or StopReason.STALLED, run.passes, said)


def _rounding(coupled: CoupledProblem) -> str:
    """The effect of deployed classifiers' rounding, if it is large."""
    of_classes = [group.slack for group in coupled.groups if group.block.classifies]
    most = max((float(slack.max(initial=0.0)) for slack in of_classes), default=0.0)
    return "" if most <= ROUNDING else f", {most:.2g} of a logit left to the network's own rounding"


class _Run:
    """Passes over one problem."""

    def __init__(
        self, context: SolveContext, coupled: CoupledProblem | None, source: BlockPricing, batch: int
    ) -> None:
        self._context, self._source = context, source
        self._signs = None if coupled is None else SignOracle(context, coupled, batch)
        self.rows = coupled or SharedRows.of_structure(context.once(structure_of))
        self._progress = Progress(context)
        self._prices = self._best_prices = np.zeros(self.rows.sides.count)
        self._proof: SignProof | KindProof | None = None
        """The current proof."""
        self._asked, self._gained = 0, False
        """The number of requests for prices, and whether the current proof has raised the bound."""
        self._idle, self._violated = 0, ""
        """Passes since the last higher bound, and constraints outside the sets that known points violate."""
        self.best, self.nodes, self.passes, self.left_out = -np.inf, 0, 0, 0

    def once(self) -> str:
        """Find prices, and run a proof at them with as much work as all proofs before; returns why another
        proof is useless, or ""."""
        context = self._context
        ended = self._priced()
        proof = self._proof
        if ended or proof is None:
            return ended
        most, before = max(FIRST_NODES, (GROWTH - 1) * (self.nodes + proof.nodes)), self.best
        ended = proof.run(self._tolerance(proof.reachable), context.budget, _Watch(self, proof).enough, most)
        self.raise_bound(proof.lower)
        added = self._source.add([proof.point()])
        self._violated = proof.violated or self._violated
        self._gained |= self.best > before
        if ended == MORE:
            return ""
        self._passed(proof)
        if ended != "closed":
            return ended
        self._idle, self._gained = 0 if self._gained else self._idle + 1, False
        if self._idle < IDLE and (added or not self._idle):
            return ""
        return self._ended("other prices give no better bound" if added else "no better solution exists")

    def _ended(self, why: str) -> str:
        """Why another proof would be useless; "" if trees can handle the restrictions that signs ignore."""
        if not self._violated:
            return why
        kinds = self._context.once(component_kinds)
        if kinds and max(kind.unstable for kind in kinds) <= FEW_NEURONS:
            self._signs, self._violated, self._idle = None, "", 0
            self._prices = np.full_like(self._prices, np.nan)
            return ""
        return f"stopped: the sets of the blocks ignore {self._violated}, which the points found violate"

    def end(self) -> None:
        """Count a proof that does not continue."""
        if self._proof is not None:
            self._passed(self._proof)

    def _passed(self, proof: SignProof | KindProof) -> None:
        """A proof that does not go on."""
        self.nodes, self.left_out = self.nodes + proof.nodes, self.left_out + proof.left_out
        self.passes, self._proof = self.passes + 1, None
        if self._signs is not None:
            self._signs.nodes = self.nodes

    def _priced(self) -> str:
        """Find new prices, unless the current proof can still reach the same bound; returns why there are
        none, or ""."""
        going = self._proof
        prices = self._source.prices(ROUNDS)
        self._asked += 1
        if not self._provable:
            same, self._prices = self._asked > 1 and np.array_equal(prices, self._prices), prices
            return "no further columns, and least costs cannot be proved" if same else ""
        if going is None and self.passes and np.array_equal(prices, self._prices):
            return self._ended("no other prices were found")
        proof = self._at(prices)
        if going is not None:
            if proof.reachable - going.current <= HALF * (going.current - going.lower):
                return ""
            self._passed(going)
        if not self._more(proof):
            return "no prices prove more"
        if np.isfinite(self.best):
            smooth = SMOOTHING * self._best_prices + (1.0 - SMOOTHING) * prices
            steady = self._at(smooth)
            prices, proof = (smooth, steady) if self._more(steady) else (prices, proof)
        self._prices, self._proof = prices, proof
        return ""

    @property
    def _provable(self) -> bool:
        """Whether anything proves least costs of components."""
        return self._signs is not None or bool(self._context.once(component_kinds))

    def _at(self, prices: FloatArray) -> SignProof | KindProof:
        known = self._source.known_costs(prices)
        if self._signs is not None:
            return self._signs.at(prices, known)
        return KindProof(self._context, self.rows, self._context.once(component_kinds), prices, known)

    def _more(self, proof: SignProof | KindProof) -> bool:
        """Whether a proof may bring more than is proved."""
        reachable, known = self.rows.stepped(proof.reachable), max(self.best, self._context.incumbent.bound)
        room = 0.0 if self.rows.step or not np.isfinite(reachable) else ENOUGH * (1.0 + abs(reachable))
        return reachable > known + room

    @property
    def over(self) -> StopReason | None:
        """Why the bound cannot be improved any further."""
        return self._context.over

    def _tolerance(self, reachable: float) -> float:
        """Fine enough for the next whole step, if that is not too fine."""
        rows, count = self.rows, self.rows.parts.count
        if not np.isfinite(reachable):
            return TOLERANCE
        if rows.step == 0.0:
            if self._context.once(structure_of).classes:
                return TOLERANCE
            left, incumbent = ENOUGH * (1.0 + abs(reachable)), self._context.incumbent
            if self._signs is None and incumbent.x is not None:  # trees close to the requested tolerance
                left = HALF * incumbent.allowed_gap
            return left / count
        room = reachable - (rows.stepped(reachable) - rows.step)
        return float(np.clip(0.5 * room / count, FINEST, TOLERANCE))

    def raise_bound(self, value: float) -> None:
        """Report the bound to the incumbent, rounded to whole steps if objectives have them."""
        if not np.isfinite(value):
            return
        value = self.rows.stepped(value)
        if value > self.best:
            self.best, self._best_prices = value, self._prices
        row_prices = None if self._signs is None else self.rows.row_prices(self._prices)
        self._context.incumbent.raise_bound(Bound(value, "prices", prices=row_prices))
        self._progress.record(value)


class _Watch:
    """Ends a proof when it has done enough, and reports progress."""

    def __init__(self, run: _Run, proof: SignProof | KindProof) -> None:
        self._run, self._proof, self._reported = run, proof, -np.inf

    def enough(self) -> bool:
        """Whether everything provable at these prices is proved, up to a whole step."""
        run, lower, current = self._run, self._proof.lower, self._proof.current
        if np.isfinite(lower) and not lower - self._reported < REPORTED * (current - self._reported):
            self._reported = lower
            run.raise_bound(lower)
        return bool(run.over) or run.rows.stepped(lower) >= run.rows.stepped(current)
