"""Bounds of many boxes at a time without an engine: linear constraints, and planes below and above networks.

A box bounds the variables of the linear part and the logits of classes. On the box, for every output y of
a network sample with inputs x,

    f(x) >= a x + b:     y - a x >= b - slack          above likewise

The planes and the linear constraints are an LP with few variables, which is solved for hundreds of boxes
together, on any device. The LP is weaker than the LP with all neurons (`relaxation.py`), and takes a tenth of
the time, or a thousandth on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.batch_lps import LinearPrograms, Proved
from dovetail.bounds.planes.domain import Boxes, gamma
from dovetail.bounds.planes.network_planes import NO_CHOICES, Choices, NetworkPlanes, Planes, Ranges
from dovetail.bounds.planes.slope_ascent import ascended, open_places, usual
from dovetail.branching.model import Model
from dovetail.branching.networks import NetworkSamples
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import TOLERANCE
from dovetail.structure.boxes import MOST_CELLS

SLOPE_STEPS = 3
"""Steps of the slope search. With 6 ensemble 2 took 18,157 boxes instead of 21,237 and function_3x16 3,761
instead of 3,649, both as long; without slopes recycle 2 was at 2.28 after 17,400 boxes instead of 1.39."""
PRICED = 1e-9
"""A plane has a price if it is at least this fraction of the largest one."""
SMALLEST = 1e-100
"""Replaces a divisor without price."""
NO_WIDTH = 1e-300
"""Replaces a width of 0."""
ROUNDING = gamma(4)
"""Rounding of a right-hand side, relative to its terms."""
GAP_WEIGHT = 2.0
"""Weight of the slopes between the planes below and above an output, beside those of the plane itself:
planes that differ in a direction come together when it is divided (function 2: 3,632 boxes, without
4,656)."""
UNPRICED = 0.01
"""Weight of an output without a price, relative to the largest one (ensemble 2 after 3 s by counts: 5.9 %,
without 6.3)."""
FRACTION, FIRST = 1e-3, 4.0
"""Distance from whole numbers that counts as fractional, and the factor on the score."""
CLOSE = 0.1 * TOLERANCE
"""Violations of rows by the networks' values at a point that count as none."""
NARROW = 1e-9
"""A continuous column this narrow, relative to its size, is a point."""


class _Network:
    """The samples of one network on a device."""

    def __init__(self, one: NetworkSamples, model: Model, device: str) -> None:
        self.planes = one.planes if device == "cpu" else NetworkPlanes(one.graph, device)
        self.samples, self.size = one.samples, one.samples * 2 * one.graph.outputs
        self.has_slopes = bool(open_places(one.graph))
        """Whether there are slopes to choose."""
        q = one.graph.outputs
        unit = torch.eye(q, dtype=torch.float64, device=device)
        self.asked = torch.cat([unit, -unit])
        self.inputs = torch.as_tensor(one.inputs, device=device)
        self.outputs = torch.as_tensor(one.outputs, device=device)
        self.column = torch.cat([self.outputs, self.outputs], 1).ravel()
        """The column of each plane, which is below or above it."""
        self.sign = torch.cat([unit.new_ones(q), -unit.new_ones(q)]).repeat(self.samples)
        self.slack = _loaded(np.hstack([one.slack, one.slack]), device).ravel()
        self.partner = torch.arange(self.size, device=device).reshape(-1, 2, q).flip(1).ravel()
        """The plane on the other side of the same output."""
        self._reads = self.inputs.repeat_interleave(2 * q, 0)
        self._once = all(np.unique(read).size == read.size for read in one.inputs)
        self._known = {
            place: (_loaded(model.lower[columns], device), _loaded(model.upper[columns], device))
            for place, columns in one.inner.items()
        }

    def ranges(self, lower: Tensor, upper: Tensor) -> Ranges:
        """Ranges over N boxes, sample by sample, within those of the first box."""
        boxes, count = Boxes(self._of(self.inputs, lower), self._of(self.inputs, upper)), len(lower)
        endless = lower.new_full((1, 1), torch.inf)
        low, high = [boxes.lower], [boxes.upper]
        for place in range(1, len(self.planes.graph.steps) + 1):
            ends = self._known.get(place)
            low.append(-endless if ends is None else ends[0].repeat(count, 1))
            high.append(endless if ends is None else ends[1].repeat(count, 1))
        return self.planes.ranges(boxes, Ranges(low, high))

    @staticmethod
    def _of(columns: Tensor, values: Tensor) -> Tensor:
        return values[:, columns].reshape(-1, columns.shape[1])

    def rows(self, planes: Planes, columns: int) -> tuple[Tensor, Tensor, Tensor]:
        """(N, planes, columns) rows of the LP, their lower limits, and the offsets of the planes."""
        count = len(planes.slopes) // self.samples
        slopes = planes.slopes.reshape(count, self.size, -1)
        offset = planes.offset.reshape(count, self.size)
        rows, each = (
            slopes.new_zeros(count, self.size, columns),
            torch.arange(self.size, device=slopes.device),
        )
        if self._once:
            rows[:, each[:, None], self._reads] = -slopes
        else:
            rows.scatter_add_(2, self._reads.expand(count, -1, -1), -slopes)
        rows[:, each, self.column] += self.sign
        right = offset - self.slack
        return rows, right - ROUNDING * (offset.abs() + self.slack), offset

    def read(self, points: Tensor) -> Tensor:
        """(N samples, inputs) the inputs at (N, columns) points."""
        return self._of(self.inputs, points)

    def given(self, points: Tensor) -> Tensor:
        """(N, samples, outputs) the network's values at points, up to rounding."""
        found = self.planes.at(self._of(self.inputs, points)).lower[-1]
        return found.reshape(len(points), self.samples, -1)


