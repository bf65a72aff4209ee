"""Leaves of branching over signs, with the numbers that prove them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from dovetail.certificates.proof import LARGEST_BYTES
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.methods.relu_branching.leaf import LeafProof
from dovetail.methods.relu_branching.nodes import Nodes
from dovetail.methods.relu_branching.search import ReluSearch, SearchOptions
from dovetail.methods.relu_branching.targets import Neurons, Targets
from dovetail.run.budget import Budget

MOST_NUMBERS = 1_200_000
"""Leaves times neurons, beyond which a search ends: the checker takes half a millisecond for 32 of them."""
AT_ONCE = 4096
"""Leaves whose conditions are priced at a time."""


@dataclass(frozen=True, eq=False)
class SignLeaves:
    """L of them; H neurons side by side."""

    target: IntArray
    bound: FloatArray
    """(L,) what each proves, as its search has it."""
    sign: FloatArray
    """(L, H) 1 or -1 where it is decided."""
    objective: FloatArray
    """(L,) 1, or 0 where nothing is there."""
    slope: FloatArray
    """(L, H)."""
    multiplier: FloatArray
    """(L, H) of decided signs."""
    price: FloatArray
    """(L,) of the condition; 0 of targets that have none."""

    def __len__(self) -> int:
        return len(self.target)

    def take(self, chosen: IntArray) -> SignLeaves:
        """Some of them."""
        return SignLeaves(*(getattr(self, field.name)[chosen] for field in fields(self)))


class _Recorded(ReluSearch):
    """Keeps the nodes that it closes."""

    @property
    def kept(self) -> int:
        """Leaves so far."""
        return len(self._open) + len(self.solved) + sum(len(nodes) for nodes in self.records or [])

    def recorded(self) -> SignLeaves | None:
        """Those, and what is still open; None where they are too many."""
        if self.records is None:
            return None
        plain = self._open
        for nodes in self.records:
            plain = plain.joined(nodes)
        prices = [self._bounding.prices(some) for some in _pieces(plain)]
        found = [_leaves(plain, torch.cat([plain.bound[:0], *prices]), condition=self.targets.condition)]
        found += [_solved(node, proof) for node, proof in self.solved]
        names = [field.name for field in fields(SignLeaves)]
        return SignLeaves(*(np.concatenate([getattr(one, name) for one in found]) for name in names))


def searched(
    targets: Targets,
    tolerance: float,
    batch: int,
    budget: Budget,
    aim: Tensor | None = None,
    share: float = 1.0,
) -> SignLeaves | None:
    """The leaves of all targets; `aim` (K,): what is enough; `share` of the leaves that may be, at most. None
    where they cannot be kept."""
    options = SearchOptions(batch=batch, tolerance=tolerance, record_bytes=LARGEST_BYTES)
    search = _Recorded(targets, options)
    if aim is not None:
        search.know(aim)
    most = share * MOST_NUMBERS / Neurons(targets.planes.graph).count
    search.run(budget, lambda search: search.kept > most)
    return search.recorded()


def _pieces(nodes: Nodes) -> list[Nodes]:
    count = max(1, -(-len(nodes) // AT_ONCE))
    return [nodes.take(part) for part in torch.tensor_split(torch.arange(len(nodes)), count)]


def _solved(node: Nodes, proof: LeafProof) -> SignLeaves:
    plain = _leaves(node, node.bound, condition=False)
    return replace(
        plain,
        objective=np.array([proof.objective]),
        multiplier=proof.signs[None],
        price=np.array([proof.price]),
    )


def _leaves(nodes: Nodes, price: Tensor, *, condition: bool) -> SignLeaves:
    weight = price if condition else torch.ones_like(price)
    return SignLeaves(
        nodes.target.numpy(),
        nodes.bound.numpy(),
        nodes.sign.numpy().astype(float),
        np.ones(len(nodes)),
        nodes.slope.numpy(),
        (weight[:, None] * nodes.multiplier).numpy(),
        price.numpy() if condition else np.zeros(len(nodes)),
    )
