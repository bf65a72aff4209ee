"""What the blocks of a shard have chosen: a column each, or a point that was moved from one.

Every block begins at its cheapest column at the prices. Arrays over blocks are where the columns are, in
float64; what leaves is a few numbers per coupling row, and the columns of the blocks nearest to indifference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.decomposition.block_data import of
from dovetail.decomposition.shard import Shard

PIECE = 1 << 18
"""Blocks whose columns are compared side by side of the coupling rows at a time."""
ROUNDS = 3
"""Of confirming: a column that its owner's predictor refuses gives way to the next best."""
WIDER = 2.0
"""Times the border of the core: columns that ask for a larger change of a price are not looked at again."""


@dataclass(frozen=True, eq=False)
class CoreColumns:
    """Columns of some blocks of a shard, laid end to end, and what all its other blocks use."""

    block: IntArray
    place: IntArray
    cost: FloatArray
    use: FloatArray
    """(columns, R)."""
    chosen: BoolArray
    """Whether it is the column that its block has now."""
    kept: FloatArray
    """(R,)."""


@dataclass(frozen=True, eq=False)
class Slopes:
    """Some blocks where they are, to first order: what a move uses, and its conditions."""

    block: IntArray
    length: FloatArray
    """(n, k) what a step is longer by: a move of usual size costs what blocks usually have at stake."""
    use: FloatArray
    """(n, R, k)."""
    on_moves: FloatArray
    """(n, C, k) on_moves step >= least."""
    least: FloatArray
    """(n, C)."""
    lower: FloatArray
    """(n, k) of steps."""
    upper: FloatArray


