"""Best-first branch and bound for several targets together, independent of how sets are divided.

Every round takes the parts with the lowest bounds, of each target in turn, and expands them in one batch.
The bound of a target is the lowest bound of its open and its closed parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Self

import torch
from torch import Tensor

from dovetail.branching.frontier import Frontier, N
from dovetail.branching.targets import Targets
from dovetail.run import work
from dovetail.run.budget import Budget

STEP, EACH = 3.5e-2, 6e-6
"""Effort of a batch of parts and of each part, in seconds (see `Work.effort`)."""


class SetSearch(ABC, Generic[N]):
    """One search; `run` continues it."""

    def __init__(self, targets: Targets, batch: int, most_parts: int, tolerance: float) -> None:
        self.targets = targets
        self.tolerance: float | Tensor = tolerance
        """How far below the best value a part may be closed; one for all targets, or (K,)."""
        self._batch, self._most_parts = batch, most_parts
        like = targets.shift
        self.best = torch.full_like(like, torch.inf)
        """(K,) the best value found."""
        self.best_moves = torch.zeros_like(targets.costs)
        self.met = torch.zeros_like(like, dtype=torch.bool)
        """(K,) whether the best value belongs to `best_moves`, not to a point found elsewhere."""
        self._aside = torch.full_like(like, torch.inf)
        self.nodes = 0
        self.left_out = 0
        """Targets that were given up because there were too many parts."""
        self.frontier = Frontier(self._roots())
        self._unseen: list[N] = []
        """Batches of parts of an earlier search, without bounds yet."""

    @abstractmethod
    def _roots(self) -> N:
        """The whole sets with their bounds."""

    @abstractmethod
    def _bounded(self, parts: N) -> N:
        """Parts with bounds; the points that these suggest are tried too."""

    @abstractmethod
    def _expanded(self, taken: N) -> N:
        """The open children of some parts."""

    def know(self, values: Tensor) -> None:
        """(K,) values of points found elsewhere; infinity for none."""
        self.best = torch.minimum(self.best, values.to(self.best))

    @property
    def reachable(self) -> Tensor:
        """(K,) the largest possible `lower`."""
        return torch.minimum(self.targets.cutoff, self.best)

    @property
    def limit(self) -> Tensor:
        """(K,) the bound at which a part is closed."""
        return torch.minimum(self.targets.cutoff, self.best - self.tolerance)

    @property
    def lower(self) -> Tensor:
        """(K,) proved lower bounds; or the cutoff, if they reach it."""
        least = torch.minimum(self._aside, self.targets.cutoff)
        for parts in (self.frontier.parts, *self._unseen):
            least = least.scatter_reduce(0, parts.target, parts.bound, "amin")
        return least

    @property
    def done(self) -> bool:
        """Whether no part is open."""
        return not len(self.frontier) and not self._unseen

    def run(self, budget: Budget, enough: Callable[[Self], bool] = lambda search: False) -> str:
        """Run until no part is open, the time is over, or `enough` returns True; returns the reason for
        the end."""
        frontier = self.frontier
        while True:
            reached = frontier.parts.bound >= self.limit[frontier.parts.target]
            self._put_aside(frontier.close(reached))
            if self.done:
                return f"{self._most_parts:,} open nodes" if self.left_out else "closed"
            if budget.over:
                return "time"
            if self._unseen:
                frontier.add(self._bounded(self._unseen[-1]))
                self._unseen.pop()
                continue
            full = len(frontier) > self._most_parts and not self._relieved()
            if enough(self):
                return "enough"
            count = self._at_once()
            taken = frontier.highest(count) if full else frontier.lowest(count)
            try:
                frontier.add(self._expanded(taken))
            except BaseException:  # interrupted parts stay open
                frontier.add(taken)
                raise

    def _relieved(self) -> bool:
        """Give up the target with most open parts at its current bound; False if it is the only one."""
        target = self.frontier.parts.target
        count = torch.bincount(target, minlength=self.targets.count)
        if int((count > 0).sum()) < 2:
            return False
        self._put_aside(self.frontier.close(target == count.argmax()))
        self.left_out += 1
        return True

    def _counted(self, count: int) -> None:
        """Add the number of bounded parts."""
        self.nodes += count
        work.count(nodes=count, effort=STEP + EACH * count)

    def _try(self, target: Tensor, moves: Tensor) -> None:
        """Keep the best value of each target."""
        value = self.targets.take(target).reached(moves)
        least = self.best.scatter_reduce(0, target, value, "amin")
        winner = (value == least[target]) & (value < self.best[target])
        self.best_moves[target[winner]] = moves[winner]
        self.met[target[winner]] = True
        self.best = least

    def _put_aside(self, parts: N) -> None:
        """Closed parts keep their bounds."""
        self._close_at(parts.target, parts.bound)

    def _close_at(self, target: Tensor, bound: Tensor) -> None:
        self._aside = self._aside.scatter_reduce(0, target, bound, "amin")

    def _at_once(self) -> int:
        """Number of parts to divide at once."""
        return self._batch // 2
