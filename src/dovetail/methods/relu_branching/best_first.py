"""Best-first branch and bound for several targets together, independent of the kind of node.

Every round takes the nodes with the lowest bounds, of each target in turn, and expands the nodes in one
batch. The bound of a target is the lowest bound of its open and its closed nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic, Self, TypeVar

import torch
from torch import Tensor

from dovetail.methods.relu_branching.targets import Targets
from dovetail.run.budget import Budget


@dataclass(frozen=True, eq=False)
class AnyNodes:
    """P nodes, as tensors."""

    target: Tensor
    """(P,) the target of each."""
    bound: Tensor
    """(P,) a lower bound of the node's points."""

    def __len__(self) -> int:
        return len(self.target)

    def take(self, chosen: Tensor) -> Self:
        """Some of them, by index or mask."""
        return type(self)(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def joined(self, other: Self) -> Self:
        """Both."""
        both = ([getattr(self, field.name), getattr(other, field.name)] for field in fields(self))
        return type(self)(*map(torch.cat, both))


N = TypeVar("N", bound=AnyNodes)


class BestFirst(ABC, Generic[N]):
    """One search; `run` continues it."""

    def __init__(self, targets: Targets, batch: int, most_nodes: int, tolerance: float) -> None:
        self.targets = targets
        self.tolerance: float | Tensor = tolerance
        """How far below the best value a node may be closed; one for all targets, or (K,)."""
        self._batch, self._most_nodes = batch, most_nodes
        like = targets.shift
        self.best = torch.full_like(like, torch.inf)
        """(K,) the best value found."""
        self.best_moves = torch.zeros_like(targets.costs)
        self.met = torch.zeros_like(like, dtype=torch.bool)
        """(K,) whether the best value belongs to `best_moves`, not to a point found elsewhere."""
        self._aside = torch.full_like(like, torch.inf)
        self.nodes = 0
        self.left_out = 0
        """Targets that were given up because there were too many nodes."""
        self._open = self._roots()
        self._unseen: list[N] = []
        """Batches of nodes of an earlier search, without bounds yet."""

    @abstractmethod
    def _roots(self) -> N:
        """The root nodes with their bounds."""

    def _seen(self, nodes: N) -> N:
        """Open nodes of an earlier search, bounded."""
        return nodes

    @abstractmethod
    def _expanded(self, taken: N, budget: Budget) -> N:
        """The open children of some nodes."""

    def know(self, values: Tensor) -> None:
        """(K,) values of points found elsewhere; infinity for none."""
        self.best = torch.minimum(self.best, values.to(self.best))

    @property
    def reachable(self) -> Tensor:
        """(K,) the largest possible `lower`."""
        return torch.minimum(self.targets.cutoff, self.best)

    @property
    def limit(self) -> Tensor:
        """(K,) the bound at which a node is closed."""
        return torch.minimum(self.targets.cutoff, self.best - self.tolerance)

    @property
    def lower(self) -> Tensor:
        """(K,) proved lower bounds; or the cutoff, if they reach it."""
        least = torch.minimum(self._aside, self.targets.cutoff)
        for nodes in (self._open, *self._unseen):
            least = least.scatter_reduce(0, nodes.target, nodes.bound, "amin")
        return least

    @property
    def done(self) -> bool:
        """Nothing is open."""
        return len(self._open) == 0 and not self._unseen

    def run(self, budget: Budget, enough: Callable[[Self], bool] = lambda search: False) -> str:
        """Run until nothing is open, the time is over, or it is `enough`; why it ended."""
        while True:
            self._prune()
            if self.done:
                return self._full if self.left_out else "closed"
            if budget.over:
                return "time"
            if self._unseen:
                self._open = self._open.joined(self._seen(self._unseen.pop()))
                continue
            full = len(self._open) > self._most_nodes and not self._relieved()
            if enough(self):
                return "enough"
            chosen = self._highest() if full else self._lowest()
            rest = torch.ones(len(self._open), dtype=torch.bool, device=chosen.device)
            rest[chosen] = False
            taken, self._open = self._open.take(chosen), self._open.take(rest)
            self._open = self._open.joined(self._expanded(taken, budget))

    @property
    def _full(self) -> str:
        return f"{self._most_nodes:,} open nodes"

    def _relieved(self) -> bool:
        """Give up the target with most open nodes at its current bound; False if it is the only one."""
        nodes = self._open
        count = torch.bincount(nodes.target, minlength=self.targets.count)
        if int((count > 0).sum()) < 2:
            return False
        leaving = nodes.target == count.argmax()
        self._put_aside(nodes.target[leaving], nodes.bound[leaving])
        self._keep(nodes, leaving)
        self._open = nodes.take(~leaving)
        self.left_out += 1
        return True

    def _try(self, target: Tensor, moves: Tensor) -> None:
        """Keep the best value of each target."""
        value = self.targets.take(target).reached(moves)
        least = self.best.scatter_reduce(0, target, value, "amin")
        winner = (value == least[target]) & (value < self.best[target])
        self.best_moves[target[winner]] = moves[winner]
        self.met[target[winner]] = True
        self.best = least

    def _put_aside(self, target: Tensor, bound: Tensor) -> None:
        self._aside = self._aside.scatter_reduce(0, target, bound, "amin")

    def _prune(self) -> None:
        """Close nodes that reach the limit, at their own bounds."""
        nodes = self._open
        done = nodes.bound >= self.limit[nodes.target]
        self._put_aside(nodes.target[done], nodes.bound[done])
        self._keep(nodes, done)
        self._open = nodes.take(~done)

    def _keep(self, nodes: N, done: Tensor) -> None:
        """Called with closed nodes, for searches that keep a record."""

    def _at_once(self) -> int:
        """Number of nodes to divide at once."""
        return self._batch // 2

    def _highest(self) -> Tensor:
        """The nodes to divide if memory is full: those that are closed soonest."""
        return self._open.bound.topk(min(len(self._open), self._at_once())).indices

    def _lowest(self) -> Tensor:
        """The nodes to divide: the lowest of each target first, then the second lowest, ..."""
        nodes, count = self._open, self._at_once()
        if len(nodes) <= count:
            return torch.arange(len(nodes), device=nodes.target.device)
        by_bound = nodes.bound.argsort(stable=True)
        order = by_bound[nodes.target[by_bound].argsort(stable=True)]
        target = nodes.target[order]
        first = torch.searchsorted(target, target)
        rank = torch.arange(len(order), device=order.device) - first
        return order[rank.argsort(stable=True)[:count]]
