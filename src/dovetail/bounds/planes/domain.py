"""Sets of inputs over which a linear function has a least value that is cheap to find, many at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from dovetail.bounds.box import UNIT

MORE = 4
"""Operations beside a sum: the middle, the half, the offset."""


def gamma(operations: int, unit: float = UNIT) -> float:
    """What so many operations in a row (of float64) may be off by, relative to the sizes that they add up.

    Twice the bound of the textbooks: what is computed with it is rounded as well.
    """
    return 2.0 * operations * unit / (1.0 - operations * unit)


SMALL = 4096
"""Numbers in a matrix below which multiplying and adding up is faster than torch's batched products, which
start anew for every matrix; measured on one core, where a GPU does not care."""


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
        """(N, S) what slopes x + offsets is never below: slopes (N, S, d), offsets (N, S)."""
        ...

    def take(self, chosen: Tensor | slice) -> Domain:
        """Some of the sets, by index."""
        ...


@dataclass(frozen=True, eq=False)
class Boxes:
    """All inputs between two bounds, which are finite."""

    lower: Tensor
    upper: Tensor

    def minimum(self, slopes: Tensor, offsets: Tensor) -> Tensor:
        """Every input where its slope wants it."""
        middle, half = 0.5 * self.lower + 0.5 * self.upper, 0.5 * self.upper - 0.5 * self.lower
        size = torch.maximum(self.lower.abs(), self.upper.abs())
        noise = gamma(slopes.shape[2] + MORE)
        off = half + noise * size
        return dots(slopes, middle) - dots(slopes.abs(), off) + (offsets - noise * offsets.abs())

    def minimiser(self, slopes: Tensor) -> Tensor:
        """(N, d) where slopes x, with slopes (N, d), is least."""
        return torch.where(slopes > 0.0, self.lower, self.upper)

    def take(self, chosen: Tensor | slice) -> Boxes:
        """Some of the boxes, by index."""
        return Boxes(self.lower[chosen], self.upper[chosen])
