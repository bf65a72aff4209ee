"""What a shard tells of its blocks that are nearest to indifference, for the MIP over the last few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.methods.template_pricing.choice import Choice
from dovetail.methods.template_pricing.shard import Shard


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


def margins(shard: Shard, prices: FloatArray) -> FloatArray:
    """(N,) between the two cheapest columns at the prices; infinite where there is only one."""
    priced = shard.pool.priced(torch.as_tensor(prices, device=shard.data.device))
    two = priced.topk(2, dim=1, largest=False).values if priced.shape[1] > 1 else priced.repeat(1, 2)
    margin = (two[:, 1] - two[:, 0]).double().cpu().numpy()
    return np.where(np.isfinite(margin), margin, np.inf)


def core_columns(shard: Shard, choice: Choice, prices: FloatArray, border: float, most: int) -> CoreColumns:
    """Of blocks whose margin is within the border, and of those that have what was left; `most` of each."""
    near = np.flatnonzero(margins(shard, prices) <= border)[:most]
    mine = np.union1d(near, np.flatnonzero(choice.filled)[:most])
    own = choice.costs[mine]
    at, column = np.nonzero(np.isfinite(own))
    holds, uses = shard.confirm(mine[at], column)
    stays = choice.place[mine][at] == column
    kept = holds | stays
    at, column = at[kept], column[kept]
    return CoreColumns(
        mine[at],
        column,
        own[at, column],
        uses[kept],
        stays[kept],
        choice.use - choice.own_use[mine].sum(axis=0),
    )
