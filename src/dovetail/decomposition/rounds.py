"""The rounds of pricing over all shares: columns, prices, new columns, and a final choice.

This module depends neither on the source of the blocks nor on the use of the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np

from dovetail.bounds.box import UNIT
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import TOLERANCE
from dovetail.decomposition.choice import choose, lp_prices
from dovetail.decomposition.prices import SMOOTHING, Smoothed, Sum, best_prices, highest
from dovetail.decomposition.proof import RELATIVE
from dovetail.decomposition.share import BlockSample, ShareProof, Which
from dovetail.decomposition.shares import Shares
from dovetail.run.budget import Budget, StopReason
from dovetail.run.work import Stopwatch
from dovetail.structure.components import CouplingSides

SAMPLE, SAMPLE_PART, SAMPLE_ROUNDS, FEWEST_SAMPLED = 2000, 0.25, 3, 1000
"""Number of blocks for the first prices, at most a quarter of all, and rounds over them; with few blocks
this saves nothing. (Customers, n = 2,000: one round over all then finds what takes four without.)"""
BRIEF = 4
"""Descents per block in the first round after a sample's, so that all blocks have columns and an early
choice. (Customers, n = 10,000: 323,321.53 after 4 CPU s, of 323,321.69 after all rounds. With 2 the
columns of 10,000 kilns, with an equation among twelve rows, do not meet the rows after 20 s.)"""
PRICED = 250_000
"""Largest number of blocks that determine the prices between rounds, which are then off by a thousandth. The
last prices use all blocks."""
NOISE, NOISE_ROUNDS = (0.5, 0.15), 8
"""Standard deviation of the logarithm of prices in the first round, the same later, and the number of
rounds between: large changes give diverse columns, small ones good columns."""
CHOICE_SHARE = 0.1
"""Fraction of the time kept for the choice and its check; the first choice shows whether it needs more.
(Customers, n = 100,000, limit 90 s: the last round ended 4 s after the limit, and nothing was chosen.)"""
CORE_SECONDS, CORE_SHARE = 4.0, 0.1
"""Seconds for the MIP over the last few blocks, and largest share of the time left."""
CORE_BLOCKS, CORE_PART, CORE_LEAST = 5_000, 0.25, 1.0
"""From this number of blocks on the MIP takes no more than a part of the time of everything before it, or a
second, if no row is violated. Of 770 potable samples the MIP gains seven (water, n = 2,000); with n =
10,000 four seconds won none of 3,901 through 2x16. Through 64x512, searched in bfloat16, it is 4,924 with
one second and 4,929 with four; in float32 4,933 with either."""
GAINED, SMALL = 4e-4, 1e-2
"""Relative: a round that lowers the dual's value by less brought little. The stake of all blocks counts with
the second factor, in case the objective is near 0."""
WORTH = 1e-5
"""Relative: the MIP over the last few blocks ignores smaller gains."""
TRIES = 3
"""Number of attempts after a lost share; the last result is used as it is."""

TRIED, TRIAL_PART, EARLY_PART = 16, 2.5, 0.25
"""Number of blocks in the trial that shows whether branching ends; with nine continuous coordinates it
does not end. The largest time for that relative to the search, after it and between its rounds: of five
families with 60 and 400 blocks it takes 2.1 at most where branching ends; of 100 blocks through 6x128 it
took 30 CPU s, after a search of 1.9."""
PROVED, WORTH_PROVING = 200, 20
"""Blocks that are drawn by chance and proved: their standard error is about 0.005 % of the objective. With so
many times as many blocks this takes less than another round, which it may save: a proof of a block takes up
to eleven times as long as its columns (dose)."""
WIDEST, SAMPLE_TIME = 1e-3, 0.25
"""Once the standard error is at most this fraction of the objective, no more blocks are drawn after this
fraction of the time of the search. (Two outputs of a tanh network, three inputs, n = 2,000: 32 blocks take
1.3 CPU s, with a standard error of 0.03 % of the objective; 200 blocks 6.9 s, 0.005 %.)"""
UNSEEN = 1e-2
"""Relative to the objective of an average block: an allowance for blocks that the sample does not show. Few
blocks contribute most of the loss, so that the spread of a sample alone is too small in one case of ten
(dose: one block of fifty loses 0.4 %)."""
BLOCK_GAP, MOST_BOXES = 2e-4, 400
"""Relative to the objective of an average block: tolerance of its least cost; and number of boxes for
each."""
PROOF_PART = 1.0
"""All blocks are proved if the last blocks of the sample say that this takes no more than so much of the time
left."""

T = TypeVar("T")


@dataclass(frozen=True)
class DualBound:
    """A bound on all points, in minimisation form and without constants: proved, or an estimate."""

    value: float
    error: float | None
    """One standard error; None if the bound is proved for all blocks."""
    blocks: int
    """Number of blocks examined: a random sample, or all."""
    closed: int
    """Number of these whose least cost is known to the tolerance."""
    prices: FloatArray
    better: bool = False
    """Whether columns were found on the way that are cheaper: another choice may be better."""


@dataclass(frozen=True)
class Round:
    """The result of a round."""

    number: int
    value: float
    """Value of the dual over all columns: an estimate of the bound, in minimisation form."""
    last: bool
    over: StopReason | None
    """Why there is no time for another round."""


@dataclass(eq=False)
class _SampleProof:
    """The proof of some blocks of a sample."""

    sample: BlockSample
    known: float
    """The value of all columns before the proof."""
    found: list[ShareProof] = field(default_factory=list)
    seconds: float = 0.0
    pace: float = math.inf
    """Seconds for each of the blocks that were proved last: the more at once, the fewer."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return sum(part.blocks for part in self.found)

    @property
    def ends(self) -> bool:
        """Whether the proofs of at least half of the blocks end."""
        return 2 * sum(part.closed for part in self.found) >= self.blocks > 0


