"""What is bounded: one number per set of inputs, many sets of one ReLU network at a time.

objective   value = costs't + rows f(x) + shift
condition   value = costs't,  over the x where  rows f(x) + shift <= 0
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
"""Relative: the cheapest points lie on the very edge of a condition, and rounding must not hide them."""


def is_relu_network(graph: Graph) -> bool:
    """Whether nothing in it bends but ReLUs that each read a step of their own."""
    bends = [step for step in graph.steps if not isinstance(step.operation, Affine)]
    plain = all(
        isinstance(step.operation, Elementwise) and step.operation.kind == "relu" and step.sources[0] > 0
        for step in bends
    )
    return plain and len({step.sources[0] for step in bends}) == len(bends) > 0


class Neurons:
    """The places of all values that ReLUs read, side by side in one vector."""

    def __init__(self, graph: Graph) -> None:
        self.places: list[int] = [
            step.sources[0] for step in graph.steps if not isinstance(step.operation, Affine)
        ]
        self.sizes = [graph.sizes[place] for place in self.places]
        self.count = sum(self.sizes)
        self.last = len(graph.steps)
        """The place of the outputs."""

    def joined(self, parts: Sequence[Tensor]) -> Tensor:
        """(N, count) of the vectors of a graph."""
        return torch.cat([parts[place] for place in self.places], dim=1)

    def cut(self, joined: Tensor) -> dict[int, Tensor]:
        """By place, from the joined vector: (N, size) each."""
        return dict(zip(self.places, torch.split(joined, self.sizes, dim=1), strict=True))


@dataclass(frozen=True, eq=False)
class Targets:
    """K of them."""

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
    """(K,) a value at or above it is as good as any: nobody asks how far above."""

    @property
    def count(self) -> int:
        """How many."""
        return len(self.shift)

    def take(self, chosen: Tensor) -> Targets:
        """Some of them, by index."""
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
        """The same in numbers of another kind: for guesses, which prove nothing."""
        parts = (self.costs, self.rows, self.shift, self.cutoff)
        costs, rows, shift, cutoff = (part.to(dtype) for part in parts)
        domain = self.domain.of_kind(dtype)
        return Targets(self.planes, domain, costs, rows, shift, self.condition, cutoff)

    def value_of(self, slopes: Tensor, offset: Tensor) -> Tensor:
        """(K,) what planes slopes (K, d), offset (K,) below rows f(x) prove.

        Each number is rounded once more here, which `minimum` takes off with what it does itself.
        """
        offset = offset + self.shift
        if self.condition:
            price = self.domain.condition_price(slopes, offset, self.costs).price
            slopes, offset = price[:, None] * slopes, price * offset
        return self.domain.minimum(slopes[:, None], offset[:, None], self.costs)[:, 0]

    def guess(self, slopes: Tensor, offset: Tensor) -> tuple[Tensor, Tensor]:
        """About what such planes prove, and the (K, m) moves where they are least: nothing is rounded."""
        offset = offset + self.shift
        if self.condition:
            found = self.domain.condition_price(slopes, offset, self.costs)
            return torch.where(found.possible, (self.costs * found.moves).sum(1), torch.inf), found.moves
        moves = self.domain.minimiser(slopes, self.costs)
        return (self.costs * moves).sum(1) + (slopes * self.domain.at(moves)).sum(1) + offset, moves

    def reached(self, moves: Tensor) -> Tensor:
        """(K,) the value that these moves have by the network itself; infinity where the condition fails, or
        they are no moves of the set.

        By the deployed one it may be as low: no proof excludes what its rounding may come to.
        """
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
