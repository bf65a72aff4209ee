"""Parts of sets by signs of neurons, with the ranges of neurons, slopes and multipliers of each."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from dovetail.branching.frontier import Parts


@dataclass(frozen=True, eq=False)
class Nodes(Parts):
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
    """The pairs of neurons of the first layer."""

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
