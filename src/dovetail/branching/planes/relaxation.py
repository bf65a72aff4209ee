"""The LP of a box: the host's rows, and planes below and above every output of the networks.

A node is a box over all columns: the host's, and the networks' slack columns (see `joint_network.py`). On it

    a value      graph value >= a x + b on the box:      y - a x >= b - slack;     above likewise
    one logit    y = 0 only where logit <= slack_1:      M y - a x >= b - slack_1,
                 y = 1 only where logit >= -slack_0:    -M y - a x >= b - slack_0 - M
    several      y_k = 1 only where logit_k leads every other one, by -slack_kj; one of them is 1

where M is what makes the row say nothing at the other value. Classes are integers like any other: they are
branched on, and rows with a class decided are as good as those of values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.batch_lps import LinearPrograms, Proved
from dovetail.bounds.planes.domain import Boxes, gamma
from dovetail.bounds.planes.network_planes import Choices, NetworkPlanes, Planes, Ranges
from dovetail.bounds.planes.slope_ascent import ascended, open_places, usual
from dovetail.branching.planes.first_layer import FirstLayer
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import Mip
from dovetail.structure.networks import JointNetwork

SLOPE_STEPS = 6
"""Of slopes: five find most of what twenty do (function: 33,000 boxes of eight inputs against 29,000)."""
PRICED = 1e-9
"""A plane has a price where it is this part of the largest: less is what an LP leaves behind."""
SMALLEST = 1e-100
"""Divided by where nothing has a price."""
ROUNDING = gamma(4)
"""Of a right-hand side, relative to the sizes that are added up in it."""


@dataclass(frozen=True, eq=False)
class _Questions:
    """Rows of the graph's outputs that are bounded below, and what their planes say of which column."""

    rows: FloatArray
    columns: list[int]
    signs: list[float]
    """Of the column in the row: 1 where the plane is below it, -1 where above."""
    slack: list[float]
    decides: list[bool]
    """Whether the column is a class."""
    partner: list[int]
    """The question about the other side of the same output."""


@dataclass(frozen=True, eq=False)
class Separation:
    """How far the planes below and above an output are apart, as a function of the inputs."""

    slopes: Tensor
    offset: Tensor
    inputs: Tensor

    def at(self, points: Tensor) -> Tensor:
        """(N, planes) at one point per box."""
        return (self.slopes @ points[:, self.inputs, None])[:, :, 0] + self.offset

    def most(self, programs: LinearPrograms) -> Tensor:
        """(N, planes) at most, on the boxes of the programs."""
        lower, upper = programs.lower[:, None, self.inputs], programs.upper[:, None, self.inputs]
        return torch.maximum(self.slopes * lower, self.slopes * upper).sum(2) + self.offset

    def take(self, chosen: Tensor) -> Separation:
        """On some of the boxes."""
        return Separation(self.slopes[chosen], self.offset[chosen], self.inputs)


@dataclass(frozen=True, eq=False)
class Relaxed:
    """N boxes and their LPs."""

    programs: LinearPrograms
    apart: Separation
    ranges: tuple[Ranges, ...]
    """Of every vector of the graph, or of the graphs that it was taken apart into."""
    first_layers: tuple[FirstLayer, ...]
    """Of the same graphs."""

    def bends(self, width: Tensor) -> Tensor:
        """(N, inputs) what each input bends the networks by, on boxes with these widths of the inputs."""
        parts = zip(self.first_layers, self.ranges, strict=True)
        return torch.stack([layer.shares(ranges, width) for layer, ranges in parts]).sum(0)

    def take(self, chosen: Tensor) -> Relaxed:
        """Some of them, by index."""
        ranges = tuple(part.take(chosen) for part in self.ranges)
        return replace(
            self, programs=self.programs.take(chosen), apart=self.apart.take(chosen), ranges=ranges
        )

    def within(self, lower: Tensor, upper: Tensor) -> Relaxed:
        """The same rows over smaller boxes."""
        return replace(self, programs=self.programs.within(lower, upper))


