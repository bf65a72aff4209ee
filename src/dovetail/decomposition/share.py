"""A share of the blocks: a shard, and the choice among its columns.

Arguments and results are small, whatever the number of blocks, except for points (`add`, `chosen`)
and `least_costs`, because a share may be in another process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.mip import HAIR
from dovetail.decomposition.move_program import MoveProgram
from dovetail.decomposition.pool import BlockColumns
from dovetail.decomposition.prices import Smoothed, exact_value, smoothed
from dovetail.decomposition.shard import PricingOptions, Shard, Slopes
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import LinearProgram
from dovetail.run.budget import Budget
from dovetail.run.guard import arrived
from dovetail.structure.templates import Places

HOPELESS = 1.0
"""In units of a typical column's cost, and of the perturbation of prices: a block whose best other column
costs more than its first by this is not searched again. (Water, 6x128: of 1,157 such blocks none gained
anything at the next prices.)"""


PIECE = 1 << 18
"""Number of blocks whose columns are compared at a time."""
ROUNDS = 3
"""Rounds of confirmation: a refused column is replaced by the next best."""
WIDER = 2.0
"""Factor on the margin of the core: columns that need a larger change of a price are left out."""
CHOICE = ("_lasting", "_priced", "_place", "_moves", "_outputs", "_own_use", "_frozen")
"""The fields of a choice that describe its blocks; in float64."""


@dataclass(frozen=True)
class UsualSizes:
    """Usual sizes in a share, before pricing."""

    count: int
    stake: float
    use: FloatArray
    """(R,)."""
    steerable: BoolArray
    """(R,) sides that small steps can change."""


@dataclass(frozen=True)
class Range:
    """The blocks of a share: template, first and last block, and number of blocks."""

    template: int
    first: int
    last: int
    total: int


@dataclass(frozen=True)
class BlockSample:
    """A fixed random sample of blocks of every template, independent of shares."""

    seed: int
    part: float
    """Fraction of all blocks."""
    taken: tuple[float, float] = (0.0, 1.0)
    """Which of these in their random order, as fractions."""

    def of(self, first: float, last: float) -> BlockSample:
        """The sampled blocks between two fractions of them; parts do not overlap."""
        return replace(self, taken=(first, last))

    def size(self, total: int) -> int:
        """Number of sampled blocks of a template."""
        return max(1, round(self.part * total))

    def within(self, where: Range) -> IntArray:
        """The sampled blocks in a share, by its own numbers."""
        size = self.size(where.total)
        drawn = np.random.default_rng(self.seed).choice(where.total, size, replace=False)
        first, last = (math.ceil(part * size - HAIR) for part in self.taken)
        drawn = drawn[first:last]
        return drawn[(drawn >= where.first) & (drawn < where.last)] - where.first


Which = BlockSample | Literal["all", "undecided"]
Column = tuple[np.ndarray, np.ndarray]
"""(n, k) moves and (n, q) outputs, in the precision of the search."""


@dataclass(frozen=True, eq=False)
class CoreColumns:
    """Columns of some blocks of a shard, concatenated, and the use of all its other blocks."""

    block: IntArray
    place: IntArray
    cost: FloatArray
    use: FloatArray
    """(columns, R)."""
    chosen: BoolArray
    """Whether the column is the current one of its block."""
    kept: FloatArray
    """(R,)."""


@dataclass(frozen=True)
class ShareProof:
    """The proof of some blocks of a share."""

    template: int
    blocks: int
    lower: float
    """A lower bound of the sum of their least costs."""
    more: float
    """The total difference of the costs of the best columns from these bounds."""
    squares: float
    closed: int
    """Number of blocks whose least cost is known to the tolerance."""
    boxes: int


class Share:
    """A share of the blocks with the choice among its columns."""

    def __init__(self, shard: Shard, where: Range) -> None:
        self._shard, self._where = shard, where
        self._sampled = cache(lambda sample: sample.within(where))
        self._sampled_columns: tuple[BlockSample, BlockColumns] | None = None
        """The columns of the last sample, until they change."""

    def usual(self) -> UsualSizes:
        """Usual sizes, for the first prices."""
        shard = self._shard
        return UsualSizes(shard.count, shard.stake, shard.usual_use, shard.steerable)

    def price(
        self, which: Which, anchors: FloatArray, noise: float, unit: float, seed: int, budget: Budget,
        most: int | None = None,
    ) -> None:  # fmt: skip
        """Search columns at the first of the prices; with the same seed all shares perturb prices alike."""
        self._sampled_columns = None
        blocks = self._blocks(which, anchors[0], HOPELESS * noise * unit)
        self._shard.price(blocks, anchors, noise, unit, np.random.default_rng(seed), budget, most)

    def _blocks(self, which: Which, prices: FloatArray, border: float) -> IntArray:
        if isinstance(which, BlockSample):
            return np.asarray(self._sampled(which))
        return self._shard.undecided(prices, border) if which == "undecided" else np.arange(self._shard.count)

    def smoothed(self, prices: FloatArray, tau: float, second: bool, sample: BlockSample | None) -> Smoothed:
        """The smoothed sum over the blocks."""
        pool = self._shard.pool
        return smoothed(pool if sample is None else self._columns_of(sample), prices, tau, second=second)

    def _columns_of(self, sample: BlockSample) -> BlockColumns:
        """The columns of a sample, copied once for all steps of the price search."""
        if self._sampled_columns is None or self._sampled_columns[0] != sample:
            which = torch.as_tensor(self._sampled(sample), device=self._shard.data.device)
            self._sampled_columns = sample, self._shard.pool.some(which)
        return self._sampled_columns[1]

    def value(self, prices: FloatArray) -> float:
        """The sum without smoothing."""
        return exact_value(self._shard.pool, prices)

    def least_costs(self, prices: FloatArray) -> np.ndarray:
        """(n,) the cost of the cheapest column of each block at the prices."""
        priced = self._shard.pool.priced(torch.as_tensor(prices, device=self._shard.data.device))
        return np.asarray(priced.min(dim=1).values.cpu().numpy())

    def prove(
        self, which: Which, prices: FloatArray, tolerance: float, most: int, unit: float, budget: Budget
    ) -> ShareProof | None:
        """Prove least costs of some blocks at the prices (`proof`); better points become columns."""
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

    def add(self, columns: FloatArray, prices: FloatArray, unit: float) -> None:
        """Descents from the (n, S, c) local columns of points, added as columns of the pool."""
        self._sampled_columns = None
        shard, (n, count, _) = self._shard, columns.shape
        which = shard.everyone.repeat_interleave(count)
        moves = torch.as_tensor(shard.program.moves_of(columns), device=which.device).flatten(0, 1)
        moves = shard.data.within(which, moves)
        slopes = shard.slopes(which, moves, shard.outputs(which, moves), np.inf)
        steps = shortest_steps([slopes.without_rows], np.zeros(0), np.zeros(0), Budget())
        moves = moves if steps is None else moves + torch.as_tensor(steps[0][1], device=which.device)
        at = torch.as_tensor(prices, device=which.device)
        shard.add(shard.everyone, moves.view(n, count, -1), at, unit)

    def begin(self, prices: FloatArray, lasting: bool = True) -> tuple[FloatArray, bool]:
        """Choose the cheapest columns at the prices: their use, and whether every block has a valid one. In
        a `lasting` choice invalid columns are removed from the pool."""
        shard, everyone = self._shard, self._shard.everyone
        self._lasting = lasting
        self._priced = shard.pool.priced(torch.as_tensor(prices, device=shard.data.device)).double()
        self._place = self._priced.argmin(dim=1)
        self._moves, self._outputs = shard.column(everyone, self._place)
        self._own_use = self._moves.new_zeros((shard.count, shard.data.sides))
        self._frozen = torch.zeros_like(self._place, dtype=torch.bool)
        asked = everyone
        for _ in range(ROUNDS):
            holds = self._put(asked, self._place[asked])
            asked = asked[~holds]
            if not len(asked):
                break
            self._priced[asked, self._place[asked]] = torch.inf
            self._place[asked] = self._priced[asked].argmin(dim=1)
        complete = torch.isfinite(self._priced.gather(1, self._place[:, None])).all()
        return self.used(), bool(complete)

    def __getattr__(self, name: str) -> Any:
        """A share that was replaced during a choice starts the choice again."""
        if name not in CHOICE:
            raise AttributeError(name)
        self.begin(np.zeros(self._shard.data.sides))
        return self.__dict__[name]

    def _put(self, blocks: Tensor, places: Tensor) -> Tensor:
        """Set columns of blocks; whether they are valid."""
        shard = self._shard
        holds, outputs, parts = shard.confirm(blocks, places, lasting=self._lasting)
        self._place[blocks], self._outputs[blocks] = places, outputs
        self._moves[blocks] = shard.column(blocks, places)[0]
        self._own_use[blocks] = shard.data.true_uses(blocks, parts)
        return holds

    def used(self) -> FloatArray:
        """(R,) use of all blocks."""
        return np.asarray(self._own_use.sum(dim=0).cpu().numpy())

    def put(self, blocks: IntArray, places: IntArray) -> FloatArray:
        """Set other columns for some blocks; the use of all afterwards."""
        device = self._place.device
        self._put(torch.as_tensor(blocks, device=device), torch.as_tensor(places, device=device))
        return self.used()

    def margins(self) -> Tensor:
        """(N, R) the smallest change of a side's price at which a block chooses another column; infinite if
        all columns of the block use the side equally.

        The cost between two columns alone would not do: two that hardly differ are close at any prices.
        Without this rule the nearest 4,000 of 100,000 customers were blocks whose change had no effect on any
        row.
        """
        parts = self._shard.everyone.split(PIECE)  # type: ignore[no-untyped-call]
        return torch.cat([self._changes(part).amin(dim=1) for part in parts])

    def _changes(self, blocks: Tensor) -> Tensor:
        """(n, K, R) the change of each side's price that makes a block choose each column."""
        own, use = self._place[blocks, None], self._shard.pool.use[blocks]
        beyond = self._priced[blocks] - self._priced[blocks].gather(1, own)
        apart = (use - use.gather(1, own[:, :, None].expand(-1, -1, use.shape[2]))).abs()
        change = beyond.to(use.dtype).clamp(min=0.0)[:, :, None] / apart
        return torch.where((apart > 0.0) & torch.isfinite(change), change, torch.inf)

    def nearest(self, most: int) -> FloatArray:
        """(R, at most `most`) the smallest margins of blocks for each side."""
        found = self.margins()
        return found.topk(min(most, len(found)), dim=0, largest=False).values.T.cpu().numpy()

    def core(self, border: FloatArray, most: int) -> CoreColumns:
        """All columns of the `most` blocks nearest to indifference for each side that need no much larger
        change of price."""
        shard, margin = self._shard, self.margins()
        borders = torch.as_tensor(border, dtype=margin.dtype, device=margin.device)
        nearest = margin.topk(min(most, len(margin)), dim=0, largest=False)
        near = torch.isfinite(nearest.values) & (nearest.values <= borders)
        mine: Tensor = torch.unique(nearest.indices[near])
        own = self._place[mine, None]
        changes = self._changes(mine)
        near = ((changes <= WIDER * borders) & torch.isfinite(changes)).any(dim=2)
        near &= torch.isfinite(self._priced[mine])
        near.scatter_(1, own, torch.ones_like(own, dtype=torch.bool))
        at, column = near.nonzero(as_tuple=True)
        holds, _, parts = shard.confirm(mine[at], column, lasting=self._lasting)
        stays = self._place[mine[at]] == column
        kept = holds | stays
        block, column, parts = mine[at[kept]], column[kept], parts[kept]
        cost, use = shard.data.true_costs(block, parts), shard.data.true_uses(block, parts)
        others = self.used() - self._own_use[mine].sum(dim=0).cpu().numpy()
        numbers = [array.cpu().numpy() for array in (block, column, cost, use)]
        return CoreColumns(numbers[0], numbers[1], numbers[2], numbers[3], stays[kept].cpu().numpy(), others)

    def slopes(self, most: int, reach: float) -> Slopes:
        """Of `most` random blocks with continuous coordinates: the effect of steps of at most `reach`
        typical moves. Nothing for blocks with classes, which a step may change."""
        shard = self._shard
        usable = ~self._frozen & bool(shard.steerable.any())
        mine = usable.nonzero().ravel()
        chance = torch.Generator().manual_seed(0)
        mine = mine[torch.randperm(len(mine), generator=chance)[:most].to(mine.device)].sort().values
        found = shard.slopes(mine, self._moves[mine], self._outputs[mine], reach)
        return replace(found, least=np.minimum(found.least, 0.0))

    def step(self, blocks: IntArray, steps: FloatArray) -> FloatArray:
        """Move some blocks; those that violate a condition stay, permanently. The use of all afterwards."""
        shard, data = self._shard, self._shard.data
        mine = torch.as_tensor(blocks, device=self._place.device)
        moves = data.within(mine, self._moves[mine] + torch.as_tensor(steps, device=self._place.device))
        holds, outputs = shard.owners.confirmed(mine, moves, None)
        self._frozen[mine[~holds]] = True
        mine, moves, outputs = mine[holds], moves[holds], outputs[holds]
        self._moves[mine], self._outputs[mine] = moves, outputs
        self._own_use[mine] = data.true_uses(mine, data.parts(moves, outputs))
        return self.used()

    def chosen(self) -> Column:
        """The answer, with outputs by the owners' predictors."""
        return self._moves.cpu().numpy(), self._outputs.cpu().numpy()

    def write(self, z: torch.Tensor, places: Places) -> None:
        """Write the answer into a point; for shares in this process."""
        self._shard.owners.write(self._moves, self._outputs, z, places, self._where.first)

    def in_words(self) -> str:
        """How pricing runs on a GPU; "" on a CPU."""
        return self._shard.in_words