def _loaded(array: object, device: str) -> Tensor:
    return torch.as_tensor(array, dtype=torch.float64, device=device)


@dataclass(frozen=True, eq=False)
class Relaxed:
    """N boxes and their LPs, with planes of some of the networks."""

    programs: LinearPrograms
    offset: Tensor
    """(N, planes)."""
    networks: tuple[tuple[_Network, Ranges], ...]
    column: Tensor
    sign: Tensor
    partner: Tensor

    def take(self, chosen: Tensor) -> Relaxed:
        """A selection of the boxes, by index."""
        networks = []
        for one, ranges in self.networks:
            every = torch.arange(one.samples, device=chosen.device)
            networks.append((one, ranges.take((chosen[:, None] * one.samples + every).ravel())))
        programs, offset = self.programs.take(chosen), self.offset[chosen]
        return replace(self, programs=programs, offset=offset, networks=tuple(networks))

    def within(self, lower: Tensor, upper: Tensor) -> Relaxed:
        """The same rows over smaller boxes."""
        return replace(self, programs=self.programs.within(lower, upper))

    @property
    def rows(self) -> Tensor:
        """(N, planes, columns)."""
        return self.programs.rows[:, self.programs.rows.shape[1] - self.offset.shape[1] :]

    @property
    def _between(self) -> tuple[Tensor, Tensor]:
        """The difference of the planes below and above each output: slopes and offsets."""
        return self.rows + self.rows[:, self.partner], -(self.offset + self.offset[:, self.partner])

    @property
    def most_apart(self) -> Tensor:
        """(N, planes) the largest difference on the boxes."""
        slopes, offset = self._between
        ends = slopes * self.programs.lower[:, None], slopes * self.programs.upper[:, None]
        return (torch.maximum(*ends).sum(2) + offset).clamp(min=0.0)

    def weights(self, proof: Proved) -> Tensor:
        """(N, planes) the effect of an output on the cost: its plane's price, or its bound's."""
        return proof.multipliers[:, -len(self.column) :].abs() + proof.reduced[:, self.column].abs()

    def prices(self, proof: Proved) -> Prices:
        """The effect of a plane on the cost is its own price, or its bound's: if a column's bound comes from
        the plane, the LP does not need the plane itself."""
        host = proof.multipliers.shape[1] - len(self.column)
        of_bounds = (self.sign * proof.reduced[:, self.column]).clamp(min=0.0)
        return Prices(proof.multipliers[:, :host], proof.multipliers[:, host:].clamp(min=0.0) + of_bounds)


@dataclass(frozen=True, eq=False)
class Prices:
    """What the rows and planes of N boxes cost."""

    rows: Tensor
    """(N, host rows)."""
    planes: Tensor
    """(N, planes), not negative."""


