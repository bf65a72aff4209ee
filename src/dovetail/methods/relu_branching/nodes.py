"""Nodes of the tree: which ReLUs are split, what is known there, and the choices that proved it best.

Neurons of the first layer are linear in the inputs, so that the sign of one that is decided is one more row
that cuts the set of inputs: for any mu >= 0

    z_h  >=  min z_h - mu s z_i        where  s z_i >= 0,

the least over the whole set, in closed form. All pairs are looked at once, with the mu of each that proves
most, and every split of a neuron in the first layer then makes the others' ranges smaller for nothing (wine,
two layers of 32 neurons: by a tenth, each time; as far in two thirds of the time).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from dovetail.bounds.planes.moves import Moves
from dovetail.bounds.planes.network_planes import NetworkPlanes, Ranges
from dovetail.methods.relu_branching.best_first import AnyNodes

MOST_NEURONS = 128
"""Largest number of neurons of the first layer: there are four times the square of that many pairs."""
STEEPEST = 8.0
"""Largest mu, in widths of the two ranges."""
ROUNDS = 8
"""Steps of a golden section."""
GOLDEN = 0.5 * (5.0**0.5 - 1.0)


@dataclass(frozen=True, eq=False)
class Nodes(AnyNodes):
    """P nodes, for any number of targets; H neurons side by side."""

    lower: Tensor
    """(P, H) lower bound of each ReLU's input; `upper` likewise."""
    upper: Tensor
    sign: Tensor
    """(P, H) 1 or -1 if the neuron is on or off at all points of the node; 0 if it is not divided."""
    slope: Tensor
    """(P, H) lower slopes of neurons that may change sign, between 0 and 1."""
    multiplier: Tensor
    """(P, H) nonnegative multipliers of the sign conditions."""
    choice: Tensor
    """(P,) the neuron to divide next; -1 if none may change sign."""
    arriving: Tensor
    """(P,) the weight of that neuron's ReLU in the plane of the bound."""

    def of_kind(self, dtype: torch.dtype) -> Nodes:
        """The same in another precision."""
        parts = (getattr(self, field.name) for field in fields(self))
        return Nodes(*(part.to(dtype) if part.is_floating_point() else part for part in parts))

    def children(self) -> Nodes:
        """Every node with its chosen neuron on, then with it off. Its slope becomes 1 or 0, and its
        multiplier compensates, so that both children begin with the plane of the node."""
        rows = torch.arange(len(self), device=self.target.device)
        pull, slope = self.arriving.clamp(min=0.0), self.slope[rows, self.choice]
        sides = []
        for side, change in ((1, 1.0 - slope), (-1, slope)):
            lower, upper, sign = self.lower.clone(), self.upper.clone(), self.sign.clone()
            (lower if side > 0 else upper)[rows, self.choice] = 0.0
            sign[rows, self.choice] = side
            multiplier = self.multiplier.clone()
            multiplier[rows, self.choice] = pull * change
            sides.append(replace(self, lower=lower, upper=upper, sign=sign, multiplier=multiplier))
        return sides[0].joined(sides[1])


def unstable(nodes: Nodes) -> Tensor:
    """(P, H) neurons that may change sign."""
    return (nodes.lower < 0.0) & (nodes.upper > 0.0)


@dataclass(frozen=True, eq=False)
class SignPairs:
    """The effect of the sign of one neuron on the ranges of others, for h neurons over K sets: (K, 2, h, h),
    by side (on, off) and decided neuron."""

    lower: Tensor
    upper: Tensor

    def take(self, chosen: Tensor) -> SignPairs:
        """Over some of the sets, by index."""
        return SignPairs(self.lower[chosen], self.upper[chosen])

    def applied(self, nodes: Nodes) -> Nodes:
        """Nodes after their chosen neuron, one of the first layer, was decided."""
        rows = torch.arange(len(nodes), device=nodes.target.device)
        off = (nodes.sign[rows, nodes.choice] < 0).long()
        end = self.lower.shape[-1]
        lower, upper = nodes.lower.clone(), nodes.upper.clone()
        lower[:, :end] = torch.fmax(lower[:, :end], self.lower[nodes.target, off, nodes.choice])
        upper[:, :end] = torch.fmin(upper[:, :end], self.upper[nodes.target, off, nodes.choice])
        return replace(nodes, lower=lower, upper=upper)


