"""Linear bounds of nonlinear steps between the bounds of what they read: one below, one above, per value."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dovetail.bounds.box import UNIT

OUTWARD = 8.0 * UNIT
"""Relative: slopes and offsets of lines are computed in a few operations, and must not come out inside."""

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


def relu_lines(lower: Tensor, upper: Tensor) -> Relaxation:
    """Above: the chord. Below: the side that is farther from 0 goes on, which leaves the smaller triangle."""
    crossing = (lower < 0.0) & (upper > 0.0)
    sure = (lower >= 0.0).to(lower.dtype)  # slopes where the sign is known
    chord = upper / torch.where(crossing, upper - lower, 1.0) * (1.0 + OUTWARD)
    nothing = torch.zeros_like(lower)
    return Relaxation(
        (torch.where(crossing, (upper > -lower).to(lower.dtype), sure),),
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