class Relaxation:
    """One problem, loaded once; `mip` is in minimisation form and as loose as the check."""

    def __init__(
        self, mip: Mip, network: JointNetwork, lower: FloatArray, upper: FloatArray, device: str
    ) -> None:
        self._device, self.network = device, network
        self.n_columns = mip.n_columns + network.slack.size
        is_class, is_input = np.zeros((2, self.n_columns), dtype=bool)
        for group in network.groups:
            is_class[group.columns] |= group.classifies
        is_input[network.inputs[network.inputs < mip.n_columns]] = True
        integer = is_class | np.append(mip.integer, np.zeros(network.slack.size, dtype=bool))
        self.integer, self.is_input, self.branched = (
            torch.as_tensor(flags, device=device) for flags in (integer, is_input, integer | is_input)
        )
        self.planes = NetworkPlanes(network.graph, device)
        self._first_layer = FirstLayer(network.graph, device)
        self.has_slopes = bool(open_places(network.graph))
        """Whether there is anything to choose."""
        asked = _questions(network)
        self._asked = self._tensor(asked.rows)
        self.column = torch.as_tensor(asked.columns, device=device)
        self._sign, self.slack = self._tensor(asked.signs), self._tensor(asked.slack)
        self.decides = torch.as_tensor(asked.decides, device=device)
        self.partner = torch.as_tensor(asked.partner, device=device)
        self.inputs = torch.as_tensor(network.inputs, device=device)
        self.cost = self._tensor(np.concatenate([mip.cost, np.zeros(network.slack.size)]))
        self.offset = mip.offset
        self.root_lower, self.root_upper = self._tensor(lower), self._tensor(upper)
        rows, row_lower, row_upper = self._host_rows(mip)
        self.host_rows = self._tensor(rows)
        self.sensitivity = self._tensor(_sensitivity(mip, rows))
        self._row_lower, self._row_upper = self._tensor(row_lower), self._tensor(row_upper)

    def _tensor(self, array: object) -> Tensor:
        return torch.as_tensor(array, dtype=torch.float64, device=self._device)

    def _host_rows(self, mip: Mip) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The host's rows, and one that says of several classes that one of them is given."""
        several = [g for g in self.network.groups if g.classifies and g.columns.size > 1]
        rows = np.zeros((mip.n_rows + len(several), self.n_columns))
        rows[: mip.n_rows, : mip.n_columns] = mip.A.toarray()
        for k, group in enumerate(several):
            rows[mip.n_rows + k, group.columns] = 1.0
        ones = np.ones(len(several))
        return rows, np.concatenate([mip.row_lower, ones]), np.concatenate([mip.row_upper, ones])

    def relaxed(self, lower: Tensor, upper: Tensor) -> Relaxed:
        """N boxes, (N, columns) each."""
        ranges = self.planes.ranges(Boxes(lower[:, self.inputs], upper[:, self.inputs]))
        return self._with_planes(self.planes.planes(self._asked, ranges), ranges, lower, upper)

    def steeper(self, relaxed: Relaxed, proof: Proved) -> Relaxed:
        """The same with ReLUs' lower slopes chosen for what the multipliers make of all planes together.

        Only planes that have a price are changed; a plane on the other side of an output would be worse.
        """
        p = relaxed.programs
        prices = self.prices(proof)
        scale = prices.amax(1, keepdim=True).clamp(min=SMALLEST)
        host = proof.multipliers[:, None, : len(self.host_rows)] @ p.rows[:, : len(self.host_rows)]
        rest = ((p.cost - host[:, 0]) / scale)[:, None, self.inputs]
        box = Boxes(p.lower[:, self.inputs], p.upper[:, self.inputs])

        def value(planes: Planes) -> Tensor:
            return box.minimum(planes.slopes + rest, planes.offset)[:, 0]

        rows = (prices / scale @ self._asked)[:, None]
        (ranges,) = relaxed.ranges
        found = ascended(self.planes, rows, ranges, value, SLOPE_STEPS)
        priced = (prices > PRICED * scale)[:, :, None]
        before = usual(self.network.graph, ranges)
        chosen = {place: torch.where(priced, found[place], before[place]) for place in found}
        planes = self.planes.planes(self._asked, ranges, Choices(chosen))
        return self._with_planes(planes, ranges, p.lower, p.upper)

    def prices(self, proof: Proved) -> Tensor:
        """(N, planes) what the cost moves by where a plane moves by one: its own price, or its bound's.

        A column's bound may come from the plane: then the LP has no use for the plane itself.
        """
        at_bound = (self._sign * proof.reduced[:, self.column]).clamp(min=0.0)
        of_bounds = torch.where(self.decides, 0.0, at_bound)
        return proof.multipliers[:, len(self.host_rows) :].clamp(min=0.0) + of_bounds

    def _with_planes(self, planes: Planes, ranges: Ranges, lower: Tensor, upper: Tensor) -> Relaxed:
        box = Boxes(lower[:, self.inputs], upper[:, self.inputs])
        count, asked, _ = planes.slopes.shape
        most = -box.minimum(-planes.slopes, -planes.offset)  # what each plane is never above
        big = (most - self.slack).clamp(min=0.0) * (1.0 + ROUNDING)
        entry = torch.where(self.decides, big, 1.0) * self._sign
        down = torch.where(self.decides & (self._sign < 0.0), big, 0.0)
        right = planes.offset - self.slack - down
        right = right - ROUNDING * (planes.offset.abs() + self.slack + down)
        rows = torch.zeros(count, asked, self.n_columns, dtype=lower.dtype, device=lower.device)
        rows[:, :, self.inputs] = -planes.slopes
        rows[:, torch.arange(asked, device=lower.device), self.column] += entry
        apart = Separation(
            -(planes.slopes + planes.slopes[:, self.partner]),
            -(planes.offset + planes.offset[:, self.partner]),
            self.inputs,
        )
        return Relaxed(self.programs(rows, right, lower, upper), apart, (ranges,), (self._first_layer,))

    def programs(self, rows: Tensor, right: Tensor, lower: Tensor, upper: Tensor) -> LinearPrograms:
        """The host's rows, and rows of planes (N, planes, columns) that are to be at least `right`."""
        count = len(rows)
        return LinearPrograms(
            self.cost,
            self.offset,
            torch.cat([self.host_rows.expand(count, -1, -1), rows], 1),
            torch.cat([self._row_lower.expand(count, -1), right], 1),
            torch.cat([self._row_upper.expand(count, -1), torch.full_like(right, torch.inf)], 1),
            lower,
            upper,
        )


