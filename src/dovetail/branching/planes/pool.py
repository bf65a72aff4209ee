"""Boxes that are still open, as tensors: taken by their bounds, lowest first."""

from __future__ import annotations

import torch
from torch import Tensor


class Pool:
    """N boxes, what is proved of each (by its parent), and no Python object per box."""

    def __init__(self, lower: Tensor, upper: Tensor, bound: Tensor) -> None:
        self.lower, self.upper, self.bound = lower, upper, bound

    def __len__(self) -> int:
        return len(self.bound)

    @property
    def least(self) -> float:
        """The lowest bound of all open boxes; infinity where there is none."""
        return float(self.bound.min()) if len(self) else torch.inf

    def take(self, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """The boxes of lowest bound, which leave the pool."""
        if count >= len(self):
            taken = self.lower, self.upper, self.bound
            self._keep(torch.zeros(len(self), dtype=torch.bool, device=self.bound.device))
            return taken
        chosen = torch.topk(self.bound, count, largest=False).indices
        taken = self.lower[chosen], self.upper[chosen], self.bound[chosen]
        kept = torch.ones(len(self), dtype=torch.bool, device=self.bound.device)
        kept[chosen] = False
        self._keep(kept)
        return taken

    def add(self, lower: Tensor, upper: Tensor, bound: Tensor) -> None:
        """More boxes."""
        self.lower = torch.cat([self.lower, lower])
        self.upper = torch.cat([self.upper, upper])
        self.bound = torch.cat([self.bound, bound])

    def drop(self, target: float) -> float:
        """Forget boxes whose bound reaches `target`; the lowest bound among them."""
        reached = self.bound >= target
        if not bool(reached.any()):
            return torch.inf
        least = float(self.bound[reached].min())
        self._keep(~reached)
        return least

    def _keep(self, kept: Tensor) -> None:
        self.lower, self.upper, self.bound = self.lower[kept], self.upper[kept], self.bound[kept]
