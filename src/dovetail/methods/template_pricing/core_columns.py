"""What a shard tells of its blocks that are nearest to indifference, for the MIP over the last few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

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


def margins(shard: Shard, prices: FloatArray) -> Tensor:
    """(N,) between the two cheapest columns at the prices; infinite where there is only one."""
    priced = shard.pool.priced(torch.as_tensor(prices, device=shard.data.device))
    two = priced.topk(2, dim=1, largest=False).values if priced.shape[1] > 1 else priced.repeat(1, 2)
    margin = (two[:, 1] - two[:, 0]).double()
    return torch.where(torch.isfinite(margin), margin, torch.inf)


def core_columns(shard: Shard, choice: Choice, prices: FloatArray, border: float, most: int) -> CoreColumns:
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
