"""Linear bounds of nonlinear steps over the ranges of their inputs: one line below and one above each value.

Lines below and above a smooth function of one value, between two bounds.

A function is described by its inflection points. Any slope may be tried: the offset that makes a
line of it sound is the least (or largest) value of f(z) - slope z between the bounds, and this value is
bounded piece by piece, independent of the accuracy of stationary points:

    convex piece    never below its tangent at any point of the piece, largest at an end
    concave piece   the other way round
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from dovetail.bounds.box import UNIT
from dovetail.core.errors import UnsupportedError
from dovetail.networks.functions import FUNCTIONS, ScalarFunction

OUTWARD = 8.0 * UNIT
"""Relative: slopes and offsets of lines are computed in a few operations, and must not come out inside."""

STEEP = 2.0
"""The line below a ReLU rises if the part of its range above 0 is at least this multiple of the part below.
At 1 its triangle is the smallest, but a rising line also passes on the uncertainty of earlier layers, which
matters in deep networks (function 6x32: 12,400 boxes where 1 takes 16,800, 1.5 about as many; of some batches
a fifth of the boxes is left open; networks of three layers hardly differ)."""

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
    """The lower slope of a ReLU with an open sign: 1 if the positive part of its range is much larger than
    the negative part, otherwise 0."""
    return (upper > -STEEP * lower).to(lower.dtype)


def relu_lines(lower: Tensor, upper: Tensor) -> Relaxation:
    """Above: the chord. Below: one of the two sides is extended (see `goes_on`)."""
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
    """The product of two values: the mean of McCormick's two planes below, and of the two above.

    With x = x0 + p, y = y0 + q around the middles, x y = y0 x + x0 y - x0 y0 + p q, and |p q| is at most the
    product of the half widths.
    """
    (x0, p), (y0, q) = _middle(*left), _middle(*right)
    rest = p * q + OUTWARD * (x0.abs() + p) * (y0.abs() + q)
    return Relaxation((y0, x0), -x0 * y0 - rest, (y0, x0), -x0 * y0 + rest)


def product_range(left: Between, right: Between) -> Between:
    """Values at the corners; 0 times infinity is 0 there."""
    corners = torch.stack(
        [torch.nan_to_num(x * y, nan=0.0, posinf=torch.inf, neginf=-torch.inf) for x in left for y in right]
    )
    low, high = corners.amin(0), corners.amax(0)
    return low - OUTWARD * low.abs(), high + OUTWARD * high.abs()


def _middle(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """A point near the middle, and the largest distance of the bounds from it."""
    middle = 0.5 * lower + 0.5 * upper
    return middle, torch.maximum(upper - middle, middle - lower) * (1.0 + OUTWARD)


PAD = 64.0 * UNIT
"""Relative to the terms of a computed number: the rounding of a few operations, and of torch's functions,
which are accurate to 1 to 4 units in the last place."""
TINY = 1e-300
"""Smaller numbers may underflow to 0."""
NARROW = 1e-7
"""Relative width below which a chord is mostly rounding, and a tangent as good."""
PLACES, FARTHEST = 1 << 14, 64.0
"""Entries of the table of slopes of a piece without a closed-form inverse, and how far from 0 the table goes.
On average the lines of GELU, SiLU and Mish are within 2e-8 of the lines by 40 halvings of the piece. The
offset of a line makes up for the difference, so that every line is sound."""
TANGENT_STEPS = 4
"""Newton steps from the chord's slope; each squares the error, and the remaining error is subtracted."""


