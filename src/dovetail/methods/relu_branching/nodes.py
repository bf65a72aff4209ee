"""Nodes of the tree: which ReLUs are split, what is known there, and the choices that proved it best."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Nodes:
    """P of them, for any number of targets; H neurons side by side."""

    target: Tensor
    """(P,) whose tree each belongs to."""
    bound: Tensor
    """(P,) no point of the node has a lower value."""
    lower: Tensor
    """(P, H) what each ReLU reads at least, and below at most."""
    upper: Tensor
    sign: Tensor
    """(P, H) 1 or -1 where the node holds only points whose neuron is on, or off; 0 where it is not split."""
    slope: Tensor
    """(P, H) lower slopes of neurons that may change sign, between 0 and 1."""
    multiplier: Tensor
    """(P, H) of the sign conditions, never negative."""
    choice: Tensor
    """(P,) the neuron to split next; -1 where none may change sign."""
    arriving: Tensor
    """(P,) the weight that arrives at that neuron's ReLU from behind, in the plane of the bound."""

    def __len__(self) -> int:
        return len(self.target)

    def take(self, chosen: Tensor) -> Nodes:
        """Some of them, by index or mask."""
        return Nodes(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def of_kind(self, dtype: torch.dtype) -> Nodes:
        """The same with numbers of another kind."""
        parts = (getattr(self, field.name) for field in fields(self))
        return Nodes(*(part.to(dtype) if part.is_floating_point() else part for part in parts))

    def joined(self, other: Nodes) -> Nodes:
        """Both."""
        return Nodes(*(torch.cat([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

    def children(self) -> Nodes:
        """Every node with its chosen neuron on, then with it off.

        Its slope becomes 1 or 0, and its multiplier takes up the difference: both children begin with the
        plane of the node, and what they bring comes on top.
        """
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
