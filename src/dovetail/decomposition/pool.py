"""Columns of every block, at most K: points that satisfy its private conditions, with costs and use."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dovetail.decomposition.block_data import BlockData
from dovetail.run import work

ALIKE_COST, ALIKE_MOVES = 2e-3, 2e-2
"""Two columns are equal if costs at the prices differ by less, in units of a typical column's cost, and
moves by less in total, in units of typical moves."""
MERGE_EFFORT, BLOCK_EFFORT = 1.2e-3, 3e-5
"""Seconds of a merge of columns, and of each of its blocks (see `Work.effort`)."""


@dataclass(frozen=True, eq=False)
class BlockColumns:
    """A copy of the columns of some blocks."""

    use: Tensor
    cost: Tensor


class BlockPool:
    """(N, K) columns; the first of a block is its point of least moves, and stays. An empty place costs
    infinity. All other columns are ordered by cost at the prices of their last merge."""

    def __init__(self, data: BlockData, places: int, outputs: int) -> None:
        n, k = data.count, data.coordinates
        self._data = data
        self.moves = data.zeros(n, places, k)
        self.outputs = data.zeros(n, places, outputs)
        self.cost = data.zeros(n, places) + torch.inf
        self.use = data.zeros(n, places, data.sides)

    def priced(self, prices: Tensor, which: Tensor | None = None) -> Tensor:
        """(n, K) costs at prices."""
        cost, use = (self.cost, self.use) if which is None else (self.cost[which], self.use[which])
        priced: Tensor = cost + use @ prices.to(use.dtype)
        return priced

    def some(self, which: Tensor) -> BlockColumns:
        """A copy of the data of some blocks that prices need."""
        return BlockColumns(self.use[which], self.cost[which])

    @property
    def contested(self) -> Tensor:
        """Blocks with several columns."""
        return (torch.isfinite(self.cost).sum(dim=1) > 1).nonzero().ravel()

    def rest(self, which: Tensor, moves: Tensor, outputs: Tensor) -> None:
        """First columns: the points at rest."""
        parts = self._data.parts(moves, outputs)
        self.moves[which, 0], self.outputs[which, 0] = moves, outputs
        self.cost[which, 0], self.use[which, 0] = (
            self._data.costs(which, parts), self._data.uses(which, parts),
        )  # fmt: skip

    def merge(
        self, which: Tensor, moves: Tensor, outputs: Tensor, found: Tensor, anchors: Tensor, unit: float
    ) -> None:
        """Merge new columns (n, S, ...) of some blocks, where `found`. A column is kept if it is among the
        cheapest at any of the (A, R) prices, or the cheapest of its mode at the first prices. With one
        price vector alone the rounds cycle if a row is an equation."""
        n, s, _ = moves.shape
        work.count(effort=MERGE_EFFORT + BLOCK_EFFORT * n)
        flat = which.repeat_interleave(s)
        parts = self._data.parts(moves.flatten(0, 1), outputs.flatten(0, 1))
        cost = torch.where(found, self._data.costs(flat, parts).view(n, s), torch.inf)
        use = self._data.uses(flat, parts).view(n, s, -1)
        self._settle_first(which, moves, outputs, cost, use)
        all_moves = torch.cat([self.moves[which, 1:], moves], dim=1)
        all_outputs = torch.cat([self.outputs[which, 1:], outputs], dim=1)
        all_cost = torch.cat([self.cost[which, 1:], cost], dim=1)
        all_use = torch.cat([self.use[which, 1:], use], dim=1)
        order, repeated = self._best(all_moves, all_outputs, all_cost, all_use, anchors, unit)
        self.moves[which, 1:] = _taken(all_moves, order)
        self.outputs[which, 1:] = _taken(all_outputs, order)
        self.cost[which, 1:] = torch.where(repeated, torch.inf, all_cost.gather(1, order))
        self.use[which, 1:] = _taken(all_use, order)

    def _best(
        self, moves: Tensor, outputs: Tensor, cost: Tensor, use: Tensor, anchors: Tensor, unit: float
    ) -> tuple[Tensor, Tensor]:
        """(n, K - 1) numbers of the columns to keep, and whether they are empty or repeat another."""
        priced = cost[:, None, :] + (anchors.to(use.dtype) @ use.transpose(1, 2))
        order = torch.argsort(priced[:, 0], dim=1)
        ranks = priced.argsort(dim=2).argsort(dim=2).gather(2, order[:, None, :].expand_as(priced))
        repeats = self._repeats(priced[:, 0].gather(1, order), _taken(moves, order), unit)
        rank = ranks.amin(dim=1)
        if bool(self._data.whole.any()) or bool(self._data.classifies.sum() > 1):
            rank = torch.minimum(rank, self._mode_rank(_taken(moves, order), _taken(outputs, order), repeats))
        rank = torch.where(repeats, moves.shape[1] + rank, rank)
        chosen = rank.sort(dim=1, stable=True).indices[:, : self.cost.shape[1] - 1]
        return order.gather(1, chosen), repeats.gather(1, chosen)

    def _mode_rank(self, moves: Tensor, outputs: Tensor, repeats: Tensor) -> Tensor:
        """(n, m) for the first column of each mode the number of modes before it; m for all others."""
        data, m = self._data, moves.shape[1]
        discrete = torch.cat([moves[:, :, data.whole], outputs[:, :, data.classifies]], dim=2)
        same = (discrete[:, :, None, :] == discrete[:, None, :, :]).all(dim=3) & ~repeats[:, None, :]
        earlier = torch.ones((m, m), dtype=torch.bool, device=moves.device).tril(-1)
        first = ~(same & earlier).any(dim=2) & ~repeats
        return torch.where(first, first.cumsum(dim=1) - 1, m)

    def _settle_first(self, which: Tensor, moves: Tensor, outputs: Tensor, cost: Tensor, use: Tensor) -> None:
        """For blocks whose point at rest violates a condition, the new column with the least moves becomes
        the first."""
        without = torch.isinf(self.cost[which, 0]) & torch.isfinite(cost).any(dim=1)
        mine = without.nonzero().ravel()
        if len(mine) == 0:
            return
        size = (moves[mine].abs() / self._data.scale).sum(dim=2) + torch.where(
            torch.isinf(cost[mine]), torch.inf, 0.0
        )
        least = size.argmin(dim=1)
        block = which[mine]
        self.moves[block, 0], self.outputs[block, 0] = moves[mine, least], outputs[mine, least]
        self.cost[block, 0], self.use[block, 0] = cost[mine, least], use[mine, least]

    def _repeats(self, priced: Tensor, moves: Tensor, unit: float) -> Tensor:
        """(n, m) columns in order of cost that nearly equal the one before, or are empty."""
        near = (priced[:, 1:] - priced[:, :-1]) < ALIKE_COST * unit
        far = ((moves[:, 1:] - moves[:, :-1]).abs() / self._data.scale).sum(dim=2)
        repeats = torch.isinf(priced)
        repeats[:, 1:] |= near & (far < ALIKE_MOVES)
        return repeats


def _taken(array: Tensor, order: Tensor) -> Tensor:
    return array.gather(1, order[:, :, None].expand(-1, -1, array.shape[2]))
