"""Sets of inputs over which linear functions are minimised cheaply, many at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from dovetail.bounds.box import UNIT

MORE = 4
"""Number of operations in addition to a sum: the centre, the half width, the offset."""


def gamma(operations: int, unit: float = UNIT) -> float:
    """The largest relative error of this number of float64 operations in sequence; twice the textbook bound,
    because it is used in rounded arithmetic itself."""
    return 2.0 * operations * unit / (1.0 - operations * unit)


SMALL = 4096
"""Size of a matrix below which multiplying and adding is faster than torch's batched products; measured on
one core."""


def dots(weights: Tensor, vectors: Tensor) -> Tensor:
    """(N, S) products of (N, S, d) and (N, d)."""
    if weights.device.type == "cpu" and weights.shape[1] * weights.shape[2] < SMALL:
        return (weights * vectors[:, None]).sum(2)
    return torch.bmm(weights, vectors[..., None])[..., 0]


class Domain(Protocol):
    """N sets of inputs, each within a box."""

    @property
    def lower(self) -> Tensor:
        """(N, d) of a box around each set."""
        ...

    @property
    def upper(self) -> Tensor:
        """(N, d)."""
        ...

    def minimum(self, slopes: Tensor, offsets: Tensor) -> Tensor:
        """(N, S) lower bounds of slopes x + offsets: slopes (N, S, d), offsets (N, S)."""
        ...

    def take(self, chosen: Tensor | slice) -> Domain:
        """A selection of the sets, by index."""
        ...


@dataclass(frozen=True, eq=False)
class Boxes:
    """All inputs between two finite bounds."""

    lower: Tensor
    upper: Tensor

    def minimum(self, slopes: Tensor, offsets: Tensor) -> Tensor:
        """Every input at the bound that its slope prefers."""
        middle, half = 0.5 * self.lower + 0.5 * self.upper, 0.5 * self.upper - 0.5 * self.lower
        size = torch.maximum(self.lower.abs(), self.upper.abs())
        noise = gamma(slopes.shape[2] + MORE)
        off = half + noise * size
        return dots(slopes, middle) - dots(slopes.abs(), off) + (offsets - noise * offsets.abs())

    def minimiser(self, slopes: Tensor) -> Tensor:
        """(N, d) the minimiser of slopes x, with slopes (N, d)."""
        return torch.where(slopes > 0.0, self.lower, self.upper)

    def take(self, chosen: Tensor | slice) -> Boxes:
        """A selection of the boxes, by index."""
        return Boxes(self.lower[chosen], self.upper[chosen])
