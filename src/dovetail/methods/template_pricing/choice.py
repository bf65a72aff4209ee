"""One column per block within the coupling rows, for many blocks: by order of gain, then by what fits.

Every block begins with its first column. Those that gain by another are served in order of their gain at the
prices, as many as fit; what is left of the rows is filled with columns that still fit, those first that bring
most for their share of the room that is left. Arrays over blocks are where the columns are, in float64; what
leaves is a few numbers per coupling row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.methods.template_pricing.shard import Shard

ROUNDS = 3
"""Of confirming: a column that its owner's predictor refuses gives way to the next best."""
FILLINGS = 12
"""Passes over blocks that are left: each serves a prefix of them, and the last ones bring little."""
MOST_WAITING = 20_000
"""Blocks that a filling looks at, those nearest to a gain: what is left has room for a few of them."""
LITTLE = 1e-9
"""Relative to a row's limit: room that is none."""


class ColumnChoice:
    """Places of columns in a shard's pool, and what they use in all."""

    def __init__(self, shard: Shard, *, lasting: bool = True) -> None:
        """Columns that a `lasting` one finds wrong are struck from the pool; another leaves no trace."""
        self._shard, self.lasting = shard, lasting
        self.costs = shard.pool.cost.double()
        """(N, K) without prices; infinite where a column does not hold, or did not fit."""
        for _ in range(ROUNDS):
            self.place = torch.where(torch.isfinite(self.costs[:, 0]), 0, self.costs.argmin(dim=1))
            holds, self.own_use = shard.confirm(self._everyone, self.place, lasting=lasting)
            self._strike(self._everyone[~holds], self.place[~holds])
            if bool(holds.all()):
                break
        self._first = self.place.clone()
        self.use: FloatArray = self.own_use.sum(dim=0).cpu().numpy()
        self._gain = torch.zeros(shard.count, dtype=torch.float64, device=self.place.device)
        self._movers = self.place[:0]
        self._offers = (self._movers, self.own_use[:0], self.own_use[:0])
        self.filled = torch.zeros_like(self.place, dtype=torch.bool)
        """Blocks that have what was left: others may have more use for it."""

    @property
    def _everyone(self) -> Tensor:
        return torch.arange(self._shard.count, device=self._shard.data.device)

    def _strike(self, blocks: Tensor, places: Tensor) -> None:
        """Columns that do not hold, or do not fit."""
        self.costs[blocks, places] = torch.inf

    def put(self, blocks: Tensor, places: Tensor, uses: Tensor) -> None:
        """Other columns for some blocks, that use so much."""
        more = uses - self.own_use[blocks]
        self.place[blocks], self.own_use[blocks] = places, uses
        self.use = self.use + more.sum(dim=0).cpu().numpy()

    @property
    def complete(self) -> bool:
        """Whether every block has a column that holds."""
        return bool(torch.isfinite(self.costs.gather(1, self.place[:, None])).all())

    def rank(self, prices: FloatArray) -> float:
        """Put blocks that gain by another column in order; the largest gain. To be called once."""
        shard = self._shard
        priced = shard.pool.priced(torch.as_tensor(prices, device=shard.data.device)).double()
        for _ in range(ROUNDS):
            gain, place = self._gains(priced)
            movers = (gain > 0.0).nonzero().ravel()
            holds, use = shard.confirm(movers, place[movers], lasting=self.lasting)
            if bool(holds.all()):
                break
            wrong = movers[~holds]
            priced[wrong, place[wrong]] = torch.inf
            self._strike(wrong, place[wrong])
        movers, use = movers[holds], use[holds]
        order = gain[movers].argsort(descending=True, stable=True)
        self._gain, self._movers = gain, movers[order]
        use = use[order]
        self._offers = place[self._movers], use, use - self.own_use[self._movers]
        return float(gain[self._movers[0]]) if len(self._movers) else 0.0

    def uses_at(self, levels: FloatArray) -> FloatArray:
        """(L, R) what is used where all are served that gain as much as a level, largest level first."""
        more = self._offers[2]
        parts = [more[one:other].sum(dim=0) for one, other in pairwise([0, *self._served_at(levels)])]
        return np.asarray(self.use + torch.stack(parts).cumsum(dim=0).cpu().numpy())

    def serve(self, level: float) -> None:
        """All that gain as much."""
        (count,) = self._served_at(np.array([level]))
        self.put(self._movers[:count], self._offers[0][:count], self._offers[1][:count])

    def _served_at(self, levels: FloatArray) -> list[int]:
        """How many gain as much."""
        falling = -self._gain[self._movers]
        served: list[int] = torch.searchsorted(
            falling, -torch.as_tensor(levels).to(falling), right=True
        ).tolist()
        return served

    def _gains(self, priced: Tensor) -> tuple[Tensor, Tensor]:
        least, place = priced.min(dim=1)
        first = priced.gather(1, self.place[:, None])[:, 0]
        return torch.where(torch.isfinite(first), first - least, 0.0), place

    def fill(self, room: FloatArray) -> None:
        """Columns that fit what is left, for blocks still at their first."""
        waiting = self._waiting()
        more = self._shard.pool.use[waiting].double() - self.own_use[waiting][:, None, :]
        taken = more.clamp(min=0.0)
        for _ in range(FILLINGS):
            left = np.maximum(room - self.use, 0.0)
            left = np.where(left > LITTLE * (1.0 + np.abs(room)), left, 0.0)
            fits = (more <= torch.as_tensor(left, device=more.device)).all(dim=2)
            per_room = torch.as_tensor(np.divide(1.0, left, where=left > 0.0, out=np.zeros_like(left)))
            if not self._fill_once(waiting, fits, taken @ per_room.to(more), room):
                return

    def _waiting(self) -> Tensor:
        """Blocks at their first column that have others."""
        others = torch.isfinite(self.costs[:, 1:]).any(dim=1)
        waiting = ((self.place == self._first) & others).nonzero().ravel()
        if len(waiting) > MOST_WAITING:
            waiting = waiting[self._gain[waiting].topk(MOST_WAITING, sorted=False).indices]
        return waiting

    def _fill_once(self, waiting: Tensor, fits: Tensor, share: Tensor, room: FloatArray) -> bool:
        """The columns that bring most for their share of the room; whether there were any."""
        costs, place = self.costs[waiting], self.place[waiting]
        worth = costs.gather(1, place[:, None]) - costs
        fits = fits & (worth > 0.0) & (place == self._first[waiting])[:, None]
        best, place = torch.where(fits, worth / share.clamp(min=LITTLE), -torch.inf).max(dim=1)
        movers = (best > 0.0).nonzero().ravel()
        if not len(movers):
            return False
        movers = movers[best[movers].argsort(descending=True, stable=True)]
        self._serve_first(waiting[movers], place[movers], room)
        return True

    def _serve_first(self, blocks: Tensor, place: Tensor, room: FloatArray) -> None:
        """As many of these, in order, as fit; the first that does not is not tried again."""
        holds, use = self._shard.confirm(blocks, place, lasting=self.lasting)
        self._strike(blocks[~holds], place[~holds])
        blocks, place, use = blocks[holds], place[holds], use[holds]
        more = (use - self.own_use[blocks]).cpu().numpy()
        served = fitting(np.concatenate([self.use[None], self.use + np.cumsum(more, axis=0)]), room)
        self.put(blocks[:served], place[:served], use[:served])
        self.filled[blocks[:served]] = True
        self._strike(blocks[served : served + 1], place[served : served + 1])


