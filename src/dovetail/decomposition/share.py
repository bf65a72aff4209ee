"""A share of the blocks: a shard, and the choice among its columns. All that a run asks of it is here.

Arguments and answers are small, whatever the number of blocks, but for the answer itself (`chosen`, `nth`)
and `least_costs`: a share may live in another process.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import torch

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.decomposition.choice import ColumnChoice, CoreColumns, Slopes
from dovetail.decomposition.move_program import MoveProgram
from dovetail.decomposition.pool import SomeColumns
from dovetail.decomposition.prices import Smoothed, exact_value, smoothed
from dovetail.decomposition.shard import PricingOptions, Shard
from dovetail.run.budget import Budget
from dovetail.run.guard import arrived
from dovetail.structure.templates import Places

HOPELESS = 1.0
"""In units of a usual column's cost, and of how far prices are shaken: a block whose best other column costs
so much more than its first is not asked again. (Water, 6x128: of 1,157 blocks where it cost half a unit more
none won anything at the next prices.)"""


@dataclass(frozen=True)
class Usual:
    """What is usual in a share, before anything is priced."""

    count: int
    stake: float
    use: FloatArray
    """(R,)."""
    places: int
    """Columns that a block may have."""
    steerable: BoolArray
    """(R,) sides that small steps from them can serve."""


@dataclass(frozen=True)
class Range:
    """Where the blocks of a share are: of which template, from where to before where, of how many."""

    template: int
    first: int
    last: int
    total: int


@dataclass(frozen=True)
class BlockSample:
    """Some blocks of every template, always the same ones, however they are shared out."""

    seed: int
    part: float
    """Of all blocks."""

    def size(self, total: int) -> int:
        """Blocks of a template of so many."""
        return max(1, round(self.part * total))

    def within(self, where: Range) -> IntArray:
        """Those of a share, as it counts them."""
        drawn = np.random.default_rng(self.seed).choice(where.total, self.size(where.total), replace=False)
        return drawn[(drawn >= where.first) & (drawn < where.last)] - where.first


Which = BlockSample | Literal["all", "undecided"]
Column = tuple[np.ndarray, np.ndarray]
"""(n, k) moves and (n, q) outputs, as the search has them."""


@dataclass(frozen=True)
class ShareProof:
    """What was proved of some blocks of a share."""

    template: int
    blocks: int
    lower: float
    """The sum of their least costs, from below."""
    more: float
    """By how much the costs of their best columns are more than that, in all."""
    squares: float
    closed: int
    """Blocks whose least cost is known to the tolerance."""
    boxes: int


class Share:
    """See above."""

    def __init__(self, shard: Shard, where: Range) -> None:
        self._shard, self._where = shard, where
        self._begun: ColumnChoice | None = None
        self._sampled = cache(lambda sample: sample.within(where))
        self._sampled_columns: tuple[BlockSample, SomeColumns] | None = None
        """Of the last sample, until they change."""

    def usual(self) -> Usual:
        """For the first prices."""
        shard = self._shard
        return Usual(
            shard.count, shard.stake, shard.usual_use, int(shard.pool.cost.shape[1]), shard.steerable
        )

    def price(
        self, which: Which, anchors: FloatArray, noise: float, unit: float, seed: int, budget: Budget
    ) -> None:
        """Ask blocks for columns at the first of the prices; with the same seed all shares shake prices
        alike."""
        self._sampled_columns = None
        blocks = self._blocks(which, anchors[0], HOPELESS * noise * unit)
        self._shard.price(blocks, anchors, noise, unit, np.random.default_rng(seed), budget)

    def _blocks(self, which: Which, prices: FloatArray, border: float) -> IntArray:
        if isinstance(which, BlockSample):
            return np.asarray(self._sampled(which))
        return self._shard.undecided(prices, border) if which == "undecided" else np.arange(self._shard.count)

    def smoothed(self, prices: FloatArray, tau: float, second: bool, sample: BlockSample | None) -> Smoothed:
        """The dual's sum over the blocks."""
        pool = self._shard.pool
        return smoothed(pool if sample is None else self._columns_of(sample), prices, tau, second=second)

    def _columns_of(self, sample: BlockSample) -> SomeColumns:
        """Picked once for all steps that look for prices."""
        if self._sampled_columns is None or self._sampled_columns[0] != sample:
            which = torch.as_tensor(self._sampled(sample), device=self._shard.data.device)
            self._sampled_columns = sample, self._shard.pool.some(which)
        return self._sampled_columns[1]

    def value(self, prices: FloatArray) -> float:
        """The same, not smoothed."""
        return exact_value(self._shard.pool, prices)

    def least_costs(self, prices: FloatArray) -> np.ndarray:
        """(n,) what the cheapest column of each block costs at the prices."""
        priced = self._shard.pool.priced(torch.as_tensor(prices, device=self._shard.data.device))
        return np.asarray(priced.min(dim=1).values.cpu().numpy())

    def prove(
        self, which: Which, prices: FloatArray, tolerance: float, most: int, unit: float, budget: Budget
    ) -> ShareProof | None:
        """Least costs of some blocks at the prices (`proof`); better points that are met become columns."""
        self._sampled_columns = None
        blocks = self._blocks(which, prices, 0.0)
        found = self._shard.prove(blocks, prices, tolerance, most, unit, budget)
        if found is None:
            return None
        known, bounds = found
        more = (known - bounds.lower).cpu().numpy()
        return ShareProof(
            self._where.template, len(blocks), math.fsum(bounds.lower.tolist()), float(more.sum()),
            float((more**2).sum()), int(bounds.closed.sum()), bounds.boxes,
        )  # fmt: skip

    def begin(self, prices: FloatArray, lasting: bool) -> tuple[FloatArray, bool]:
        """The cheapest columns at the prices: what they use, and whether every block has one."""
        self._begun = ColumnChoice(self._shard, prices, lasting=lasting)
        return self._begun.use, self._begun.complete

    @property
    def _choice(self) -> ColumnChoice:
        if self._begun is None:  # made again in the middle of a choice
            self._begun = ColumnChoice(self._shard, np.zeros(self._shard.data.sides))
        return self._begun

    def nearest(self, most: int) -> FloatArray:
        """(R, at most `most`) the least margins of blocks for each side."""
        found = self._choice.margins()
        return found.topk(min(most, len(found)), dim=0, largest=False).values.T.cpu().numpy()

    def core(self, border: FloatArray, most: int) -> CoreColumns:
        """Columns of blocks with a margin within the border of some side."""
        return self._choice.core(border, most)

    def used(self) -> FloatArray:
        """By the choice."""
        return self._choice.use

    def put(self, blocks: IntArray, places: IntArray) -> FloatArray:
        """Other columns for some blocks; what is used then."""
        return self._choice.put(blocks, places)

    def slopes(self, most: int, reach: float) -> Slopes:
        """Of some blocks as they are."""
        return self._choice.slopes(most, reach)

    def step(self, blocks: IntArray, steps: FloatArray) -> FloatArray:
        """Move some blocks; what is used then."""
        return self._choice.step(blocks, steps)

    def chosen(self) -> Column:
        """The answer, outputs by the owners' own predictors: other columns may follow from them."""
        moves, outputs = self._choice.moves, self._choice.outputs
        return moves.cpu().numpy(), outputs.cpu().numpy()

    def write(self, z: torch.Tensor, places: Places) -> bool:
        """The answer into a point on the device of the columns; False where blocks cannot be asked there. It
        is for shares of this process."""
        choice = self._choice
        return self._shard.write(choice.moves, choice.outputs, z, places, self._where.first)

    def in_words(self) -> str:
        """How it is priced on a GPU; "" on a CPU."""
        return self._shard.in_words

    def nth(self, place: int) -> Column:
        """This column of every block, the first where it has no so many."""
        moves, outputs = self._shard.column(self._shard.everyone, self._shard.nth(place))
        return moves.cpu().numpy(), outputs.cpu().numpy()


def make_share(
    program: MoveProgram,
    where: Range,
    blocks: list[Block],
    options: PricingOptions,
    device: str,
    spread: FloatArray,
) -> Share:
    """The recipe of a share; `spread` is that of its whole template (see `usual_spread`)."""
    return Share(Shard(program, [arrived(block) for block in blocks], options, device, spread), where)
