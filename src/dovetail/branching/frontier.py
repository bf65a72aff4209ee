"""Open parts of divided sets as tensors: the lowest of them are taken, divided and bounded in one batch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Generic, Self, TypeVar

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Parts:
    """P parts of K sets, as tensors."""

    target: Tensor
    """(P,) the set of each."""
    bound: Tensor
    """(P,) a lower bound of the part's points."""

    def __len__(self) -> int:
        return len(self.target)

    def take(self, chosen: Tensor) -> Self:
        """A selection of the parts, by index or mask."""
        return type(self)(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def joined(self, *others: Self) -> Self:
        """These and others."""
        every = (self, *others)
        return type(self)(*(torch.cat([getattr(one, field.name) for one in every]) for field in fields(self)))


N = TypeVar("N", bound=Parts)


class Frontier(Generic[N]):
    """The open parts."""

    def __init__(self, parts: N) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return len(self.parts)

    def add(self, parts: N) -> None:
        """Open more parts."""
        self.parts = self.parts.joined(parts)

    def close(self, done: Tensor) -> N:
        """Remove parts by mask, and return them."""
        closed = self.parts.take(done)
        self.parts = self.parts.take(~done)
        return closed

    def lowest(self, count: int) -> N:
        """Take the parts with the lowest bounds: the lowest of each set first, then the second lowest, ..."""
        parts = self.parts
        if len(parts) <= count:
            return self.close(torch.ones_like(parts.target, dtype=torch.bool))
        if not bool(parts.target.any()):
            return self._taken(parts.bound.topk(count, largest=False).indices)
        by_bound = parts.bound.argsort(stable=True)
        order = by_bound[parts.target[by_bound].argsort(stable=True)]
        target = parts.target[order]
        rank = torch.arange(len(order), device=order.device) - torch.searchsorted(target, target)
        return self._taken(order[rank.argsort(stable=True)[:count]])

    def highest(self, count: int) -> N:
        """Take the parts with the highest bounds: they are closed soonest."""
        return self._taken(self.parts.bound.topk(min(len(self), count)).indices)

    def _taken(self, chosen: Tensor) -> N:
        taken, done = self.parts.take(chosen), torch.zeros_like(self.parts.target, dtype=torch.bool)
        done[chosen] = True
        self.close(done)
        return taken
