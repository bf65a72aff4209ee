"""The quantities to bound: one number per set of inputs, for many sets of one ReLU network.

objective: value = costs't + rows f(x) + shift; condition: value = costs't, over the x with rows f(x) + shift
<= 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dovetail.bounds.planes.moves import Moves
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.core.mip import HAIR
from dovetail.networks.graph import Affine, Elementwise, Graph

EDGE = 1e-9
"""Relative: the cheapest points lie on the edge of a condition, and rounding must not exclude them."""


def is_relu_network(graph: Graph) -> bool:
    """Whether all nonlinear steps are ReLUs that read a step of their own."""
    bends = [step for step in graph.steps if not isinstance(step.operation, Affine)]
    plain = all(
        isinstance(step.operation, Elementwise) and step.operation.kind == "relu" and step.sources[0] > 0
        for step in bends
    )
    return plain and len({step.sources[0] for step in bends}) == len(bends) > 0


class Neurons:
    """The places of all values that ReLUs read, concatenated in one vector."""

    def __init__(self, graph: Graph) -> None:
        self.places: list[int] = [
            step.sources[0] for step in graph.steps if not isinstance(step.operation, Affine)
        ]
        self.sizes = [graph.sizes[place] for place in self.places]
        self.count = sum(self.sizes)
        self.last = len(graph.steps)
        """The place of the outputs."""

    def joined(self, parts: Sequence[Tensor]) -> Tensor:
        """(N, count) from the vectors of a graph."""
        return torch.cat([parts[place] for place in self.places], dim=1)

    def cut(self, joined: Tensor) -> dict[int, Tensor]:
        """The (N, size) vectors by place, from the joined vector."""
        return dict(zip(self.places, torch.split(joined, self.sizes, dim=1), strict=True))


@dataclass(frozen=True, eq=False)
class Targets:
    """K targets."""

    planes: NetworkPlanes
    domain: Moves
    costs: Tensor
    """(K, m)."""
    rows: Tensor
    """(K, outputs)."""
    shift: Tensor
    """(K,)."""
    condition: bool
    cutoff: Tensor
    """(K,) values at which a better bound is not needed."""

    @property
    def count(self) -> int:
        """Number of targets."""
        return len(self.shift)

    def take(self, chosen: Tensor) -> Targets:
        """A selection of the targets, by index."""
        return Targets(
            self.planes,
            self.domain.take(chosen),
            self.costs[chosen],
            self.rows[chosen],
            self.shift[chosen],
            self.condition,
            self.cutoff[chosen],
        )

    def of_kind(self, dtype: torch.dtype) -> Targets:
        """The same in another precision, for guesses without a proof."""
        parts = (self.costs, self.rows, self.shift, self.cutoff)
        costs, rows, shift, cutoff = (part.to(dtype) for part in parts)
        domain = self.domain.of_kind(dtype)
        return Targets(self.planes, domain, costs, rows, shift, self.condition, cutoff)

    def value_of(self, slopes: Tensor, offset: Tensor) -> Tensor:
        """(K,) bounds by planes slopes (K, d), offset (K,) below rows f(x). One further rounding of each
        number is subtracted by `minimum`."""
        offset = offset + self.shift
        if self.condition:
            price = self.domain.condition_price(slopes, offset, self.costs).price
            slopes, offset = price[:, None] * slopes, price * offset
        return self.domain.minimum(slopes[:, None], offset[:, None], self.costs)[:, 0]

    def guess(self, slopes: Tensor, offset: Tensor) -> tuple[Tensor, Tensor]:
        """An approximate bound by such planes, and the (K, m) minimising moves, without rounding."""
        offset = offset + self.shift
        if self.condition:
            found = self.domain.condition_price(slopes, offset, self.costs)
            return torch.where(found.possible, (self.costs * found.moves).sum(1), torch.inf), found.moves
        moves = self.domain.minimiser(slopes, self.costs)
        return (self.costs * moves).sum(1) + (slopes * self.domain.at(moves)).sum(1) + offset, moves

    def reached(self, moves: Tensor) -> Tensor:
        """(K,) the value of these moves by the network itself; infinity if the condition fails, or they are
        outside the set. The deployed network may have the same value, so no proof excludes it."""
        x = self.domain.at(moves)
        at = self.planes.at(x)
        outputs = at.lower[-1]
        here = (self.rows * outputs).sum(1)
        if self.planes.rounds:
            plane = self.planes.planes(self.rows[:, None], at)
            here = torch.minimum(here, (plane.slopes[:, 0] * x).sum(1) + plane.offset[:, 0])
        here = here + self.shift
        met = here <= EDGE * (1.0 + outputs.abs().amax(1))
        spent = (self.costs * moves).sum(1)
        domain, used = self.domain, (self.domain.weights * moves).sum(1)
        within = (used <= domain.most * (1.0 + HAIR) + HAIR) & (used >= domain.least * (1.0 - HAIR) - HAIR)
        within &= ((moves >= -HAIR) & (moves <= domain.limit * (1.0 + HAIR) + HAIR)).all(1)
        return (
            torch.where(within & met, spent, torch.inf)
            if self.condition
            else (torch.where(within, spent + here, torch.inf))
        )