class Rounds:
    """The rounds of one problem: `sides` of the coupling rows, `totals` the numbers of blocks of each
    template."""

    def __init__(
        self,
        shares: Shares,
        sides: CouplingSides,
        totals: Sequence[int],
        budget: Budget,
        stopwatch: Stopwatch,
        seed: int,
    ) -> None:
        self._shares, self._sides, self._limit, self._totals = shares, sides, sides.limit, totals
        self._budget, self._stopwatch, self._seed = budget, stopwatch, seed
        self._rng = np.random.default_rng(seed)
        self._search = budget.part((1.0 - CHOICE_SHARE) * budget.left)
        """The part of the budget for columns; the rest is for the choice."""
        self._unit = shares.stake
        usual = shares.usual_use
        self._usual_prices: FloatArray = np.where(usual > 0.0, self._unit / np.maximum(usual, 1e-300), 0.0)
        self.prices = self._last = self._usual_prices
        self._ends = False
        """Whether branching ends in time."""
        self._tried = self._pace = 0.0
        """Seconds in which that was found out, in vain; and of the proof of a block."""
        self._choosing = 0.0
        """Seconds of the last choice."""
        self._proof: _SampleProof | None = None
        """The proof at the current prices and columns."""

    @property
    def count(self) -> int:
        """Number of all blocks."""
        return sum(self._totals)

    def all(self, most: int, before_others: int | None = None) -> Iterator[Round]:
        """Prices from a sample, then rounds over all blocks, until two in a row gain little, or a proof of
        some blocks shows that the possible gain is small. If branching does not end, another proof may wait
        for the prices: `before_others` rounds must do for that."""
        if self.count >= FEWEST_SAMPLED:
            self._sample()
        value, quiet, brief = np.inf, 0, self.count > SAMPLE / SAMPLE_PART
        for number in range(most):
            losses, begun = self._shares.workers.losses, self._budget.seconds
            noise = NOISE[0] * (NOISE[1] / NOISE[0]) ** min(number / NOISE_ROUNDS, 1.0)
            which: Which = "undecided" if number > brief else "all"
            self._price(which, noise, self._limit, BRIEF if brief and number == 0 else None)
            before, value = value, self._value()
            # the value rises if blocks find a first column: blocks without a column do not count
            little = abs(before - value) < GAINED * self._size(value)
            if losses < self._shares.workers.losses:  # columns were lost and others found instead
                little = False
            quiet = quiet + 1 if little else 0
            little_time = self._little_time(self._budget.seconds - begun)
            over = self._search.over or (StopReason.TIME if little_time else None)
            last = bool(over) or quiet == 2 or number == most - 1 or self._little_left(value)
            if not last and number + 1 == before_others:
                self._try_branching(TRIAL_PART)
                last = not self._ends
            if last and self.count > PRICED:
                self._price_exactly()
                value = self._value()
            yield Round(number, value, last, over)
            if last:
                return

    def more(self, most: int) -> None:
        """At most so many further rounds over all blocks, until two in a row gain little. Prices are those of
        the LP over all columns if blocks are few."""
        self._search = self._budget.part((1.0 - CHOICE_SHARE) * self._budget.left)
        value, quiet = self._value(), 0
        for number in range(most):
            if quiet == 2 or self._search.over:
                break
            self._price("all", NOISE[number % 2], self._limit)
            before, value = value, self._value()
            quiet = quiet + 1 if abs(before - value) < GAINED * self._size(value) else 0

    def _lp_prices(self) -> FloatArray | None:
        return lp_prices(self._shares, self.prices, self._limit, highest(self._usual_prices), self._budget)

    @property
    def unit(self) -> float:
        """The cost of a typical column."""
        return self._unit

    def bound(self) -> DualBound | None:
        """The bound at the last prices: proved for all blocks if there is time, otherwise an estimate from
        random blocks; None if branching does not end. Better points become columns; after a proof of all
        blocks prices are computed again."""
        before = self._value()
        self._try_branching(TRIAL_PART)
        proof = self._sample_proof(self._search)
        if proof is None:
            return None
        expected = proof.pace * self.count
        every = proof.found if proof.blocks == self.count else None
        if every is None and expected <= PROOF_PART * self._search.left:
            every = self._prove("all", MOST_BOXES)
        found = self._estimated(proof) if every is None else self._proved(every)
        if every is not None:
            self._price_exactly()
        return replace(found, better=self._value() < before)

    def _little_time(self, round_seconds: float) -> bool:
        """Whether another round would leave no time for a choice and the proof of a sample, if branching
        ends."""
        if self._search.left < self._budget.seconds:
            self._try_branching(EARLY_PART)
        for_proof = min(PROVED * self._pace, SAMPLE_TIME * self._budget.seconds)
        return self._ends and self._search.left < round_seconds + self._choosing + for_proof

    def _little_left(self, value: float) -> bool:
        """Whether a quick proof of some blocks shows that new columns bring little."""
        if self.count < WORTH_PROVING * PROVED or not np.isfinite(value):
            return False
        self._try_branching(EARLY_PART)
        proof = self._sample_proof(self._search.part(EARLY_PART * self._budget.seconds))
        if proof is None:
            return False
        about = self._estimated(proof)
        return value - about.value + (about.error or 0.0) < GAINED * self._size(value)

    def _try_branching(self, part: float) -> None:
        """Find out by a few blocks whether branching ends, in a part of the time of the search."""
        if self._ends:
            return
        begun = self._budget.seconds
        proof = self._begun_proof()
        left = self._search.part(part * (begun - self._tried) - self._tried)
        self._extend(proof, TRIED, left)
        self._tried += self._budget.seconds - begun
        self._ends, self._pace = proof.ends, proof.pace
        self._proof = proof if self._ends and not left.over else None

    def _sample_proof(self, budget: Budget) -> _SampleProof | None:
        """The proof of random blocks at the current prices, until their standard error is small; None if
        branching does not end."""
        if not self._ends:
            return None
        proof, begin = self._proof or self._begun_proof(), self._budget.seconds
        self._proof, most = proof, min(PROVED, self.count)
        while proof.blocks < most and not self._suffices(proof, begin):
            self._pace, before = min(self._pace, proof.pace), proof.blocks
            more = min(max(TRIED, before), int(budget.left / max(self._pace, 1e-9)))
            if proof.blocks and more < TRIED:
                break
            self._extend(proof, more, budget)
            if proof.blocks == before:
                break
        return proof if proof.ends else None

    def _suffices(self, proof: _SampleProof, begin: float) -> bool:
        """Whether a larger sample is not worth its time, after a search of so many seconds."""
        if self.count <= PROVED or proof.seconds < SAMPLE_TIME * begin or not proof.blocks:
            return False
        return (self._estimated(proof).error or 0.0) <= WIDEST * self._size(proof.known)

    def _begun_proof(self) -> _SampleProof:
        """A sample, of which nothing is proved, at the current prices."""
        return _SampleProof(BlockSample(self._chance(), min(PROVED / self.count, 1.0)), self._value())

    def _extend(self, proof: _SampleProof, blocks: int, budget: Budget) -> None:
        """Prove so many further blocks of its sample."""
        begun, size = self._budget.seconds, self._sampled(proof.sample)
        part = proof.sample.of(proof.blocks / size, min(1.0, (proof.blocks + blocks) / size))
        found, before = self._prove(part, MOST_BOXES, budget), proof.blocks
        if budget.over and proof.found:
            found = []  # the last blocks were left half-way
        elif found is None:  # a block has no bound
            proof.found.clear()
        proof.found += found or []
        took = self._budget.seconds - begun
        proof.seconds += took
        if proof.blocks > before:
            proof.pace = took / (proof.blocks - before)

    def _prove(self, which: Which, boxes: int, budget: Budget | None = None) -> list[ShareProof] | None:
        """The proof of some blocks; None if one has no bound."""
        room = BLOCK_GAP * self._size(self._value()) / self.count
        parts = self._shares.prove(which, self.prices, room, boxes, self._unit, budget or self._search)
        known = [part for part in parts if part is not None and math.isfinite(part.lower)]
        return known if len(known) == len(parts) else None

    def _proved(self, found: list[ShareProof]) -> DualBound:
        """The bound by weak duality; rows may be violated within tolerances, and limits are rounded."""
        terms = [part.lower for part in found] + (-self.prices * self._limit).tolist()
        room = TOLERANCE + RELATIVE * np.abs(self._limit)
        value = math.fsum(terms) - float(self.prices @ room) - 4.0 * UNIT * float(np.abs(terms).sum())
        closed = sum(part.closed for part in found)
        return DualBound(value, None, self.count, closed, self.prices)

    def _estimated(self, proof: _SampleProof) -> DualBound:
        """The value of the columns found, less the gap of each template's sample."""
        found, known = proof.found, proof.known
        value, variance, unseen = known, 0.0, UNSEEN * self._size(known) / self.count
        for template, total in enumerate(self._totals):
            parts = [part for part in found if part.template == template]
            blocks = sum(part.blocks for part in parts)
            mean = sum(part.more for part in parts) / blocks
            apart = sum(part.squares for part in parts) / blocks - mean**2
            value -= total * mean
            left = 1.0 - blocks / total
            variance += total**2 * left * (max(apart, 0.0) / max(blocks - 1, 1) + (unseen / blocks) ** 2)
        asked, closed = (sum(getattr(part, name) for part in found) for name in ("blocks", "closed"))
        return DualBound(value, math.sqrt(variance), asked, closed, self.prices)

    def _of_all(self, prices: FloatArray, tau: float, second: bool) -> Smoothed:
        return self._shares.smoothed(prices, tau, second, None)

    def _price_exactly(self) -> None:
        """Prices over all blocks, beginning with those of some."""
        self.undisturbed(partial(self._find_prices, self._of_all, self._limit, SMOOTHING[-1:]))

    def _sample(self) -> None:
        """Prices of some blocks with their share of the limits."""
        sample = BlockSample(self._chance(), min(SAMPLE / self.count, SAMPLE_PART))
        for _ in range(SAMPLE_ROUNDS):
            self._price(sample, NOISE[0], self._sampled(sample) / self.count * self._limit)

    def _sampled(self, sample: BlockSample) -> int:
        """The blocks of a sample."""
        return sum(sample.size(total) for total in self._totals)

    def _chance(self) -> int:
        return int(self._rng.integers(1 << 31))

    def _price(self, which: Which, noise: float, limit: FloatArray, most: int | None = None) -> None:
        """New columns of some blocks, by `most` descents of each, and the prices of all columns; repeated if
        a share was lost."""
        self._proof = None
        seed, sample = self._chance(), which if isinstance(which, BlockSample) else None
        if sample is None and self.count > PRICED:
            sample = BlockSample(self._seed, PRICED / self.count)
            limit = limit * (self._sampled(sample) / self.count)

        def of_blocks(prices: FloatArray, tau: float, second: bool) -> Smoothed:
            return self._shares.smoothed(prices, tau, second, sample)

        with self._stopwatch.measure("nn"):
            asked = np.stack([self.prices, self._last]), noise, self._unit, seed, self._search
            self._shares.price(which, *asked, most)
        self._last = self.prices
        self.undisturbed(partial(self._find_prices, of_blocks, limit))
        asked = np.stack([self.prices, self._last]), noise, self._unit, seed, self._search
        self._shares.renew_at(which, *asked)

    def _find_prices(self, of_blocks: Sum, limit: FloatArray, smoothing: Sequence[float] = SMOOTHING) -> None:
        best = self._lp_prices() if self.count < FEWEST_SAMPLED else None
        if best is None:
            best = best_prices(of_blocks, limit, self.prices, self._unit, self._usual_prices, smoothing)
        self.prices = self._sides.apart(best)

    def undisturbed(self, work: Callable[[], T]) -> T:
        """Repeat work during which a share was lost and replaced."""
        for _ in range(TRIES):
            losses = self._shares.workers.losses
            made = work()
            if losses == self._shares.workers.losses:
                break
        return made

    def _value(self) -> float:
        return self._shares.value(self.prices) - float(self.prices @ self._limit)

    def _size(self, value: float) -> float:
        """The size that relative differences refer to."""
        return abs(value) + SMALL * self._unit * self.count

    def choose(self, *, last: bool) -> bool:
        """A choice within the rows; False if a block has no column. The last choice solves a MIP over a few
        blocks, earlier ones only if rows are violated without it."""
        most, before = CORE_SECONDS, self._budget.seconds
        if self.count >= CORE_BLOCKS:
            most = min(most, max(CORE_LEAST, CORE_PART * self._budget.seconds))
        part = self._budget.part(min(most, max(CORE_SHARE * self._budget.left, CORE_LEAST)))
        worth = WORTH * self._size(self._value())
        with self._stopwatch.measure("engine"):
            made = choose(
                self._shares, self.prices, self._limit, highest(self._usual_prices), self._budget, part,
                worth=worth, rough=not last,
            )  # fmt: skip
        self._choosing = self._budget.seconds - before
        self._search = self._search.part(max(0.0, self._budget.left - self._choosing))
        return made