@dataclass(frozen=True)
class Curve:
    """A function of single values."""

    function: ScalarFunction

    def value(self, z: Tensor) -> Tensor:
        """Of each."""
        found: Tensor = self.function.formula(torch, z)
        return found

    def slope(self, z: Tensor) -> Tensor:
        """At each."""
        found: Tensor = self.function.derivative(torch, z)
        return found

    def range(self, lower: Tensor, upper: Tensor) -> Between:
        """The range of its values."""
        ends = self.value(lower), self.value(upper)
        low, high = torch.minimum(*ends), torch.maximum(*ends)
        if self.function.lowest_at is not None:
            inside = (lower < self.function.lowest_at) & (upper > self.function.lowest_at)
            low = torch.where(inside, self.value(torch.full_like(low, self.function.lowest_at)), low)
        size = 1.0 if self.function.lowest_at is None else torch.maximum(lower.abs(), upper.abs()) + 1.0
        low, high = low - (PAD * size * low.abs() + TINY), high + (PAD * size * high.abs() + TINY)
        low = torch.where((lower > self.function.above) & ~torch.isnan(low), low, -torch.inf)
        high = torch.where((lower > self.function.above) & ~torch.isnan(high), high, torch.inf)
        limits = self.function.least, self.function.most
        return low.clamp(*limits), high.clamp(*limits)

    def lines(self, lower: Tensor, upper: Tensor) -> Relaxation:
        """The best of some slopes on either side; constants where no line is finite."""
        middle = 0.5 * lower + 0.5 * upper
        slopes = torch.stack([torch.zeros_like(middle), *self._slopes(lower, middle, upper)])
        flat = torch.stack(self.range(lower, upper))
        offsets = torch.stack(self._offsets(slopes[1:], lower, upper))
        offsets = torch.cat([flat[:, None], torch.where(lower > self.function.above, offsets, torch.nan)], 1)
        heights = torch.stack([offsets[0], -offsets[1]]) + torch.stack([slopes, -slopes]) * middle
        best = torch.where(torch.isnan(heights), -torch.inf, heights).argmax(1, keepdim=True)
        below, above = slopes.gather(0, best[0]), slopes.gather(0, best[1])
        return Relaxation(
            (below[0],), offsets[0].gather(0, best[0])[0], (above[0],), offsets[1].gather(0, best[1])[0]
        )

    def _slopes(self, lower: Tensor, middle: Tensor, upper: Tensor) -> Iterator[Tensor]:
        """The chord's, the tangent's in the middle; for an S also of the tangents from either end."""
        narrow = upper - lower <= NARROW * (1.0 + middle.abs())
        tangent = self.slope(middle)
        yield tangent
        chord = (self.value(upper) - self.value(lower)) / torch.where(narrow, 1.0, upper - lower)
        chord = torch.where(narrow, tangent, chord)
        yield chord
        if len(self.function.bends) == 1:
            yield from (self._from_end(end, chord, piece) for end, piece in ((lower, 1), (upper, 0)))

    def _from_end(self, end: Tensor, chord: Tensor, piece: int) -> Tensor:
        """The approximate slope of the tangent to a piece that passes through the curve at an end of the
        other piece."""
        slope, here = chord, self.value(end)
        for _ in range(TANGENT_STEPS):
            touching = self._point_of_slope(slope, piece)
            away = touching - end
            next_slope = (self.value(touching) - here) / torch.where(away == 0.0, 1.0, away)
            slope = torch.where(torch.isfinite(next_slope) & (away != 0.0), next_slope, slope)
        return slope

    def _offsets(self, slopes: Tensor, lower: Tensor, upper: Tensor) -> Between:
        """Bounds of f(z) - slope z from below and above, for each of (k, N, size) slopes, rounded outward."""
        ends = (-torch.inf, *self.function.bends, torch.inf)
        a = torch.stack([torch.minimum(lower.clamp(min=left), upper) for left in ends[:-1]])[:, None]
        b = torch.stack([torch.maximum(upper.clamp(max=right), lower) for right in ends[1:]])[:, None]
        z = torch.stack([self._point_of_slope(slopes, number) for number in range(len(a))])
        z = torch.where(torch.isnan(z), a, torch.minimum(torch.maximum(z, a), b))  # the nearer end
        at_ends = self._offset_of_slope(slopes, a), self._offset_of_slope(slopes, b)
        steepness = self.slope(z)
        turn, touching = steepness - slopes, self._offset_of_slope(slopes, z)
        left_of, right_of = turn * (a - z), turn * (b - z)
        off = PAD * (steepness.abs() + slopes.abs()) * (b - a)
        first = 0 if self.function.convex_first else 1
        convex = torch.arange(len(a), device=a.device).view(-1, 1, 1, 1) % 2 == first
        tangent_below = touching + torch.minimum(left_of, right_of) - off
        tangent_above = touching + torch.maximum(left_of, right_of) + off
        lows = torch.where(convex, tangent_below, torch.minimum(*at_ends))
        highs = torch.where(convex, torch.maximum(*at_ends), tangent_above)
        size = torch.maximum(lower.abs(), upper.abs())
        values = torch.maximum(self.value(lower).abs(), self.value(upper).abs())
        pad = PAD * (1.0 + size + values + slopes.abs() * size)
        return lows.amin(0) - pad, highs.amax(0) + pad

    def _offset_of_slope(self, slope: Tensor, z: Tensor) -> Tensor:
        return self.value(z) - slope * z

    def _point_of_slope(self, slope: Tensor, piece: int) -> Tensor:
        """Approximately the point at which a piece, by number, has a given slope."""
        if self.function.stationary is not None:
            found: Tensor = self.function.stationary(torch, slope, piece)
            return found
        slopes, places = slopes_of_piece(self.function, piece, slope.dtype, slope.device)
        right = torch.searchsorted(slopes, slope.contiguous()).clamp(1, PLACES - 1)
        low, high = slopes[right - 1], slopes[right]
        share = ((slope - low) / torch.where(high > low, high - low, 1.0)).clamp(0.0, 1.0)
        return places[right - 1] + share * (places[right] - places[right - 1])


@cache
def slopes_of_piece(
    function: ScalarFunction, piece: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """A table of a piece between two bends: rising slopes, and where the function has them."""
    ends = (-FARTHEST, *function.bends, FARTHEST)
    places = torch.linspace(ends[piece], ends[piece + 1], PLACES, dtype=torch.float64)
    slopes: Tensor = function.derivative(torch, places)
    if (piece % 2 == 0) != function.convex_first:
        slopes, places = slopes.flip(0), places.flip(0)
    return slopes.cummax(0).values.to(device, dtype), places.to(device, dtype)


@dataclass(frozen=True)
class Rule:
    """Lines, and the range of values, between two (N, size) bounds."""

    lines: Callable[[Tensor, Tensor], Relaxation]
    range: Callable[[Tensor, Tensor], Between]


RULES: dict[str, Rule] = {
    kind: Rule(relu_lines, relu_range) if kind == "relu" else Rule((curve := Curve(known)).lines, curve.range)
    for kind, known in FUNCTIONS.items()
}


def rule_of(kind: str) -> Rule:
    """The rule of a function, by its name."""
    if kind not in RULES:
        raise UnsupportedError(f"there are no planes for {kind}")
    return RULES[kind]
