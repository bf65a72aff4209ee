"""Template pricing: many blocks that are the same up to their data and share a few rows.

    repeat
        pricing:  every block's cheapest points at the prices, all blocks in one batch    -> columns
        prices:   Newton's method on the smoothed dual of the LP over all columns
    choice:       one column per block, in order of gain, as many as the rows hold        -> a candidate

Idea: with few coupling rows all but a few blocks have one best column at the right prices (Shapley, Folkman),
so that the gap between prices and choice does not grow with the number of blocks. Weakness: pricing is local,
so that the dual's value is an estimate and no bound; a handful of blocks is better served by exact choices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch

from dovetail.core.arrays import FloatArray
from dovetail.core.options import require_count
from dovetail.core.words import several
from dovetail.decomposition.hiring import shares_of
from dovetail.decomposition.plan import TemplatePlan, template_plan
from dovetail.decomposition.rounds import BLOCK_GAP, DualBound, Rounds
from dovetail.decomposition.shard import PricingOptions
from dovetail.decomposition.shares import PointShares
from dovetail.run.bound import Bound, Estimate, Scope
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.failures import expendable
from dovetail.run.progress import Progress

NO_BLOCKS = "no blocks that share constraints"
QUICK, QUICK_PART = 1.0, 0.1
"""Seconds, and fraction of the time: if the first round ends sooner, no early solution is needed."""


@dataclass(frozen=True)
class TemplatePricing:
    """Options of the method."""

    rounds: int = 20
    """Largest number of pricing rounds; pricing ends earlier after two consecutive rounds with little
    gain."""
    pricing: PricingOptions = field(default_factory=PricingOptions)

    name = "template-pricing"
    uses_cluster = True

    def __post_init__(self) -> None:
        require_count("TemplatePricing: rounds", self.rounds, at_least=1)

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Prices from a sample, then rounds over all blocks, then the choice."""
        plan = context.once(template_plan)
        if plan is None:
            return MethodOutcome(StopReason.STALLED, 0, NO_BLOCKS)
        with priced_blocks(context, plan, self) as pricing:
            return pricing.solve()


@contextmanager
def priced_blocks(
    context: SolveContext, plan: TemplatePlan, options: TemplatePricing
) -> Iterator[BlockPricing]:
    """The columns and prices of a solve, with workers that are ended afterwards."""
    with torch.no_grad(), shares_of(context, plan, options.pricing) as shares:
        yield BlockPricing(context, plan, options, shares)


class BlockPricing:
    """Columns of all blocks, prices at which they are in balance, choices among them, and messages."""

    def __init__(
        self, context: SolveContext, plan: TemplatePlan, options: TemplatePricing, shares: PointShares
    ) -> None:
        self._context, self._plan, self._options, self._shares = context, plan, options, shares
        self.branched = False
        """Whether branching over boxes has proved some or all blocks to the tolerance."""
        self._said = ""
        """The message about the bound."""
        totals = [program.count for program in plan.programs]
        self._rounds = Rounds(shares, plan.sides, totals, context.budget, context.stopwatch, context.seed)

    def prices(self, rounds: int) -> FloatArray:
        """(R,) prices on the coupling sides after at most so many further rounds, and a choice."""
        found = self._context.incumbent.x
        if found is not None:
            self.add([found])
        self._rounds.more(rounds)
        self._offer(last=True)
        return self._rounds.prices

    def known_costs(self, prices: FloatArray) -> FloatArray:
        """(C,) the cost of the cheapest column of each component at the prices."""
        return self._shares.least_costs(prices)

    def add(self, points: Sequence[FloatArray]) -> int:
        """Add the blocks of some points, and descents from them, as columns; how many blocks gain."""
        prices, before = self._rounds.prices, self.known_costs(self._rounds.prices)
        self._shares.add(points, prices, self._rounds.unit)
        return int(np.count_nonzero(self.known_costs(prices) < before))

    def solve(self, before_others: int | None = None) -> MethodOutcome:
        """Run all rounds (see `Rounds.all`); rows of the trace are rounds over all blocks."""
        context, most, program = self._context, self._options.rounds, self._context.problem.stated
        progress, outcome = Progress(context, most), None
        offered = False
        for done in self._rounds.all(most, before_others):
            if not offered and (done.last or self._slow):
                offered = self._offer(last=False)
            if done.last:
                self._offer(last=done.number > 0 or done.over is None)
            bound = self._bound() if done.last else None
            if bound is not None:
                self.branched = bound.closed == bound.blocks
                if bound.better:
                    self._offer(last=True)
                self._tell(bound)
            outcome = progress.record(done.value + program.sign * self._plan.constant)
            if outcome is not None:
                break
        limit = program.sign * done.value + self._plan.constant
        work = f"{several(self._plan.count, 'block')}, {several(progress.done, 'round')}"
        said = f"template pricing: {work}; no choice of the "
        said += f"columns found is beyond {limit:.8g} (an estimate: other columns may be)"
        said += f"; {self._said}" if self._said else ""
        how = self._shares.in_words
        said += f"; {how}" if how else ""
        reason = outcome.stop_reason if outcome is not None else done.over or StopReason.STALLED
        return MethodOutcome(context.over or reason, progress.done, said)

    def _bound(self) -> DualBound | None:
        """The bound; None if the proof fails, which does not affect the solution."""
        with expendable("bound of many blocks"), self._context.stopwatch.measure("nn"):
            return self._rounds.bound()
        return None

    def _tell(self, bound: DualBound) -> None:
        """Report the bound, proved or estimated, to the incumbent and the log."""
        program, incumbent = self._context.problem.stated, self._context.incumbent
        value = bound.value + program.sign * self._plan.constant
        said = f"of {several(bound.blocks, 'block')} {bound.closed:,} proved to {BLOCK_GAP:.0e} of their cost"
        if bound.error is None:
            rows = self._plan.sides.row_prices(bound.prices, program.n_rows)
            incumbent.raise_bound(Bound(value, "prices", Scope.WRITTEN, prices=rows))
            self._said = f"all least costs bounded at the prices ({said})"
        else:
            incumbent.estimate_bound(Estimate(value, bound.error))
            about = f"about {program.sign * value:.8g}, standard error {bound.error:.2g}"
            self._said = f"an estimate from a sample, not a proof: no solution is beyond {about} ({said})"
        self._context.monitor.say(f"  {self._said}")

    @property
    def _slow(self) -> bool:
        """Whether an early solution is made, which takes a third of the time of a short run."""
        return self._context.budget.seconds > min(QUICK, QUICK_PART * self._context.budget.limit)

    def _offer(self, *, last: bool) -> bool:
        """Whether the choice is a solution."""
        point = self._rounds.undisturbed(partial(self._chosen, last=last))
        if point is None:
            return False
        return not math.isnan(self._context.incumbent.offer(point, "templates", own=True))

    def _chosen(self, *, last: bool) -> FloatArray | None:
        return self._shares.point() if self._rounds.choose(last=last) else None