def _sensitivity(mip: Mip, rows: FloatArray) -> FloatArray:
    """By how much some row or bound moves where a column moves by one."""
    own = np.isfinite(mip.lower) | np.isfinite(mip.upper)
    bounds = np.concatenate([own.astype(np.float64), np.zeros(rows.shape[1] - own.size)])
    return np.asarray(np.maximum(np.abs(rows).max(axis=0, initial=0.0), bounds))


def _questions(network: JointNetwork) -> _Questions:
    rows: list[FloatArray] = []
    columns: list[int] = []
    signs: list[float] = []
    slack: list[float] = []
    decides: list[bool] = []

    partner: list[int] = []

    def ask(row: FloatArray, column: int, sign: float, off: float, decided: bool, other: int) -> None:
        partner.append(other)
        rows.append(row)
        columns.append(column)
        signs.append(sign)
        slack.append(off)
        decides.append(decided)

    unit = np.eye(network.graph.outputs)
    for group in network.groups:
        columns_of = group.columns.tolist()
        for k, column in enumerate(columns_of):
            own = unit[group.outputs[k]]
            if group.classifies and len(columns_of) > 1:
                first, q = len(rows) - k * (len(columns_of) - 1), len(columns_of)
                for j in range(q):
                    if j != k:
                        back = first + j * (q - 1) + k - (k > j)
                        ask(unit[group.outputs[j]] - own, column, -1.0, float(group.slack[k, j]), True, back)
                continue
            below, above = (group.slack[1], group.slack[0]) if group.classifies else (group.slack[k],) * 2
            ask(own, column, 1.0, float(below), group.classifies, len(rows) + 1)
            ask(-own, column, -1.0, float(above), group.classifies, len(rows) - 1)
    return _Questions(np.array(rows), columns, signs, slack, decides, partner)
