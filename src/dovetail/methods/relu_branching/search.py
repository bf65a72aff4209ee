"""Branching over the signs of ReLUs: divides the neuron whose lines are farthest apart.

Nodes that cannot be divided are solved exactly (`leaf`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dovetail.methods.relu_branching.best_first import BestFirst
from dovetail.methods.relu_branching.bounding import LEAF_STEPS, Bounding
from dovetail.methods.relu_branching.leaf import LeafProof, leaf_proof, settled
from dovetail.methods.relu_branching.nodes import KnownNeurons, Nodes
from dovetail.methods.relu_branching.targets import Targets
from dovetail.run import work
from dovetail.run.budget import Budget

BYTES = 33
"""Bytes per neuron in a record: two bounds, a slope, a multiplier and a sign."""


@dataclass(frozen=True)
class SearchOptions:
    """Sizes of a search."""

    batch: int = 512
    """Number of nodes bounded at a time."""
    most_nodes: int = 400_000
    """Largest number of open nodes, about 2 kB each for 32 neurons."""
    steps: int = 5
    """Steps of Adam per node."""
    tolerance: float = 1e-7
    """How far below the best value a node may be closed."""
    single: bool = False
    """Whether slopes and multipliers are computed in single precision; bounds are computed in double
    precision."""
    record_bytes: int = 0
    """Largest number of bytes for closed nodes; beyond it none are kept."""
    fresh: bool = False
    """Whether ranges of a node use its own signs alone, as the checker does."""


class ReluSearch(BestFirst[Nodes]):
    """One search over signs."""

    def __init__(
        self,
        targets: Targets,
        options: SearchOptions | None = None,
        known: KnownNeurons | None = None,
        divided: Nodes | None = None,
    ) -> None:
        """`known` ranges hold on the sets of the targets, which were `divided` by an earlier search with
        other values."""
        options = options or SearchOptions()
        fresh, steps = options.fresh, options.steps
        self._bounding = Bounding(targets, steps, single=options.single, known=known, fresh=fresh)
        self._record_bytes = options.record_bytes
        self.records: list[Nodes] | None = [] if options.record_bytes else None
        """Closed nodes with the slopes and multipliers of their bounds; None if they are not kept."""
        self.solved: list[tuple[Nodes, LeafProof]] = []
        """The nodes that were solved exactly."""
        self._divided = divided
        super().__init__(targets, options.batch, options.most_nodes, options.tolerance)
        if divided is not None:
            endless = torch.full_like(divided.bound, -torch.inf)
            every = torch.arange(len(divided), device=endless.device)
            unseen = replace(divided, bound=endless)
            if known is not None:
                lower = torch.fmax(unseen.lower, known.lower[unseen.target])
                unseen = replace(
                    unseen, lower=lower, upper=torch.fmin(unseen.upper, known.upper[unseen.target])
                )
            parts = every.split(options.batch)  # type: ignore[no-untyped-call]
            self._unseen = [unseen.take(part) for part in parts]

    def _roots(self) -> Nodes:
        roots = self._bounding.roots()
        if self._divided is not None:
            return roots.take(~torch.isin(roots.target, self._divided.target))
        return self._bounded(roots)

    def _seen(self, nodes: Nodes) -> Nodes:
        return self._bounded(nodes)

    @property
    def divided(self) -> Nodes | None:
        """The nodes that cover all points of the sets; None if they were not kept."""
        if self.records is None:
            return None
        nodes = self._open
        for more in (*self._unseen, *self.records, *(one for one, _ in self.solved)):
            nodes = nodes.joined(more)
        return nodes.take(nodes.bound < torch.inf)

    def _bounded(self, nodes: Nodes, settled: int = 0) -> Nodes:
        """Nodes with bounds; the points that they suggest are tried too."""
        if not len(nodes):
            return nodes
        found = self._bounding.bounded(nodes, self.limit[nodes.target], settled=settled)
        self.nodes += len(nodes)
        work.count(nodes=len(nodes), effort=3.5e-2 + 6e-6 * len(nodes))
        self._try(found.nodes.target, found.moves)
        return found.nodes

    def _expanded(self, taken: Nodes, budget: Budget) -> Nodes:
        """Children by the vector that is divided, because ranges up to it stay; leaves are solved."""
        leaf = taken.choice < 0
        found = self._solved(taken.take(leaf), budget)
        first = 0
        for place, size in zip(self._bounding.neurons.places, self._bounding.neurons.sizes, strict=True):
            here = taken.take((taken.choice >= first) & (taken.choice < first + size))
            found = found.joined(self._bounded(self._bounding.children(here), place))
            first += size
        return found

    def _solved(self, leaves: Nodes, budget: Budget) -> Nodes:
        """Nodes without a neuron to divide: better multipliers first, those of their LPs next, many at a
        time; then exactly, one by one. Solved ones are closed; the rest is returned."""
        if not len(leaves):
            return leaves
        limit, last = self.limit[leaves.target], self._bounding.neurons.last
        leaves = self._bounding.bounded(leaves, limit, LEAF_STEPS, last).nodes
        weak = leaves.bound < limit
        if bool(weak.any()):
            done, (found, points) = leaves.take(~weak), settled(leaves.take(weak), self._bounding)
            self._try(found.target, points)
            leaves = done.joined(found)
        limit = self.limit[leaves.target]
        rest = torch.ones_like(leaves.target, dtype=torch.bool)
        for k in torch.nonzero(leaves.bound < limit).ravel().tolist():
            if budget.over:
                break
            node = leaves.take(torch.tensor([k], device=leaves.target.device))
            proof = leaf_proof(node, self._bounding, budget)
            proved = torch.fmax(node.bound, torch.full_like(node.bound, proof.bound))
            self._put_aside(node.target, proved)
            rest[k] = False
            if self.records is not None:
                self.solved.append((replace(node, bound=proved), proof))
            if proof.moves is not None:
                self._try(node.target, torch.as_tensor(proof.moves, device=node.target.device)[None])
        return leaves.take(rest)

    def _keep(self, nodes: Nodes, done: Tensor) -> None:
        if self.records is None:
            return
        self.records.append(nodes.take(done))
        size = sum(part.sign.numel() for part in self.records) * BYTES
        self.records = self.records if size <= self._record_bytes else None
