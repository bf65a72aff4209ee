"""Linear bounds of nonlinear steps between the bounds of what they read: one below, one above, per value."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dovetail.bounds.box import UNIT

OUTWARD = 8.0 * UNIT
"""Relative: slopes and offsets of lines are computed in a few operations, and must not come out inside."""

STEEP = 2.0
"""The line below a ReLU rises where what is above 0 is so many times what is below. At 1 its triangle is the
smallest, but a line that rises also carries on what is uncertain in the layers before, and with depth that
counts (function 6x32: 12,400 boxes where 1 takes 16,800, 1.5 about as many; of some batches a fifth of the
boxes is left open; networks of three layers hardly care)."""

Between = tuple[Tensor, Tensor]
"""(N, size) bounds of a vector."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """below_slopes z + below_offset <= function(z) <= above_slopes z + above_offset, value by value.

    One slope per vector that the step reads.
    """

    below_slopes: tuple[Tensor, ...]
    below_offset: Tensor
    above_slopes: tuple[Tensor, ...]
    above_offset: Tensor


def goes_on(lower: Tensor, upper: Tensor) -> Tensor:
    """The lower slope of a ReLU whose sign is open: 1 where much more is above 0 than below, else 0."""
    return (upper > -STEEP * lower).to(lower.dtype)


def relu_lines(lower: Tensor, upper: Tensor) -> Relaxation:
    """Above: the chord. Below: one of the two sides goes on (see `goes_on`)."""
    crossing = (lower < 0.0) & (upper > 0.0)
    sure = (lower >= 0.0).to(lower.dtype)  # slopes where the sign is known
    chord = upper / torch.where(crossing, upper - lower, 1.0) * (1.0 + OUTWARD)
    nothing = torch.zeros_like(lower)
    return Relaxation(
        (torch.where(crossing, goes_on(lower, upper), sure),),
        nothing,
        (torch.where(crossing, chord, sure),),
        torch.where(crossing, chord * -lower * (1.0 + OUTWARD), nothing),
    )


def relu_range(lower: Tensor, upper: Tensor) -> Between:
    """Exact."""
    return torch.relu(lower), torch.relu(upper)


def multiplied(left: Between, right: Between) -> Relaxation:
    """The product of two values: of McCormick's two planes below (and above) the one half-way between.

    With x = x0 + p, y = y0 + q around the middles, x y = y0 x + x0 y - x0 y0 + p q, and |p q| is at most the
    product of the half widths.
    """
    (x0, p), (y0, q) = _middle(*left), _middle(*right)
    rest = p * q + OUTWARD * (x0.abs() + p) * (y0.abs() + q)
    return Relaxation((y0, x0), -x0 * y0 - rest, (y0, x0), -x0 * y0 + rest)


def product_range(left: Between, right: Between) -> Between:
    """At the corners; 0 times infinity is 0 there."""
    corners = torch.stack(
        [torch.nan_to_num(x * y, nan=0.0, posinf=torch.inf, neginf=-torch.inf) for x in left for y in right]
    )
    low, high = corners.amin(0), corners.amax(0)
    return low - OUTWARD * low.abs(), high + OUTWARD * high.abs()


def _middle(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """A point about the middle, and how far from it the bounds are at most."""
    middle = 0.5 * lower + 0.5 * upper
    return middle, torch.maximum(upper - middle, middle - lower) * (1.0 + OUTWARD)
