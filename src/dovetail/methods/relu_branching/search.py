"""Branching over the signs of ReLUs: splits the neuron whose lines are farthest apart.

What cannot be split any more is solved exactly (`leaf`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dovetail.methods.relu_branching.best_first import BestFirst
from dovetail.methods.relu_branching.bounding import LEAF_STEPS, Bounding
from dovetail.methods.relu_branching.leaf import LeafProof, leaf_proof
from dovetail.methods.relu_branching.nodes import KnownNeurons, Nodes
from dovetail.methods.relu_branching.targets import Targets
from dovetail.run import work
from dovetail.run.budget import Budget

BYTES = 33
"""Of a neuron in a record: two bounds, a slope, a multiplier and a sign."""


@dataclass(frozen=True)
class SearchOptions:
    """Sizes of a search."""

    batch: int = 512
    """Nodes bounded at a time: enough that Python's and torch's own time is small beside theirs."""
    most_nodes: int = 400_000
    """Open nodes in memory, about 2 kB each for 32 neurons."""
    steps: int = 5
    """Adam's, per node."""
    tolerance: float = 1e-7
    """How far below the best value met a node may be put aside."""
    single: bool = False
    """Whether slopes and multipliers are looked for in single precision: for searches that end well above its
    rounding. What they prove is computed in double precision all the same."""
    record_bytes: int = 0
    """Of all closed nodes, kept for a certificate; beyond it none are kept. Ranges of a node are of its own
    signs alone then, as those who look at it again will have them."""


class ReluSearch(BestFirst[Nodes]):
    """One search over signs."""

    def __init__(
        self, targets: Targets, options: SearchOptions | None = None, known: KnownNeurons | None = None
    ) -> None:
        """`known` of neurons holds on the sets of the targets."""
        options = options or SearchOptions()
        fresh = options.record_bytes > 0
        self._bounding = Bounding(targets, options.steps, single=options.single, known=known, fresh=fresh)
        self._record_bytes = options.record_bytes
        self.records: list[Nodes] | None = [] if options.record_bytes else None
        """Closed nodes, whose slopes and multipliers prove their bounds; None where they are not kept."""
        self.solved: list[tuple[Nodes, LeafProof]] = []
        """Those that were solved exactly: all signs together divide all points among them."""
        super().__init__(targets, options.batch, options.most_nodes, options.tolerance)

    def _roots(self) -> Nodes:
        return self._bounded(self._bounding.roots())

    def _bounded(self, nodes: Nodes, settled: int = 0) -> Nodes:
        """With bounds; values of the points that they suggest are tried as well."""
        if not len(nodes):
            return nodes
        found = self._bounding.bounded(nodes, self.limit[nodes.target], settled=settled)
        self.nodes += len(nodes)
        work.count(nodes=len(nodes), effort=3.5e-2 + 6e-6 * len(nodes))
        self._try(found.nodes.target, found.moves)
        return found.nodes

    def _expanded(self, taken: Nodes, budget: Budget) -> Nodes:
        """Children by the vector that is split, since ranges up to it stay what they were; leaves solved."""
        leaf = taken.choice < 0
        found = self._solved(taken.take(leaf), budget)
        first = 0
        for place, size in zip(self._bounding.neurons.places, self._bounding.neurons.sizes, strict=True):
            here = taken.take((taken.choice >= first) & (taken.choice < first + size))
            found = found.joined(self._bounded(self._bounding.children(here), place))
            first += size
        return found

    def _solved(self, leaves: Nodes, budget: Budget) -> Nodes:
        """Nodes without a neuron to split: better multipliers first, all at once; then exactly, one by one.

        What is solved is put aside at what is proved; the rest is handed back.
        """
        if not len(leaves):
            return leaves
        limit, last = self.limit[leaves.target], self._bounding.neurons.last
        leaves = self._bounding.bounded(leaves, limit, LEAF_STEPS, last).nodes
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
