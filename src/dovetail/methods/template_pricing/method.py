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

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
import torch

from dovetail.core.amounts import several
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import TOLERANCE
from dovetail.core.options import require_count
from dovetail.methods.template_pricing.core_choice import improve
from dovetail.methods.template_pricing.hiring import shares_of
from dovetail.methods.template_pricing.plan import TemplatePlan, template_plan
from dovetail.methods.template_pricing.prices import Smoothed, Sum, best_prices
from dovetail.methods.template_pricing.shard import PricingOptions
from dovetail.methods.template_pricing.share import Sample, Which
from dovetail.methods.template_pricing.shares import Shares
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
WORTH = 1e-5
"""Relative: the MIP over the last few blocks does not look for less. Of a million blocks that is a handful,
for which it would take all its seconds."""
TRIES = 3
"""Of what a lost share disturbs; what the last one gives is looked at as it is."""

T = TypeVar("T")


@dataclass(frozen=True)
class TemplatePricing:
    """Options of the method."""

    rounds: int = 20
    """Of pricing, at most; it ends earlier when columns bring little, twice in a row."""
    pricing: PricingOptions = field(default_factory=PricingOptions)

    name = "template-pricing"
    uses_cluster = True

    def __post_init__(self) -> None:
        require_count("TemplatePricing: rounds", self.rounds, at_least=1)

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Prices from a sample, then rounds over all blocks, then the choice."""
        plan = context.once(template_plan)
        if plan is None:
            return MethodOutcome(StopReason.STALLED, 0, "no blocks that are the same up to their data")
        outcome, prices = _solved(context, plan, self)
        context.keep(template_prices, prices)
        return outcome


@dataclass(frozen=True, eq=False)
class TemplatePrices:
    """Of a run that has ended: prices that are worth a proof, and columns that were found (`PriceSource`)."""

    at: FloatArray
    known: FloatArray
    """(C,) what the cheapest column of each component costs at them."""

    def prices(self) -> FloatArray | None:
        """On the coupling sides."""
        return self.at

    def known_costs(self, prices: FloatArray) -> FloatArray:
        """At these prices only: the columns may be gone."""
        assert prices is self.at
        return self.known

    def add(self, z: FloatArray) -> int:
        """Points that a proof met come too late to change the prices."""
        return 0


def template_prices(context: SolveContext) -> TemplatePrices | None:
    """Of the last run of a solve, or of a whole one (see `SolveContext.once`)."""
    plan = context.once(template_plan)
    return None if plan is None else _solved(context, plan, TemplatePricing())[1]


def _solved(
    context: SolveContext, plan: TemplatePlan, options: TemplatePricing
) -> tuple[MethodOutcome, TemplatePrices | None]:
    with torch.no_grad(), shares_of(context, plan, options.pricing) as shares:
        run = _Run(context, plan, options, shares)
        outcome = run.solve()
        if not plan.as_components:
            return outcome, None
        return outcome, TemplatePrices(run.prices, shares.least_costs(run.prices))


class _Run:
    """Shares, prices and rounds of one problem."""

    def __init__(
        self, context: SolveContext, plan: TemplatePlan, options: TemplatePricing, shares: Shares
    ) -> None:
        self._context, self._plan, self._options, self._shares = context, plan, options, shares
        self._rng = np.random.default_rng(context.seed)
        self._limit = plan.sides.limit
        self._unit = shares.stake
        usual = shares.usual_use
        self._usual_prices: FloatArray = np.where(usual > 0.0, self._unit / np.maximum(usual, 1e-300), 0.0)
        self.prices = self._usual_prices

    def solve(self) -> MethodOutcome:
        """All of it; rows of the trace are rounds over all blocks."""
        context, rounds, program = self._context, self._options.rounds, self._context.problem.stated
        progress = Progress(context, rounds)
        if self._plan.count > 2 * SAMPLE:
            self._sample()
        value, quiet, outcome = np.inf, 0, None
        for number in range(rounds):
            losses = self._shares.workers.losses
            noise = NOISE[0] * (NOISE[1] / NOISE[0]) ** min(number / NOISE_ROUNDS, 1.0)
            self._price("undecided" if number else "all", noise, self._limit)
            before, value = value, self._value()
            # it rises where blocks find a first column: those without one do not count
            little = abs(before - value) < GAINED * self._size(value)
            if losses < self._shares.workers.losses:  # columns were lost and others found in their place
                little = False
            quiet = quiet + 1 if little else 0
            ended = bool(context.budget.over) or quiet == 2
            if number == 0 or ended or number == rounds - 1:
                self._offer(last=number > 0)
            outcome = progress.record(value + program.sign * program.offset)
            if outcome is not None or ended:
                break
        self._hand_on()
        limit = program.sign * value + program.offset
        work = f"{several(self._plan.count, 'block')}, {several(progress.done, 'round')}"
        said = f"template pricing: {work}; no choice of the "
        said += f"columns found is beyond {limit:.8g} (an estimate: other columns may be)"
        reason = outcome.stop_reason if outcome is not None else StopReason.STALLED
        return MethodOutcome(context.over or reason, progress.done, said)

    def _sample(self) -> None:
        """Prices of some blocks under their share of the rows."""
        sample = Sample(self._seed(), SAMPLE / self._plan.count)
        part = sum(sample.size(program.count) for program in self._plan.programs) / self._plan.count
        for _ in range(SAMPLE_ROUNDS):
            self._price(sample, NOISE[0], part * self._limit)

    def _seed(self) -> int:
        return int(self._rng.integers(1 << 31))

    def _price(self, which: Which, noise: float, limit: FloatArray) -> None:
        """New columns of some blocks, and the prices of all columns; once more where a share was lost."""
        seed, sample = self._seed(), which if isinstance(which, Sample) else None

        def of_blocks(prices: FloatArray, tau: float, second: bool) -> Smoothed:
            return self._shares.smoothed(prices, tau, second, sample)

        with self._context.stopwatch.measure("nn"):
            self._shares.price(which, self.prices, noise, self._unit, seed)
        self._undisturbed(partial(self._find_prices, of_blocks, limit))
        self._shares.renew_at(which, self.prices, noise, self._unit, seed)

    def _find_prices(self, of_blocks: Sum, limit: FloatArray) -> None:
        self.prices = best_prices(of_blocks, limit, self.prices, self._unit, self._usual_prices)

    def _undisturbed(self, work: Callable[[], T]) -> T:
        """Once more where a share was lost meanwhile: it was made again with other columns."""
        for _ in range(TRIES):
            losses = self._shares.workers.losses
            made = work()
            if losses == self._shares.workers.losses:
                break
        return made

    def _value(self) -> float:
        """Of the dual over all columns: an estimate of what no point can be below, in minimisation form."""
        return self._shares.value(self.prices) - float(self.prices @ self._limit)

    def _size(self, value: float) -> float:
        """Of the whole: what a relative difference is relative to."""
        return abs(value) + SMALL * self._unit * self._plan.count

    def _offer(self, *, last: bool) -> None:
        point = self._undisturbed(partial(self._choice, last=last))
        if point is not None:
            self._context.incumbent.offer(point, "templates")

    def _choice(self, *, last: bool) -> FloatArray | None:
        """A choice within the rows: each share in its part of the room, then in what others left.

        The last one, and one that misses a row, is mended by a MIP over a few blocks.
        """
        shares, limit = self._shares, self._limit
        if shares.begin() is None:
            return None
        uses = self._filled(shares.serve(self.prices, limit))
        if last or np.any(np.sum(uses, axis=0) > limit + TOLERANCE):
            part = self._context.budget.part(min(CORE_SECONDS, CORE_SHARE * self._context.budget.left))
            with self._context.stopwatch.measure("engine"):
                worth = WORTH * self._size(self._value())
                improve(shares, self.prices, limit, part, self._context.seed, worth=worth)
        return shares.point()

    def _filled(self, uses: list[FloatArray]) -> list[FloatArray]:
        """What is left of the rows: every share its part, then what others left."""
        uses = self._shares.fill(self._rooms(uses))
        for number in range(len(uses)) if len(uses) > 1 else ():
            others = np.sum([use for other, use in enumerate(uses) if other != number], axis=0)
            uses[number] = self._shares.fill_one(number, self._limit - others)
        return uses

    def _rooms(self, uses: list[FloatArray]) -> list[FloatArray]:
        """What each share uses, and its part of what is left."""
        left = self._limit - np.sum(uses, axis=0)
        counts = self._shares.counts
        return [use + left * (count / self._plan.count) for use, count in zip(uses, counts, strict=True)]

    def _hand_on(self) -> None:
        """The columns, for methods that begin with points: one of every block each, the first where it has no
        more."""
        archive = self._context.archive
        if not archive.keeps:
            return
        for place in range(self._shares.places):
            archive.add(self._shares.nth_point(place))
