"""Planes below a network on many leaves at a time, from its graph: substitution from the outputs backwards.

Written for readability. Each operation is replaced by linear bounds of each value; the largest
rounding is subtracted at once, from sizes of numbers that the ranges allow.

`lines` gives a line below and a line above a nonlinear function between two bounds. A ReLU touches its lines
at its kink and its ends. Other functions are evaluated on a grid: between two of its points, h apart, a
function whose second derivative is at most M in size is within M h^2 / 8 of its chord, so the ends of a cell
bound the function within it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np

from dovetail.certificates.checker.region import UNIT, Chosen, Region, down, gamma, up
from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.networks.functions import FUNCTIONS
from dovetail.networks.graph import Affine, Elementwise, Graph, Product


@dataclass(eq=False)
class Ranges:
    """(N, size) bounds of every vector of the graph, the inputs first."""

    lower: list[FloatArray]
    upper: list[FloatArray]
    empty: BoolArray
    """(N,) leaves with crossed bounds, which are empty."""

    def size(self, place: int) -> FloatArray:
        """(N, size) the largest absolute values."""
        return np.maximum(np.abs(self.lower[place]), np.abs(self.upper[place]))

    def take(self, chosen: Chosen) -> Ranges:
        """The ranges of a selection of the leaves."""
        return Ranges(
            [low[chosen] for low in self.lower], [high[chosen] for high in self.upper], self.empty[chosen]
        )


@dataclass(frozen=True, eq=False)
class KnownRanges:
    """Known ranges and slopes of leaves in addition to the box, by place."""

    lower: dict[int, FloatArray] = field(default_factory=dict)
    """(N or 1, size) lower bounds of vectors; `upper` likewise."""
    upper: dict[int, FloatArray] = field(default_factory=dict)
    slopes: dict[int, FloatArray] = field(default_factory=dict)
    """(N, size) lower lines of ReLUs that read the place; NaN: the default rule."""
    multipliers: dict[int, FloatArray] = field(default_factory=dict)
    """(N, size) multipliers of the ranges of nonlinear steps' sources: of the lower ends if positive,
    otherwise of the upper ones."""


class Planes:
    """The planes of one graph."""

    def __init__(self, graph: Graph, ends: Collection[int] = ()) -> None:
        """`ends` are places of vectors whose ranges are wanted."""
        self._graph, self._ends = graph, frozenset(ends)
        self._nonlinear = {
            source
            for step in graph.steps
            if not isinstance(step.operation, Affine)
            for source in step.sources
        }

    # ---- ranges

    def ranges(self, region: Region, known: KnownRanges) -> Ranges:
        """Bounds of every vector: by intervals, and by planes for vectors that nonlinear operations read."""
        ranges = Ranges([region.lower], [region.upper], np.zeros(len(region.lower), dtype=bool))
        for place in range(1, len(self._graph.steps) + 1):
            low, high = self._interval(place, ranges)
            ranges.lower.append(np.where(np.isnan(low), -np.inf, low))  # no bound is known there
            ranges.upper.append(np.where(np.isnan(high), np.inf, high))
            self._intersect(place, ranges, known)
            affine = isinstance(self._graph.steps[place - 1].operation, Affine)
            if affine and (place in self._nonlinear or place in self._ends):
                self._tighten(place, region, ranges)
                self._intersect(place, ranges, known)
        return ranges

    @staticmethod
    def _intersect(place: int, ranges: Ranges, known: KnownRanges) -> None:
        low, high = ranges.lower[place], ranges.upper[place]
        if place in known.lower:
            low = np.maximum(low, known.lower[place])
        if place in known.upper:
            high = np.minimum(high, known.upper[place])
        crossed = low > high
        ranges.empty |= crossed.any(axis=1)
        ranges.lower[place], ranges.upper[place] = low, np.where(crossed, low, high)

    def _interval(self, place: int, ranges: Ranges) -> tuple[FloatArray, FloatArray]:
        step = self._graph.steps[place - 1]
        operation = step.operation
        if isinstance(operation, Elementwise):
            found = self._lines(place, ranges)
            return found.least, found.most
        if isinstance(operation, Product):
            corners = self._corners(place, ranges)
            return down(np.min(corners, axis=0)), up(np.max(corners, axis=0))
        if not isinstance(operation, Affine):
            raise UnsupportedError(f"the checker does not support {type(operation).__name__}")
        low = high = np.broadcast_to(operation.bias, (len(ranges.empty), step.size))
        size, terms = np.abs(low), 0
        for source, weight in zip(step.sources, operation.weights, strict=True):
            positive, negative = np.maximum(weight, 0.0).T, np.minimum(weight, 0.0).T
            below, above = ranges.lower[source], ranges.upper[source]
            low = low + below @ positive + above @ negative
            high = high + above @ positive + below @ negative
            size = size + ranges.size(source) @ np.abs(weight).T
            terms += 2 * weight.shape[1]
        noise = gamma(terms) * size
        return low - noise, high + noise

    def _corners(self, place: int, ranges: Ranges) -> list[FloatArray]:
        one, other = self._graph.steps[place - 1].sources
        return [
            a * b
            for a in (ranges.lower[one], ranges.upper[one])
            for b in (ranges.lower[other], ranges.upper[other])
        ]

    def _tighten(self, place: int, region: Region, ranges: Ranges) -> None:
        """Tighten by planes: all values, but those of ReLUs only if the sign is open. Each leaf is treated
        alone, so that its value does not depend on other leaves of a batch."""
        low, high = ranges.lower[place], ranges.upper[place]
        asked = np.ones(low.shape, dtype=bool)
        if place not in self._ends and self._rectified(place):
            asked = (low < 0.0) & (high > 0.0)
        rows = np.flatnonzero(asked.any(axis=0))
        if rows.size == 0:
            return
        chosen = np.zeros((rows.size, low.shape[1]))
        chosen[np.arange(rows.size), rows] = 1.0
        both = np.broadcast_to(np.concatenate([chosen, -chosen]), (len(low), 2 * rows.size, low.shape[1]))
        least = region.least(*self.backward(place, both, ranges, KnownRanges()))
        below, above = low.copy(), high.copy()
        below[:, rows] = np.fmax(low[:, rows], least[:, : rows.size])
        above[:, rows] = np.fmin(high[:, rows], -least[:, rows.size :])
        ranges.lower[place], ranges.upper[place] = np.where(asked, below, low), np.where(asked, above, high)

    def _rectified(self, place: int) -> bool:
        return all(
            isinstance(step.operation, Affine)
            or (isinstance(step.operation, Elementwise) and step.operation.kind == "relu")
            for step in self._graph.steps
            if place in step.sources
        )

    # ---- planes

    def backward(
        self, place: int, rows: FloatArray, ranges: Ranges, known: KnownRanges
    ) -> tuple[FloatArray, FloatArray]:
        """(N, S, inputs) slopes and (N, S) offsets: rows (N, S, size) of the vector at `place` >= slopes x +
        offset."""
        waiting: dict[int, FloatArray] = {place: rows}
        offset = np.zeros(rows.shape[:2])
        for here in range(place, 0, -1):
            A = waiting.pop(here, None)
            if here in known.multipliers:
                given = known.multipliers[here][:, None]
                A = -given if A is None else A - given
                held = known.multipliers[here]
                ends = np.where(held > 0.0, ranges.lower[here], np.where(held < 0.0, ranges.upper[here], 0.0))
                size = (np.abs(A) + np.abs(given)) @ ranges.size(here)[:, :, None]
                offset = offset + (held * ends).sum(axis=1)[:, None]
                offset = offset - gamma(held.shape[1]) * (size[:, :, 0] + np.abs(offset))
            if A is None:
                continue
            carried, moved = self._through(here, A, ranges, known)
            offset = offset + moved - gamma(1) * (np.abs(offset) + np.abs(moved))
            for source, part in zip(self._graph.steps[here - 1].sources, carried, strict=True):
                if source in waiting:
                    size = (np.abs(waiting[source]) + np.abs(part)) @ ranges.size(source)[:, :, None]
                    offset = offset - gamma(1) * size[:, :, 0]
                    part = waiting[source] + part
                waiting[source] = part
        slopes = waiting.get(0)
        if slopes is None:
            slopes = np.zeros((*rows.shape[:2], self._graph.inputs))
        return slopes, offset

    def _through(
        self, here: int, A: FloatArray, ranges: Ranges, known: KnownRanges
    ) -> tuple[list[FloatArray], FloatArray]:
        operation = self._graph.steps[here - 1].operation
        if isinstance(operation, Affine):
            return self._through_affine(here, operation, A, ranges)
        if isinstance(operation, Elementwise):
            return self._through_lines(here, A, ranges, known)
        if isinstance(operation, Product):
            return self._through_product(here, A, ranges)
        raise UnsupportedError(f"the checker does not support {type(operation).__name__}")

    def _through_affine(
        self, here: int, operation: Affine, A: FloatArray, ranges: Ranges
    ) -> tuple[list[FloatArray], FloatArray]:
        size = np.broadcast_to(np.abs(operation.bias), (len(A), A.shape[2]))
        for source, weight in zip(self._graph.steps[here - 1].sources, operation.weights, strict=True):
            size = size + ranges.size(source) @ np.abs(weight).T
        noise = gamma(A.shape[2]) * (np.abs(A) @ size[:, :, None])[:, :, 0]
        return [A @ weight for weight in operation.weights], A @ operation.bias - noise

    def _through_lines(
        self, here: int, A: FloatArray, ranges: Ranges, known: KnownRanges
    ) -> tuple[list[FloatArray], FloatArray]:
        (source,) = self._graph.steps[here - 1].sources
        found = self._lines(here, ranges)
        below = found.below_slope
        if source in known.slopes and self._rectified(source):
            given = known.slopes[source]
            crossing = (ranges.lower[source] < 0.0) & (ranges.upper[source] > 0.0)
            below = np.where(crossing & ~np.isnan(given), np.clip(given, 0.0, 1.0), below)
        positive, negative = np.maximum(A, 0.0), np.minimum(A, 0.0)
        carried = positive * below[:, None] + negative * found.above_slope[:, None]
        moved = positive @ found.below_offset[:, :, None] + negative @ found.above_offset[:, :, None]
        steepest = np.maximum(np.abs(below), np.abs(found.above_slope))
        size = steepest * ranges.size(source) + np.abs(found.below_offset) + np.abs(found.above_offset)
        noise = gamma(A.shape[2]) * (np.abs(A) @ size[:, :, None])
        return [carried], (moved - noise)[:, :, 0]

    def _through_product(
        self, here: int, A: FloatArray, ranges: Ranges
    ) -> tuple[list[FloatArray], FloatArray]:
        """McCormick: x y >= l y + x l' - l l' from below, x y <= u y + x l' - u l' from above."""
        one, other = self._graph.steps[here - 1].sources
        low, high, low2 = ranges.lower[one], ranges.upper[one], ranges.lower[other]
        positive, negative = np.maximum(A, 0.0), np.minimum(A, 0.0)
        to_one = A * low2[:, None]
        to_other = positive * low[:, None] + negative * high[:, None]
        moved = -(positive @ (low * low2)[:, :, None] + negative @ (high * low2)[:, :, None])
        size = 4.0 * ranges.size(one) * ranges.size(other)
        noise = gamma(A.shape[2]) * (np.abs(A) @ size[:, :, None])
        return [to_one, to_other], (moved - noise)[:, :, 0]

    def _lines(self, place: int, ranges: Ranges) -> Lines:
        step = self._graph.steps[place - 1]
        assert isinstance(step.operation, Elementwise)
        (source,) = step.sources
        return lines(step.operation.kind, ranges.lower[source], ranges.upper[source])


CELLS = 24
"""Number of cells of the grid; the loss is a 24th squared of the distance of a parabola from its chord."""
ULPS = 32.0 * UNIT
"""Relative rounding of evaluating one of these functions, and a line."""

Function = Callable[[FloatArray], FloatArray]
Bend = Callable[[FloatArray, FloatArray], FloatArray]

STEEP = 1.03
"""The line below a ReLU has slope 1 if the positive part of its range is about as large as the negative one.
Slightly below 1, because the two parts are often equal and lines should not depend on the last digit."""


@dataclass(frozen=True, eq=False)
class Lines:
    """below_slope z + below_offset <= f(z) <= above_slope z + above_offset, value by value."""

    below_slope: FloatArray
    below_offset: FloatArray
    above_slope: FloatArray
    above_offset: FloatArray
    least: FloatArray
    """The least value of f between the bounds."""
    most: FloatArray


BENDS: dict[str, Bend] = {
    "sigmoid": lambda low, high: np.full_like(low, 0.0963),
    "tanh": lambda low, high: np.full_like(low, 0.77),
    "softplus": lambda low, high: np.full_like(low, 0.2501),
    "silu": lambda low, high: np.full_like(low, 0.5001),
    "softsign": lambda low, high: np.full_like(low, 2.0),
    "mish": lambda low, high: np.full_like(low, 0.6443),
    "gelu": lambda low, high: np.full_like(low, 0.7980),
    "gelu_tanh": lambda low, high: np.full_like(low, 0.81),
    "erf": lambda low, high: np.full_like(low, 0.9681),
    "atan": lambda low, high: np.full_like(low, 0.6496),
    "asinh": lambda low, high: np.full_like(low, 0.3850),
    "elu": lambda low, high: np.ones_like(low),
    "square": lambda low, high: np.full_like(low, 2.0),
    "exp": lambda low, high: np.exp(high),
    "log": lambda low, high: _positive(low) ** -2.0,
    "sqrt": lambda low, high: 0.25 * _positive(low) ** -1.5,
    "rsqrt": lambda low, high: 0.75 * _positive(low) ** -2.5,
    "root": lambda low, high: np.where(high > 0.0, 0.25 * np.maximum(low, 1e-200) ** -1.5, 0.0),
    "matern32": lambda low, high: np.where(high > 0.0, 2.25 * (3.0 * np.maximum(low, 1e-200)) ** -0.5, 0.0),
    "matern52": lambda low, high: np.full_like(low, 25.0 / 12.0),
    "reciprocal": lambda low, high: 2.0 * _positive(np.maximum(low, -high)) ** -3.0,
}
"""The largest absolute second derivative between two bounds."""


def _positive(nearest: FloatArray) -> FloatArray:
    """NaN where a function is not defined everywhere, so that no bound is claimed."""
    return np.where(nearest > 0.0, nearest, np.nan)


def lines(kind: str, lower: FloatArray, upper: FloatArray) -> Lines:
    """Lines of one function for values between two finite bounds of the same shape."""
    if kind == "relu":
        return _rectified(lower, upper)
    if kind not in BENDS:
        raise UnsupportedError(f"the checker has no lines for {kind}")
    with np.errstate(all="ignore"):
        monotone = FUNCTIONS[kind].lowest_at is None
        bend = BENDS[kind](lower, upper) * (1.0 + ULPS)
        return _curved(FUNCTIONS[kind].value, bend, lower, upper, monotone=monotone)


def _rectified(lower: FloatArray, upper: FloatArray) -> Lines:
    """ReLU: above it the chord, below it any tangent at 0."""
    crossing = (lower < 0.0) & (upper > 0.0)
    sure = np.where(lower >= 0.0, 1.0, 0.0)
    width = np.where(crossing, upper - lower, 1.0)
    chord = np.where(crossing, np.clip(upper / width, 0.0, 1.0), sure)
    rise = np.maximum(-chord * lower, upper - chord * upper) + ULPS * (np.abs(lower) + np.abs(upper))
    below = np.where(crossing, np.where(upper > -STEEP * lower, 1.0, 0.0), sure)
    nothing = np.zeros_like(lower)
    rise = np.where(crossing, rise, nothing)
    return Lines(below, nothing, chord, rise, np.maximum(lower, 0.0), np.maximum(upper, 0.0))


def _curved(
    function: Function, bend: FloatArray, lower: FloatArray, upper: FloatArray, *, monotone: bool
) -> Lines:
    """Among a few slopes, those whose lines are nearest to the function in the middle. A monotone function
    is within the change of its values over a cell of its chord, however much it bends."""
    width = upper - lower
    grid = lower[..., None] + width[..., None] * np.linspace(0.0, 1.0, CELLS + 1)
    grid[..., -1] = upper
    values = function(grid)
    step = up(width / CELLS)
    lost = up(0.126 * bend * step * step)  # 1/8, plus the rounding of the grid itself
    if monotone:
        lost = np.minimum(lost, up(np.abs(np.diff(values, axis=-1)).max(-1)))
    size = np.abs(values).max(-1) + np.abs(grid).max(-1) + 1.0
    middle = 0.5 * (lower + upper)
    best: list[FloatArray] = []
    for slope in _slopes(grid, values):
        apart = values - slope[..., None] * grid
        noise = ULPS * size * (1.0 + np.abs(slope)) + lost
        below, above = apart.min(-1) - noise, apart.max(-1) + noise
        if not best:
            best = [slope, below, slope, above]
            continue
        nearer = slope * middle + below > best[0] * middle + best[1]
        best[0], best[1] = np.where(nearer, slope, best[0]), np.where(nearer, below, best[1])
        nearer = slope * middle + above < best[2] * middle + best[3]
        best[2], best[3] = np.where(nearer, slope, best[2]), np.where(nearer, above, best[3])
    noise = ULPS * size + lost
    return Lines(best[0], best[1], best[2], best[3], values.min(-1) - noise, values.max(-1) + noise)


def _slopes(grid: FloatArray, values: FloatArray) -> list[FloatArray]:
    """The whole chord, and chords of single cells."""
    found = []
    for first, last in ((0, CELLS), *((k, k + 1) for k in range(0, CELLS, CELLS // 6)), (CELLS - 1, CELLS)):
        run = grid[..., last] - grid[..., first]
        rise = values[..., last] - values[..., first]
        found.append(np.where(run > 0.0, rise / np.where(run > 0.0, run, 1.0), 0.0))
    return found
