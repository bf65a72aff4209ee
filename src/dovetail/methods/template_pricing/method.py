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

from dataclasses import dataclass, field

import numpy as np
import torch

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import TOLERANCE
from dovetail.core.options import require_count
from dovetail.methods.template_pricing.choice import Choice
from dovetail.methods.template_pricing.core_choice import improve
from dovetail.methods.template_pricing.plan import TemplatePlan, template_plan
from dovetail.methods.template_pricing.prices import Smoothed, best_prices, exact_value, smoothed
from dovetail.methods.template_pricing.shard import PricingOptions, Shard
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress

SAMPLE, SAMPLE_ROUNDS = 2000, 3
"""Blocks that find the first prices, where there are many more: a tenth of the time that all would take."""
NOISE, NOISE_ROUNDS = (0.5, 0.15), 8
"""Standard deviation of the logarithm of prices in the first round and after so many: far ones make columns
that differ, near ones good ones."""
CORE_SECONDS, CORE_SHARE = 4.0, 0.1
"""For the MIP over the last few blocks; no more than a share of the time left."""
GAINED, SMALL = 4e-4, 1e-2
"""Relative: a round that lowers the dual's value by less has brought little. What all blocks have at stake
counts so much, lest an objective near 0 is never done."""


@dataclass(frozen=True)
class TemplatePricing:
    """Options of the method."""

    rounds: int = 20
    """Of pricing, at most; it ends earlier when columns bring little, twice in a row."""
    pricing: PricingOptions = field(default_factory=PricingOptions)

    name = "template-pricing"

    def __post_init__(self) -> None:
        require_count("TemplatePricing: rounds", self.rounds, at_least=1)

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Prices from a sample, then rounds over all blocks, then the choice."""
        plan = context.once(template_plan)
        if plan is None:
            return MethodOutcome(StopReason.STALLED, 0, "no blocks that are the same up to their data")
        with torch.no_grad():
            run = TemplateRun(context, plan, self)
            context.keep(template_prices, run)
            return run.solve()


def template_prices(context: SolveContext) -> TemplateRun:
    """The last run of a solve, or a whole one (see `SolveContext.once`): prices that are worth a proof."""
    plan = context.once(template_plan)
    assert plan is not None
    run = TemplateRun(context, plan, TemplatePricing())
    with torch.no_grad():
        run.solve()
    return run


class TemplateRun:
    """Shards, prices and rounds of one problem."""

    def __init__(self, context: SolveContext, plan: TemplatePlan, options: TemplatePricing) -> None:
        self._context, self._plan, self._options = context, plan, options
        device = context.device or "cpu"
        blocks = list(context.problem.blocks)
        self._shards = [Shard(program, blocks, options.pricing, device) for program in plan.programs]
        self._rng = np.random.default_rng(context.seed)
        self._limit = plan.sides.limit
        self._unit = sum(s.count * s.stake for s in self._shards) / plan.count
        usual = np.sum([s.count * s.usual_use for s in self._shards], axis=0) / plan.count
        self._usual_prices: FloatArray = np.where(usual > 0.0, self._unit / np.maximum(usual, 1e-300), 0.0)
        self._prices = self._usual_prices

    def solve(self) -> MethodOutcome:
        """All of it; rows of the trace are rounds over all blocks."""
        context, rounds = self._context, self._options.rounds
        progress = Progress(context, rounds)
        if self._plan.count > 2 * SAMPLE:
            self._sample()
        value, quiet, outcome = np.inf, 0, None
        for number in range(rounds):
            which = [
                s.undecided(self._prices, self._unit) if number else np.arange(s.count) for s in self._shards
            ]
            self._price(which, NOISE[0] * (NOISE[1] / NOISE[0]) ** min(number / NOISE_ROUNDS, 1.0))
            self._find_prices([None] * len(self._shards), self._limit)
            before, value = value, self._value()
            little = before - value < GAINED * (abs(value) + SMALL * self._unit * self._plan.count)
            quiet = quiet + 1 if little else 0
            ended = context.budget.over or quiet == 2
            if number == 0 or ended or number == rounds - 1:
                self._offer(last=number > 0)
            outcome = progress.record(value + context.problem.mip.minimised().offset)
            if outcome is not None or ended:
                break
        self._hand_on()
        mip = context.problem.mip
        limit = mip.sign * (value + mip.minimised().offset)
        said = f"template pricing: {self._plan.count:,} blocks, {progress.done} rounds; no choice of the "
        said += f"columns found is beyond {limit:.8g} (an estimate: other columns may be)"
        reason = outcome.stop_reason if outcome is not None else StopReason.STALLED
        return MethodOutcome(context.over or reason, progress.done, said)

    def known_costs(self, prices: FloatArray) -> FloatArray:
        """(C,) what the cheapest column of each component costs at these prices."""
        known = np.full(self._plan.count, np.inf)
        for shard in self._shards:
            price = torch.as_tensor(prices, device=shard.data.device)
            known[shard.program.template.component] = (
                shard.pool.priced(price).min(dim=1).values.double().cpu()
            )
        return known

    def prices(self) -> FloatArray | None:
        """On the coupling sides."""
        return self._prices

    def add(self, z: FloatArray) -> int:
        """Points that a proof met come too late to change the prices."""
        return 0

    def _sample(self) -> None:
        """Prices of some blocks under their share of the rows."""
        share = SAMPLE / self._plan.count
        which = [
            self._rng.choice(s.count, max(1, round(share * s.count)), replace=False) for s in self._shards
        ]
        for _ in range(SAMPLE_ROUNDS):
            self._price(which, NOISE[0])
            part = sum(len(w) for w in which) / self._plan.count
            self._find_prices(which, part * self._limit)

    def _price(self, which: list[IntArray], noise: float) -> None:
        with self._context.stopwatch.measure("nn"):
            for shard, mine in zip(self._shards, which, strict=True):
                shard.price(mine, self._prices, noise, self._unit, self._rng, self._context.budget)

    def _find_prices(self, which: list[IntArray] | list[None], limit: FloatArray) -> None:
        def of_blocks(prices: FloatArray, tau: float, second: bool) -> Smoothed:
            parts = [
                smoothed(shard.pool, prices, tau, mine, second=second)
                for shard, mine in zip(self._shards, which, strict=True)
            ]
            return sum(parts[1:], start=parts[0])

        self._prices = best_prices(of_blocks, limit, self._prices, self._unit, self._usual_prices)

    def _value(self) -> float:
        """Of the dual over all columns: an estimate of what no point can be below, in minimisation form."""
        return sum(exact_value(s.pool, self._prices) for s in self._shards) - float(
            self._prices @ self._limit
        )

    def _offer(self, *, last: bool) -> None:
        """A choice within the rows: each shard in its share of the room, then in what others left.

        The last one, and one that misses a row, is mended by a MIP over a few blocks.
        """
        choices = [Choice(shard) for shard in self._shards]
        if not all(choice.complete for choice in choices):
            return
        wanted = [
            smoothed(s.pool, self._prices, 1e-6 * self._unit, None, second=False).use for s in self._shards
        ]
        left = self._limit - np.sum(wanted, axis=0)
        for shard, choice, use in zip(self._shards, choices, wanted, strict=True):
            choice.serve(self._prices, use + left * (shard.count / self._plan.count))
        for choice in choices:
            others = np.sum([c.use for c in choices if c is not choice], axis=0)
            choice.fill(self._limit - others)
        missed = np.any(np.sum([c.use for c in choices], axis=0) > self._limit + TOLERANCE)
        if last or missed:
            part = self._context.budget.part(min(CORE_SECONDS, CORE_SHARE * self._context.budget.left))
            with self._context.stopwatch.measure("engine"):
                improve(self._shards, choices, self._prices, self._limit, part, self._context.seed)
        self._context.incumbent.offer(self._point([choice.place for choice in choices]), "templates")

    def _point(self, places: list[IntArray]) -> FloatArray:
        """All columns of the host, outputs as they were found."""
        z = self._plan.others.copy()
        for shard, place in zip(self._shards, places, strict=True):
            everyone, template = np.arange(shard.count), shard.program.template
            moves, outputs = shard.column(everyone, place)
            z[template.columns] = shard.program.points(everyone, moves, outputs)
        return z

    def _hand_on(self) -> None:
        """The columns, for methods that begin with points: one of every block each, the first where it has no
        more."""
        archive = self._context.archive
        if not archive.keeps:
            return
        for place in range(max(shard.pool.cost.shape[1] for shard in self._shards)):
            archive.add(self._point([shard.nth(place) for shard in self._shards]))