def shortest_steps(
    parts: Sequence[Slopes], left: FloatArray, highest: FloatArray, budget: Budget
) -> list[tuple[IntArray, FloatArray]] | None:
    """The shortest steps within the remaining limits, which may be violated at the highest prices."""
    length, lower, upper = (
        np.concatenate([getattr(part, name).ravel() for part in parts])
        for name in ("length", "lower", "upper")
    )
    if not len(length):
        return None
    use = np.concatenate(
        [part.use.transpose(1, 0, 2).reshape(len(left), part.length.size) for part in parts], axis=1
    )
    own = sp.block_diag([one for part in parts for one in part.on_moves], format="csr")
    least = np.concatenate([part.least.ravel() for part in parts])
    rows, size = len(left), len(length)
    scale = np.maximum(np.abs(use).max(axis=1, initial=0.0), 1e-9)
    of_rows = sp.csr_array(use / scale[:, None])
    missed = sp.block_array([[-sp.eye_array(rows)], [sp.csr_array((len(least), rows))]])
    both = sp.vstack([of_rows, sp.csr_array(own)]) if len(least) else of_rows
    program = LinearProgram(
        sp.csr_array(sp.hstack([both, -both, missed if len(least) else -sp.eye_array(rows)])),
        np.concatenate([np.full(rows, -np.inf), least]),
        np.concatenate([left / scale, np.full(len(least), np.inf)]),
        np.zeros(2 * size + rows), np.concatenate([upper, -lower, np.full(rows, np.inf)]),
        np.zeros(2 * size + rows, dtype=bool),
    )  # fmt: skip
    live = LoadedHighs(program, threads=1)
    live.set_objective(np.concatenate([length, length, highest * scale]), 0.0)
    _, x, _ = live.run(budget, 0.0)
    if x is None:
        return None
    found, first, steps = [], 0, x[:size] - x[size : 2 * size]
    for part in parts:
        found.append((part.block, steps[first : first + part.length.size].reshape(part.length.shape)))
        first += part.length.size
    return found


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
