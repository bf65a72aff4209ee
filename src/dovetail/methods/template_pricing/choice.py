"""One column per block within the coupling rows, for many blocks: by order of gain, then by what fits.

Every block begins with its first column. Those that gain by another are served in order of their gain at the
prices, as many as fit; what is left of the rows is filled with columns that still fit, those first that bring
most for their share of the room that is left.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.methods.template_pricing.shard import Shard

ROUNDS = 3
"""Of confirming: a column that its owner's predictor refuses gives way to the next best."""
FILLINGS = 12
"""Passes over blocks that are left: each serves a prefix of them, and the last ones bring little."""
MOST_WAITING = 20_000
"""Blocks that a filling looks at, those nearest to a gain: what is left has room for a few of them."""
LITTLE = 1e-9
"""Relative to a row's limit: room that is none."""


class Choice:
    """Places of columns in a shard's pool, and what they use in all, in float64."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.costs = shard.pool.cost.double().cpu().numpy()
        """(N, K) without prices; infinite where a column does not hold, or did not fit."""
        everyone = np.arange(shard.count)
        for _ in range(ROUNDS):
            self.place = np.where(np.isfinite(self.costs[:, 0]), 0, np.argmin(self.costs, axis=1))
            holds, self.own_use = shard.confirm(everyone, self.place)
            self.costs[~holds, self.place[~holds]] = np.inf
            if np.all(holds):
                break
        self._first = self.place.copy()
        self.use: FloatArray = self.own_use.sum(axis=0)
        self._gain = np.zeros(shard.count)
        self._movers = np.zeros(0, dtype=np.int64)
        self._offers = (self._movers, self.own_use[:0])
        self.filled = np.zeros(shard.count, dtype=bool)
        """Blocks that have what was left: others may have more use for it."""

    def put(self, block: int, place: int, use: FloatArray) -> None:
        """Another column for one block, that uses so much."""
        self.place[block] = place
        self.use = self.use + use - self.own_use[block]
        self.own_use[block] = use

    @property
    def complete(self) -> bool:
        """Whether every block has a column that holds."""
        return bool(np.all(np.isfinite(self.costs[np.arange(self._shard.count), self.place])))

    def rank(self, prices: FloatArray) -> float:
        """Put blocks that gain by another column in order; the largest gain. To be called once."""
        shard = self._shard
        price = torch.as_tensor(prices, device=shard.data.device)
        priced = shard.pool.priced(price).double().cpu().numpy()
        for _ in range(ROUNDS):
            gain, place = self._gains(priced)
            movers = np.flatnonzero(gain > 0.0)
            holds, use = shard.confirm(movers, place[movers])
            if np.all(holds):
                break
            wrong = movers[~holds]
            priced[wrong, place[wrong]] = self.costs[wrong, place[wrong]] = np.inf
        movers, use = movers[holds], use[holds]
        order = np.argsort(-gain[movers], kind="stable")
        self._gain, self._movers = gain, movers[order]
        self._offers = place[self._movers], use[order]
        return float(gain[self._movers[0]]) if self._movers.size else 0.0

    def uses_at(self, levels: FloatArray) -> FloatArray:
        """(L, R) what is used where all are served that gain as much as a level, largest level first."""
        more = self._offers[1] - self.own_use[self._movers]
        first = np.concatenate([[0], self._served_at(levels)])
        parts = [more[one:other].sum(axis=0) for one, other in pairwise(first)]
        return np.asarray(self.use + np.cumsum(parts, axis=0))

    def serve(self, level: float) -> None:
        """All that gain as much."""
        count = int(self._served_at(np.array([level]))[0])
        blocks, (place, use) = self._movers[:count], self._offers
        self.use = self.use + (use[:count] - self.own_use[blocks]).sum(axis=0)
        self.place[blocks], self.own_use[blocks] = place[:count], use[:count]

    def _served_at(self, levels: FloatArray) -> IntArray:
        return np.searchsorted(-self._gain[self._movers], -levels, side="right")

    def _gains(self, priced: FloatArray) -> tuple[FloatArray, IntArray]:
        everyone, place = np.arange(len(priced)), np.argmin(priced, axis=1)
        first = priced[everyone, self.place]
        known = np.isfinite(first)
        return np.where(known, np.where(known, first, 0.0) - priced[everyone, place], 0.0), place

    def _move(self, blocks: IntArray, place: IntArray, use: FloatArray, room: FloatArray) -> int:
        """As many of these, in order, as can be served; how many that were."""
        more = use - self.own_use[blocks]
        served = _prefix(self.use, more, room)
        self.place[blocks[:served]] = place[:served]
        self.own_use[blocks[:served]] = use[:served]
        self.use = self.use + more[:served].sum(axis=0)
        return served

    def fill(self, room: FloatArray) -> None:
        """Columns that fit what is left, for blocks still at their first."""
        for _ in range(FILLINGS):
            if not self._fill_once(room):
                return

    def _fill_once(self, room: FloatArray) -> bool:
        shard, left = self._shard, np.maximum(room - self.use, 0.0)
        open_sides = left > LITTLE * (1.0 + np.abs(room))
        waiting = np.flatnonzero((self.place == self._first) & np.isfinite(self.costs[:, 1:]).any(axis=1))
        if waiting.size > MOST_WAITING:
            waiting = waiting[np.argpartition(-self._gain[waiting], MOST_WAITING)[:MOST_WAITING]]
        use = shard.pool.use[torch.as_tensor(waiting)].double().cpu().numpy()
        more = use - self.own_use[waiting][:, None, :]
        fits = np.all(more <= np.where(open_sides, left, 0.0), axis=2)
        worth = self.costs[waiting, self.place[waiting]][:, None] - self.costs[waiting]
        share = np.sum(np.maximum(more, 0.0) / np.where(open_sides, left, np.inf), axis=2)
        rate = np.where(fits & (worth > 0.0), worth / np.maximum(share, LITTLE), -np.inf)
        place = np.argmax(rate, axis=1)
        best = rate[np.arange(len(waiting)), place]
        movers = np.flatnonzero(best > 0.0)
        movers = movers[np.argsort(-best[movers], kind="stable")]
        blocks, place = waiting[movers], place[movers]
        holds, true_use = shard.confirm(blocks, place)
        self.costs[blocks[~holds], place[~holds]] = np.inf
        blocks, place, true_use = blocks[holds], place[holds], true_use[holds]
        served = self._move(blocks, place, true_use, room)
        self.filled[blocks[:served]] = True
        self.costs[blocks[served : served + 1], place[served : served + 1]] = np.inf  # it did not fit
        return movers.size > 0


def _prefix(use: FloatArray, more: FloatArray, room: FloatArray) -> int:
    """How many of these, in order, can be added: as many as miss the rows least."""
    return fitting(np.concatenate([use[None], use + np.cumsum(more, axis=0)]), room)


def fitting(uses: FloatArray, room: FloatArray) -> int:
    """The last of (L, R) uses that misses the rows least."""
    beyond = np.maximum(uses - room - LITTLE * (1.0 + np.abs(room)), 0.0).sum(axis=1)
    return int(np.flatnonzero(beyond <= beyond.min())[-1])
