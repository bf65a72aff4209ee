"""Best-first branching over the signs of ReLUs, for all targets side by side.

Every round takes the nodes with the lowest bounds, of each target in turn, splits the neuron whose lines are
farthest apart, and bounds the children in one batch. What cannot be split any more is solved exactly
(`leaf`). A target's bound is the least over its open nodes and over all that were put aside, at their own
bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dovetail.methods.relu_branching.bounding import LEAF_STEPS, Bounding
from dovetail.methods.relu_branching.leaf import leaf_bound
from dovetail.methods.relu_branching.nodes import Nodes, unstable
from dovetail.methods.relu_branching.targets import Targets
from dovetail.run.budget import Budget


@dataclass(frozen=True)
class SearchOptions:
    """Sizes of the search."""

    batch: int = 512
    """Nodes bounded at a time: enough that Python's and torch's own time is small beside theirs."""
    most_nodes: int = 400_000
    """Open nodes in memory, about 2 kB each for 32 neurons."""
    steps: int = 5
    """Adam's, per node."""
    tolerance: float = 1e-7
    """How far below the best value met a node may be put aside."""


class ReluSearch:
    """One search; `run` may be called again to go on."""

    def __init__(self, targets: Targets, options: SearchOptions | None = None) -> None:
        self.targets, self._options = targets, options or SearchOptions()
        self.tolerance = self._options.tolerance
        self._bounding = Bounding(targets, self._options.steps)
        like = targets.shift
        self.best = torch.full_like(like, torch.inf)
        """(K,) the least value of a point met."""
        self.best_moves = torch.zeros_like(targets.costs)
        self.met = torch.zeros_like(like, dtype=torch.bool)
        """(K,) whether the best value is one of `best_moves`, not one that others have met."""
        self._aside = torch.full_like(like, torch.inf)
        self.nodes = 0
        self.leaves = 0
        self._open = self._bounded(self._bounding.roots())
        self.unstable = int(unstable(self._open).sum(1).max())
        """Neurons that may change sign at the roots, at most."""

    def know(self, values: Tensor) -> None:
        """(K,) values of points that others have met; infinity for none."""
        self.best = torch.minimum(self.best, values.to(self.best))

    @property
    def reachable(self) -> Tensor:
        """(K,) the most that `lower` can come to."""
        return torch.minimum(self.targets.cutoff, self.best)

    @property
    def limit(self) -> Tensor:
        """(K,) what a node's bound has to reach."""
        return torch.minimum(self.targets.cutoff, self.best - self.tolerance)

    @property
    def lower(self) -> Tensor:
        """(K,) no point has a lower value: proved; or the cutoff, where it is at least that."""
        least = torch.minimum(self._aside, self.targets.cutoff)
        return least.scatter_reduce(0, self._open.target, self._open.bound, "amin")

    @property
    def done(self) -> bool:
        """Nothing is open."""
        return len(self._open) == 0

    def run(self, budget: Budget, enough: Callable[[ReluSearch], bool] = lambda search: False) -> str:
        """Until nothing is open, the time is over, or it is `enough`; what ended it."""
        while True:
            self._prune()
            if self.done:
                return "closed"
            if budget.over:
                return "time"
            if len(self._open) > self._options.most_nodes:
                return f"{self._options.most_nodes:,} open nodes"
            if enough(self):
                return "enough"
            chosen = self._lowest()
            rest = torch.ones(len(self._open), dtype=torch.bool, device=chosen.device)
            rest[chosen] = False
            taken, self._open = self._open.take(chosen), self._open.take(rest)
            leaf = taken.choice < 0
            self._split(taken.take(~leaf))
            self._open = self._open.joined(self._solved(taken.take(leaf), budget))

    def _bounded(self, nodes: Nodes, settled: int = 0) -> Nodes:
        """With bounds; values of the points that they suggest are tried as well."""
        if not len(nodes):
            return nodes
        found = self._bounding.bounded(nodes, self.limit[nodes.target], settled=settled)
        self.nodes += len(nodes)
        self._try(found.nodes.target, found.moves)
        return found.nodes

    def _split(self, nodes: Nodes) -> None:
        """Children by the vector that is split: ranges up to it stay what they were."""
        first = 0
        for place, size in zip(self._bounding.neurons.places, self._bounding.neurons.sizes, strict=True):
            here = nodes.take((nodes.choice >= first) & (nodes.choice < first + size))
            self._open = self._open.joined(self._bounded(here.children(), place))
            first += size

    def _try(self, target: Tensor, moves: Tensor) -> None:
        """Keep the best value met of each target."""
        value = self.targets.take(target).reached(moves)
        least = self.best.scatter_reduce(0, target, value, "amin")
        winner = (value == least[target]) & (value < self.best[target])
        self.best_moves[target[winner]] = moves[winner]
        self.met[target[winner]] = True
        self.best = least

    def _prune(self) -> None:
        """Put aside what reaches the limit, at its own bound."""
        nodes = self._open
        done = nodes.bound >= self.limit[nodes.target]
        self._aside = self._aside.scatter_reduce(0, nodes.target[done], nodes.bound[done], "amin")
        self._open = nodes.take(~done)

    def _lowest(self) -> Tensor:
        """The nodes to split: the lowest of each target first, then the second lowest, ..."""
        nodes = self._open
        if 2 * len(nodes) <= self._options.batch:
            return torch.arange(len(nodes), device=nodes.target.device)
        by_bound = nodes.bound.argsort(stable=True)
        order = by_bound[nodes.target[by_bound].argsort(stable=True)]
        target = nodes.target[order]
        first = torch.searchsorted(target, target)
        rank = torch.arange(len(order), device=order.device) - first
        return order[rank.argsort(stable=True)[: self._options.batch // 2]]

    def _solved(self, leaves: Nodes, budget: Budget) -> Nodes:
        """Nodes without a neuron to split: better multipliers first, all at once; then exactly, one by one.

        What is solved is put aside at what is proved; the rest is handed back.
        """
        if not len(leaves):
            return leaves
        leaves = self._bounding.bounded(
            leaves, self.limit[leaves.target], LEAF_STEPS, self._bounding.neurons.last
        ).nodes
        weak = torch.nonzero(leaves.bound < self.limit[leaves.target]).ravel().tolist()
        for k in weak:
            if budget.over:
                break
            node = leaves.take(torch.tensor([k], device=leaves.target.device))
            bound, moves = leaf_bound(node, self._bounding, budget)
            proved = torch.fmax(node.bound, torch.full_like(node.bound, bound))
            self._aside = self._aside.scatter_reduce(0, node.target, proved, "amin")
            leaves.bound[k] = torch.inf  # it is put aside
            if moves is not None:
                self._try(node.target, torch.as_tensor(moves, device=node.target.device)[None])
            self.leaves += 1
        return leaves
