"""Branching over the signs of ReLUs: divides the neuron whose lines are farthest apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from dovetail.branching.set_search import SetSearch
from dovetail.branching.sign_bounds import LEAF_STEPS, Bounding
from dovetail.branching.sign_nodes import KnownNeurons, Nodes
from dovetail.branching.targets import Targets

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
    """Largest number of bytes for closed nodes; with more none are kept."""
    fresh: bool = False
    """Whether ranges of a node use its own signs alone, as the checker does."""


class SignSearch(SetSearch[Nodes]):
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
        self.bounding = Bounding(targets, steps, single=options.single, known=known, fresh=fresh)
        self._record_bytes = options.record_bytes
        self._records: list[Nodes] | None = [] if options.record_bytes else None
        """Closed nodes with the slopes and multipliers of their bounds; None if they are not kept."""
        self._divided = divided
        super().__init__(targets, options.batch, options.most_nodes, options.tolerance)
        if divided is not None:
            lower, upper = divided.lower, divided.upper
            if known is not None:
                lower = torch.fmax(lower, known.lower[divided.target])
                upper = torch.fmin(upper, known.upper[divided.target])
            endless = torch.full_like(divided.bound, -torch.inf)
            unseen = replace(divided, bound=endless, lower=lower, upper=upper)
            every = torch.arange(len(divided), device=endless.device)
            self._unseen = [unseen.take(part) for part in every.split(options.batch)]  # type: ignore[no-untyped-call]

    def _roots(self) -> Nodes:
        roots = self.bounding.roots()
        if self._divided is not None:
            return roots.take(~torch.isin(roots.target, self._divided.target))
        return self._bounded(roots)

    @property
    def kept(self) -> int:
        """Number of nodes that cover all points of the sets."""
        return sum(map(len, (self.frontier, *self._unseen, *(self._records or ()))))

    @property
    def divided(self) -> Nodes | None:
        """These nodes; None if they were not kept."""
        if self._records is None:
            return None
        return self.frontier.parts.joined(*self._unseen, *self._records)

    def _bounded(self, parts: Nodes, settled: int = 0) -> Nodes:
        if not len(parts):
            return parts
        found = self.bounding.bounded(parts, self.limit[parts.target], settled=settled)
        self._counted(len(parts))
        self._try(found.nodes.target, found.moves)
        return found.nodes

    def _expanded(self, taken: Nodes) -> Nodes:
        """Children by the vector that is divided, because ranges up to it stay; leaves are closed."""
        found, first, neurons = taken.take(taken.choice < -1), 0, self.bounding.neurons
        for place, size in zip(neurons.places, neurons.sizes, strict=True):
            here = taken.take((taken.choice >= first) & (taken.choice < first + size))
            found = found.joined(self._bounded(self.bounding.children(here), place))
            first += size
        self._close_leaves(taken.take(taken.choice < 0))
        return found

    def _close_leaves(self, leaves: Nodes) -> None:
        """Nodes without a neuron to divide: better multipliers first, then those of their LPs."""
        if not len(leaves):
            return
        limit, last = self.limit[leaves.target], self.bounding.neurons.last
        leaves = self.bounding.bounded(leaves, limit, LEAF_STEPS, last).nodes
        weak = leaves.bound < limit
        if bool(weak.any()):
            found = self.bounding.settled(leaves.take(weak))
            self._try(found.nodes.target, found.moves)
            leaves = leaves.take(~weak).joined(found.nodes)
        self._put_aside(leaves)

    def _put_aside(self, parts: Nodes) -> None:
        super()._put_aside(parts)
        if self._records is not None and len(parts):
            self._records.append(parts)
            size = sum(part.sign.numel() for part in self._records) * BYTES
            self._records = self._records if size <= self._record_bytes else None