class ColumnChoice:
    """See above."""

    def __init__(self, shard: Shard, prices: FloatArray, *, lasting: bool = True) -> None:
        """Columns that a `lasting` one finds wrong are struck from the pool; another leaves no trace."""
        self._shard, self.lasting = shard, lasting
        self.priced = shard.pool.priced(torch.as_tensor(prices, device=shard.data.device)).double()
        """(N, K); infinite where a column does not hold."""
        everyone = shard.everyone
        self.place = self.priced.argmin(dim=1)
        self.moves, self.outputs = shard.column(everyone, self.place)
        self.own_use = torch.zeros((shard.count, shard.data.sides), dtype=torch.float64).to(self.moves)
        self._frozen = torch.zeros_like(self.place, dtype=torch.bool)
        asked = everyone
        for _ in range(ROUNDS):
            holds = self._put(asked, self.place[asked])
            asked = asked[~holds]
            if not len(asked):
                break
            self.priced[asked, self.place[asked]] = torch.inf
            self.place[asked] = self.priced[asked].argmin(dim=1)

    def _put(self, blocks: Tensor, places: Tensor) -> Tensor:
        """Whether columns hold; the blocks have them then."""
        shard = self._shard
        holds, outputs, parts = shard.confirm(blocks, places, lasting=self.lasting)
        self.place[blocks], self.outputs[blocks] = places, outputs
        self.moves[blocks] = shard.column(blocks, places)[0]
        self.own_use[blocks] = shard.data.true_uses(blocks, parts)
        return holds

    @property
    def use(self) -> FloatArray:
        """(R,) of all blocks."""
        return np.asarray(self.own_use.sum(dim=0).cpu().numpy())

    @property
    def complete(self) -> bool:
        """Whether every block has a column that holds."""
        return bool(torch.isfinite(self.priced.gather(1, self.place[:, None])).all())

    def put(self, blocks: IntArray, places: IntArray) -> FloatArray:
        """Other columns for some blocks; what all use then."""
        device = self.place.device
        self._put(torch.as_tensor(blocks, device=device), torch.as_tensor(places, device=device))
        return self.use

    def margins(self) -> Tensor:
        """(N, R) by how much the price of a side has to change until a block takes another column; infinite
        where no column of it uses more or less of the side.

        The cost between two columns alone would not do: two that hardly differ are close at any prices. Of
        100,000 customers the nearest 4,000 were such, and none of them could serve a row.
        """
        parts = self._shard.everyone.split(PIECE)  # type: ignore[no-untyped-call]
        return torch.cat([self._changes(part).amin(dim=1) for part in parts])

    def _changes(self, blocks: Tensor) -> Tensor:
        """(n, K, R) by how much the price of a side has to change for each column."""
        own, use = self.place[blocks, None], self._shard.pool.use[blocks]
        beyond = self.priced[blocks] - self.priced[blocks].gather(1, own)
        apart = (use - use.gather(1, own[:, :, None].expand(-1, -1, use.shape[2]))).abs()
        change = beyond.to(use.dtype).clamp(min=0.0)[:, :, None] / apart
        return torch.where((apart > 0.0) & torch.isfinite(change), change, torch.inf)

    def core(self, border: FloatArray, most: int) -> CoreColumns:
        """Of the `most` blocks nearest to indifference for each side, within its border: all columns that do
        not ask for much more."""
        shard, margin = self._shard, self.margins()
        borders = torch.as_tensor(border, dtype=margin.dtype, device=margin.device)
        nearest = margin.topk(min(most, len(margin)), dim=0, largest=False)
        near = torch.isfinite(nearest.values) & (nearest.values <= borders)
        mine: Tensor = torch.unique(nearest.indices[near])
        own = self.place[mine, None]
        near = (self._changes(mine) <= WIDER * borders).any(dim=2) & torch.isfinite(self.priced[mine])
        near.scatter_(1, own, torch.ones_like(own, dtype=torch.bool))
        at, column = near.nonzero(as_tuple=True)
        holds, _, parts = shard.confirm(mine[at], column, lasting=self.lasting)
        stays = self.place[mine[at]] == column
        kept = holds | stays
        block, column, parts = mine[at[kept]], column[kept], parts[kept]
        cost, use = shard.data.true_costs(block, parts), shard.data.true_uses(block, parts)
        others = self.use - self.own_use[mine].sum(dim=0).cpu().numpy()
        numbers = [array.cpu().numpy() for array in (block, column, cost, use)]
        return CoreColumns(numbers[0], numbers[1], numbers[2], numbers[3], stays[kept].cpu().numpy(), others)

    def slopes(self, most: int, reach: float) -> Slopes:
        """Of `most` blocks, drawn by chance, with coordinates that are no integers: where a step of at most
        `reach` usual moves leads. Nothing where blocks have classes: a step may turn them."""
        shard, data, k = self._shard, self._shard.data, self._shard.data.coordinates
        usable = ~self._frozen & bool(shard.steerable.any())
        mine = usable.nonzero().ravel()
        chance = torch.Generator().manual_seed(0)
        mine = mine[torch.randperm(len(mine), generator=chance)[:most].to(mine.device)].sort().values
        moves = self.moves[mine]
        pull = shard.pulls(mine, moves)
        right = moves >= 0.0
        on_moves, on_outputs, least = (of(array, mine) for array in data.true_conditions)
        parts = data.true_uses_of_parts(mine)
        own = torch.where(right[:, None, :], parts[..., :k], -parts[..., k : 2 * k])
        use = own + parts[..., 2 * k : -1] @ pull
        met = (on_moves @ moves[:, :, None] + on_outputs @ self.outputs[mine][:, :, None])[:, :, 0]
        lower, upper = (of(limit, mine) for limit in data.true_limits)
        lower = torch.where(right, lower.clamp(min=0.0), lower)
        upper = torch.where(right, upper, upper.clamp(max=0.0))
        size = reach * data.scale.double() * ~data.whole
        length = (shard.stake / data.scale).expand(len(mine), k)
        back, forth = torch.maximum(lower - moves, -size), torch.minimum(upper - moves, size)
        by_steps = on_moves + on_outputs @ pull
        found = (mine, length, use, by_steps, least - met, back.clamp(max=0.0), forth.clamp(min=0.0))
        return Slopes(*(array.cpu().numpy() for array in found))

    def step(self, blocks: IntArray, steps: FloatArray) -> FloatArray:
        """Move some blocks; those that break a condition stay, for good. What all use then."""
        shard, data = self._shard, self._shard.data
        mine = torch.as_tensor(blocks, device=self.place.device)
        moves = data.within(mine, self.moves[mine] + torch.as_tensor(steps, device=self.place.device))
        holds, outputs = shard.asked(mine, moves, None)
        self._frozen[mine[~holds]] = True
        mine, moves, outputs = mine[holds], moves[holds], outputs[holds]
        self.moves[mine], self.outputs[mine] = moves, outputs
        self.own_use[mine] = data.true_uses(mine, data.parts(moves, outputs))
        return self.use