class PlaneRows:
    """One model, prepared once on a device."""

    def __init__(self, model: Model, lower: FloatArray, upper: FloatArray, device: str) -> None:
        """`first`: the first box over the problem's columns."""
        self._device, host = device, model.host
        self.columns = host.columns
        read = np.zeros(host.columns, dtype=bool)
        for one in model.networks:
            read[one.inputs] = True
        self.integer, self.is_input = (
            torch.as_tensor(flags, device=device) for flags in (host.integer, read)
        )
        self.cost, self.offset = _loaded(host.cost, device), host.offset
        self.lower, self.upper = _loaded(lower, device), _loaded(upper, device)
        kept = slice(host.lasting)
        self.host_rows = _loaded(host.A[kept].toarray(), device)
        self._row_lower, self._row_upper = (
            _loaded(s[kept], device) for s in (host.row_lower, host.row_upper)
        )
        networks = self._networks = [_Network(one, model, device) for one in model.networks]
        self.cells = (host.lasting + sum(one.size for one in networks)) * host.columns
        """Number of entries in the rows of a box."""
        self.networks, self.planes = len(networks), sum(one.size for one in networks)
        self.entries = sum(one.samples * one.entries for one in model.networks)
        """Entries of all samples of the networks."""
        self.has_slopes = any(one.has_slopes for one in networks)
        """Whether there are slopes to choose."""

    def bare(self, lower: Tensor, upper: Tensor) -> Relaxed:
        """N boxes (N, columns) without any network."""
        count, none = len(lower), torch.empty(0, dtype=torch.int64, device=lower.device)
        rows = self.host_rows.expand(count, -1, -1)
        sides = self._row_lower.expand(count, -1), self._row_upper.expand(count, -1)
        programs = LinearPrograms(self.cost, self.offset, rows, *sides, lower, upper)
        return Relaxed(programs, lower.new_empty(count, 0), (), none, lower.new_empty(0), none)

    def with_networks(self, relaxed: Relaxed, known: Prices | None = None) -> Relaxed:
        """With planes of all networks. Lower slopes of ReLUs are optimised for known prices of all planes
        together; planes without a price have the usual slopes."""
        p = relaxed.programs
        networks = [(one, one.ranges(p.lower, p.upper)) for one in self._networks]
        choices = [NO_CHOICES] * len(networks)
        if self.has_slopes and known is not None:
            choices = self._steeper(p, networks, known)
        for (one, ranges), chosen in zip(networks, choices, strict=True):
            relaxed = self._joined(relaxed, one, ranges, one.planes.planes(one.asked, ranges, chosen))
        return relaxed

    def _steeper(
        self, p: LinearPrograms, networks: Sequence[tuple[_Network, Ranges]], known: Prices
    ) -> list[Choices]:
        """The lower slopes of each network."""
        prices = known.planes
        scale = prices.amax(1, keepdim=True).clamp(min=SMALLEST)
        priced, prices = prices > PRICED * scale, prices / scale
        sizes = [one.size for one, _ in networks]
        rest = (p.cost - known.rows @ self.host_rows) / scale
        asked = []
        for (one, ranges), mine in zip(networks, torch.split(prices, sizes, 1), strict=True):
            rest = rest.index_add(1, one.column, -mine * one.sign)
            asked.append((one.planes, mine.reshape(-1, len(one.asked)) @ one.asked, ranges))
        box = Boxes(p.lower, p.upper)

        def least(planes: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, list[Tensor]]:
            slopes, offset = rest, torch.zeros_like(rest[:, 0])
            for (one, _), (part, own) in zip(networks, planes, strict=True):
                slopes = slopes.index_add(1, one.inputs.ravel(), part.reshape(len(rest), -1))
                offset = offset + own.reshape(len(rest), -1).sum(1)
            x = box.minimiser(slopes)
            return (slopes * x).sum(1) + offset, [one.read(x) for one, _ in networks]

        found = []
        steep = ascended(asked, least, SLOPE_STEPS)
        for (one, ranges), which, slopes in zip(networks, torch.split(priced, sizes, 1), steep, strict=True):
            where, before = which.reshape(-1, len(one.asked), 1), usual(one.planes.graph, ranges)
            found.append(Choices({at: torch.where(where, slopes[at], before[at]) for at in slopes}))
        return found

    def _joined(self, relaxed: Relaxed, one: _Network, ranges: Ranges, planes: Planes) -> Relaxed:
        p, before = relaxed.programs, len(relaxed.column)
        rows, right, offset = one.rows(planes, self.columns)
        programs = replace(
            p,
            rows=torch.cat([p.rows, rows], 1),
            row_lower=torch.cat([p.row_lower, right], 1),
            row_upper=torch.cat([p.row_upper, torch.full_like(right, torch.inf)], 1),
        )
        return Relaxed(
            programs,
            torch.cat([relaxed.offset, offset], 1),
            (*relaxed.networks, (one, ranges)),
            torch.cat([relaxed.column, one.column]),
            torch.cat([relaxed.sign, one.sign]),
            torch.cat([relaxed.partner, one.partner + before]),
        )

    def scores(self, relaxed: Relaxed, proof: Proved, points: Tensor) -> Tensor:
        """(N, columns) the possible gain of the relaxation by a split of each column; 0 for columns that are
        not split.

        For an input: the distance of the planes on the box times their price, distributed by the slopes and
        by the inputs' effect on the nonlinearity of the networks. Integers that are fractional in the LP's
        points come first: a class that is decided makes its row exact, and boxes along its boundary need not
        be small.
        """
        p, rows = relaxed.programs, relaxed.rows
        width, open_ = p.upper - p.lower, self.open(p)
        steep = (rows.abs() + GAP_WEIGHT * (rows + rows[:, relaxed.partner]).abs()) * (width * self.is_input)[
            :, None, :
        ]
        weight = relaxed.weights(proof)
        weight = weight + UNPRICED * weight.amax(1, keepdim=True)
        shares = steep / steep.sum(2, keepdim=True).clamp(min=NO_WIDTH)  # first, lest a quotient is infinite
        of_inputs = ((weight * relaxed.most_apart)[:, None, :] @ shares)[:, 0]
        fractional = (points - torch.round(points)).abs() > FRACTION
        of_integers = p.cost.abs() + (proof.multipliers.abs()[:, None, :] @ p.rows.abs())[:, 0]
        of_integers = of_integers * width * torch.where(fractional, FIRST, 1.0)
        score = torch.where(self.integer & ~self.is_input, of_integers, of_inputs)
        relative = width / (self.upper - self.lower).clamp(min=NO_WIDTH)
        score = score + 1e-9 * relative * (1.0 + score.amax(1, keepdim=True))  # if no other score decides
        return torch.where(open_, score, 0.0)

    def open(self, programs: LinearPrograms) -> Tensor:
        """(N, columns) which columns may be divided."""
        p = programs
        size = 1.0 + torch.maximum(p.lower.abs(), p.upper.abs())
        return (self.integer | self.is_input) & (p.upper - p.lower > NARROW * size)

    def exact(self, relaxed: Relaxed, proof: Proved, points: Tensor, gap: float) -> Tensor:
        """(N,) whether the LP of a box is as good as the truth: no split can raise its bound by `gap`.

        Every integer is decided, and with the networks' own values at the LP's point the host's rows are
        satisfied within the tolerance of the check, at a cost of at most the bound plus `gap`.
        """
        p, true = relaxed.programs, points.clone()
        for one, _ in relaxed.networks:
            true[:, one.outputs] = one.given(points)
        moved = (true - points).abs() * self.is_input  # a value passed from one network to another
        host = slice(0, len(self.host_rows))
        activity = (p.rows[:, host] @ true[:, :, None])[:, :, 0]
        size = (p.rows[:, host].abs() @ true[:, :, None].abs())[:, :, 0] + 1.0
        missed = torch.maximum(p.row_lower[:, host] - activity, activity - p.row_upper[:, host]) / size
        outside = torch.maximum(self.lower - true, true - self.upper) / (1.0 + true.abs())
        decided = ~(self.integer & (p.upper > p.lower)).any(1)
        met = (missed <= CLOSE).all(1) & (outside <= CLOSE).all(1) & (moved <= CLOSE).all(1)
        return decided & met & (true @ p.cost + p.offset - proof.bound <= gap)


def first_box(model: Model, goal: float) -> tuple[FloatArray, FloatArray] | None:
    """The first box of the problem's columns, finite in all of them; None if it is not, if the LP would be
    too large, or if there are trees."""
    n = model.host.columns
    planes = sum(2 * one.outputs.size for one in model.networks)
    if model.trees.samples or not model.networks or (model.host.lasting + planes) * n > MOST_CELLS:
        return None
    lower, upper = model.lower[None].copy(), model.upper[None].copy()
    model.tighten(lower, upper, goal)
    low, high = lower[0, :n], upper[0, :n]
    return (low, high) if np.all(np.isfinite(high - low)) and np.all(low <= high) else None
