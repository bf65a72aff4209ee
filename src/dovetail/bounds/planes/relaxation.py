"""Two lines for every value of a nonlinear step: one below the function between two bounds, one above."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dovetail.bounds.planes.domain import UNIT

OUTWARD = 8.0 * UNIT
"""Relative: slopes and offsets of lines are computed in a few operations, and must not come out inside."""


@dataclass(frozen=True, eq=False)
class Lines:
    """below_slope z + below_offset <= function(z) <= above_slope z + above_offset, value by value."""

    below_slope: Tensor
    below_offset: Tensor
    above_slope: Tensor
    above_offset: Tensor


Rule = Callable[[Tensor, Tensor, float], Lines]
"""Lines for values between two (N, size) bounds; the number is the function's parameter."""


def relu(lower: Tensor, upper: Tensor, parameter: float = 0.0) -> Lines:
    """Leaky where the parameter, the slope left of 0, is not 0; it is below 1.

    Above: the chord. Below: the side that is farther from 0 goes on, which leaves the smaller triangle.
    """
    crossing = (lower < 0.0) & (upper > 0.0)
    side = torch.where(upper > -lower, 1.0, parameter)
    width = torch.where(crossing, upper - lower, torch.ones_like(upper))
    chord = parameter + (1.0 - parameter) * (upper / width) * (1.0 + OUTWARD)
    sure = torch.where(lower >= 0.0, 1.0, parameter)  # slopes where the sign is known
    rise = (chord - parameter) * -lower
    nothing = torch.zeros_like(lower)
    return Lines(
        torch.where(crossing, side, sure),
        nothing,
        torch.where(crossing, chord, sure),
        torch.where(crossing, rise * (1.0 + OUTWARD), nothing),
    )


RULES: dict[str, Rule] = {"relu": relu}
