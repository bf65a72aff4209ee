"""The last few: a MIP over the blocks that are nearest to indifference, all others as they were chosen.

With few coupling rows nearly all blocks have one best column at the right prices; what a choice by order of
gain loses, it loses among those with two. It also mends choices that miss a row (equations, lower limits).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.methods.template_pricing.choice import Choice
from dovetail.methods.template_pricing.shard import Shard
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import Program
from dovetail.run.budget import Budget

CORE = 250
"""Blocks in the MIP: with ten times as many it brings no more in its seconds (water, n = 2,000)."""
GAP = 1e-6
"""Relative, at which the MIP ends."""


def improve(
    shards: list[Shard],
    choices: list[Choice],
    prices: FloatArray,
    limit: FloatArray,
    budget: Budget,
    seed: int,
) -> bool:
    """Choose again among the blocks in the core; whether anything changed."""
    core = _Core(shards, choices, prices, limit)
    chosen = core.solve(budget, seed)
    return chosen is not None and core.take(chosen)


class _Core:
    """Columns of the blocks in the core, laid end to end: (shard, block, place), costs and uses."""

    def __init__(
        self, shards: list[Shard], choices: list[Choice], prices: FloatArray, limit: FloatArray
    ) -> None:
        self._choices = choices
        margins = [_margins(shard, prices) for shard in shards]
        everyone = np.concatenate(margins)
        nearest = np.sort(everyone[np.isfinite(everyone)])[:CORE]
        border = nearest[-1] if nearest.size else -np.inf
        owner, block, place, cost, use = [], [], [], [], []
        kept = np.zeros(len(limit))
        for number, (shard, choice, margin) in enumerate(zip(shards, choices, margins, strict=True)):
            mine = np.flatnonzero(margin <= border)[:CORE]
            own = choice.costs[mine]
            at, column = np.nonzero(np.isfinite(own))
            holds, uses = shard.confirm(mine[at], column)
            stays = choice.place[mine][at] == column
            at, column, uses = at[holds | stays], column[holds | stays], uses[holds | stays]
            owner.append(np.full(len(at), number))
            block.append(mine[at])
            place.append(column)
            cost.append(own[at, column])
            use.append(uses)
            kept += choice.use - choice.own_use[mine].sum(axis=0)
        self.owner, self.block, self.place = (np.concatenate(of) for of in (owner, block, place))
        self.cost, self.use, self.left = np.concatenate(cost), np.concatenate(use), limit - kept

    def solve(self, budget: Budget, seed: int) -> IntArray | None:
        """Numbers of the columns that are chosen."""
        if len(self.cost) == 0:
            return None
        keys = np.stack([self.owner, self.block], axis=1)
        _, group = np.unique(keys, axis=0, return_inverse=True)
        group = group.ravel()
        count, columns = int(group.max()) + 1, len(self.cost)
        scale = np.maximum(np.abs(self.use).max(axis=0), 1e-9)
        one_each = sp.csr_array((np.ones(columns), (group, np.arange(columns))), shape=(count, columns))
        A = sp.csr_array(sp.vstack([one_each, sp.csr_array((self.use / scale).T)], format="csr"))
        program = Program(
            A,
            np.concatenate([np.ones(count), np.full(len(scale), -np.inf)]),
            np.concatenate([np.ones(count), self.left / scale]),
            np.zeros(columns),
            np.ones(columns),
            np.ones(columns, dtype=bool),
        )
        live = LoadedHighs(program, seed=seed, threads=1)
        live.set_objective(self.cost, 0.0)
        live.set_start(self._now().astype(float))
        _, x, _ = live.run(budget, GAP)
        return None if x is None else np.flatnonzero(x > 0.5)

    def _now(self) -> np.ndarray:
        places = [
            self._choices[number].place[block] for number, block in zip(self.owner, self.block, strict=True)
        ]
        return np.asarray(np.array(places) == self.place)

    def take(self, chosen: IntArray) -> bool:
        """Let it be these; whether any is another."""
        changed = ~self._now()[chosen]
        for number in chosen[changed]:
            self._choices[self.owner[number]].put(self.block[number], self.place[number], self.use[number])
        return bool(changed.any())


def _margins(shard: Shard, prices: FloatArray) -> FloatArray:
    """(N,) between the two cheapest columns at the prices; infinite where there is only one."""
    priced = shard.pool.priced(torch.as_tensor(prices, device=shard.data.device))
    two = priced.topk(2, dim=1, largest=False).values if priced.shape[1] > 1 else priced.repeat(1, 2)
    margin = (two[:, 1] - two[:, 0]).double().cpu().numpy()
    return np.where(np.isfinite(margin), margin, np.inf)