def fitting(uses: FloatArray, room: FloatArray) -> int:
    """The last of (L, R) uses that misses the rows least."""
    beyond = np.maximum(uses - room - LITTLE * (1.0 + np.abs(room)), 0.0).sum(axis=1)
    return int(np.flatnonzero(beyond <= beyond.min())[-1])


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


def margins(shard: Shard, prices: FloatArray) -> Tensor:
    """(N,) between the two cheapest columns at the prices; infinite where there is only one."""
    priced = shard.pool.priced(torch.as_tensor(prices, device=shard.data.device))
    two = priced.topk(2, dim=1, largest=False).values if priced.shape[1] > 1 else priced.repeat(1, 2)
    margin = (two[:, 1] - two[:, 0]).double()
    return torch.where(torch.isfinite(margin), margin, torch.inf)


def core_columns(
    shard: Shard, choice: ColumnChoice, prices: FloatArray, border: float, most: int
) -> CoreColumns:
    """Of blocks whose margin is within the border, and of those that have what was left; `most` of each."""
    near = (margins(shard, prices) <= border).nonzero().ravel()[:most]
    filled = choice.filled.nonzero().ravel()[:most]
    mine = torch.as_tensor(np.union1d(near.cpu(), filled.cpu()), device=near.device)
    at, column = torch.isfinite(choice.costs[mine]).nonzero(as_tuple=True)
    holds, uses = shard.confirm(mine[at], column, lasting=choice.lasting)
    stays = choice.place[mine[at]] == column
    kept = holds | stays
    block, column = mine[at[kept]], column[kept]
    cost = choice.costs[block, column]
    return CoreColumns(
        block.cpu().numpy(), column.cpu().numpy(), cost.cpu().numpy(), uses[kept].cpu().numpy(),
        stays[kept].cpu().numpy(), choice.use - choice.own_use[mine].sum(dim=0).cpu().numpy(),
    )  # fmt: skip