@dataclass(frozen=True, eq=False)
class KnownNeurons:
    """Ranges of H neurons over K sets, valid at any prices."""

    lower: Tensor
    """(K, H) lower bounds of the neurons' inputs; `upper` likewise."""
    upper: Tensor
    pairs: SignPairs | None = None
    """Of the first layer."""

    @classmethod
    def nothing(cls, count: int, neurons: int, like: Tensor) -> KnownNeurons:
        """Infinite ranges."""
        upper = torch.full((count, neurons), torch.inf, dtype=like.dtype, device=like.device)
        return cls(-upper, upper)

    def take(self, chosen: Tensor) -> KnownNeurons:
        """Over some of the sets, by index."""
        pairs = None if self.pairs is None else self.pairs.take(chosen)
        return KnownNeurons(self.lower[chosen], self.upper[chosen], pairs)

    def beside(self, lower: Tensor, upper: Tensor) -> KnownNeurons:
        """These neurons, then those of another layer, over the same sets."""
        return KnownNeurons(
            torch.cat([self.lower, lower], dim=1), torch.cat([self.upper, upper], dim=1), self.pairs
        )


def sign_pairs(planes: NetworkPlanes, domain: Moves, place: int) -> SignPairs | None:
    """The pairs of the vector at `place`, affine in the inputs; None if it is too long."""
    neurons = planes.graph.sizes[place]
    if neurons > MOST_NEURONS:
        return None
    ranges = planes.ranges(domain)
    sets = [_of_set(planes, domain, place, ranges, k) for k in range(len(domain.origin))]
    return SignPairs(torch.stack([one.lower for one in sets]), torch.stack([one.upper for one in sets]))


def _of_set(planes: NetworkPlanes, domain: Moves, place: int, ranges: Ranges, k: int) -> SignPairs:
    chosen = torch.tensor([k], device=domain.origin.device)
    pairs = _Pairs(planes, domain.take(chosen), place, ranges.take(chosen))
    best = pairs.searched().reshape(2, 2, pairs.neurons, pairs.neurons)
    return SignPairs(best[:, 0], -best[:, 1])


class _Pairs:
    """All pairs over one set: by side, by least or largest value, by i, by h."""

    def __init__(self, planes: NetworkPlanes, domain: Moves, place: int, ranges: Ranges) -> None:
        self._planes, self._domain, self._place, self._ranges = planes, domain, place, ranges
        self.neurons = planes.graph.sizes[place]
        like = domain.origin
        eye = torch.eye(self.neurons, dtype=like.dtype, device=like.device)
        ways = torch.tensor([1.0, -1.0], dtype=like.dtype, device=like.device)
        shape = (2, 2, self.neurons, self.neurons, self.neurons)
        self._asked = (ways[None, :, None, None, None] * eye).expand(shape).reshape(-1, self.neurons)
        decided = ways[:, None, None, None, None] * eye[:, None]
        self._decided = decided.expand(shape).reshape(-1, self.neurons)
        width = (ranges.upper[place] - ranges.lower[place])[0]
        scale = width[None, :] / torch.where(width > 0.0, width, 1.0)[:, None]
        self._steepest = STEEPEST * scale.expand(2, 2, -1, -1).reshape(-1)

    def searched(self) -> Tensor:
        """(pairs,) the best bound over mu."""
        low, high = torch.zeros_like(self._steepest), self._steepest
        best = self._proved(low)
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right = self._proved(left), self._proved(right)
        for _ in range(ROUNDS):
            best = torch.fmax(best, torch.fmax(at_left, at_right))
            rises = at_left < at_right
            low, high = torch.where(rises, left, low), torch.where(rises, high, right)
            middle = torch.where(rises, low + GOLDEN * (high - low), high - GOLDEN * (high - low))
            value = self._proved(middle)
            left, right = torch.where(rises, right, middle), torch.where(rises, middle, left)
            at_left, at_right = torch.where(rises, at_right, value), torch.where(rises, value, at_left)
        return torch.fmax(best, torch.fmax(at_left, at_right))

    def _proved(self, mu: Tensor) -> Tensor:
        """(pairs,) asked z - mu decided z, over the whole set."""
        rows = self._asked - mu[:, None] * self._decided
        plane = self._planes.planes_at(self._place, rows, self._ranges)
        return self._domain.minimum(plane.slopes, plane.offset)[0]
