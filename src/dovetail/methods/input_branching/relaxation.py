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

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dovetail.analysis.joint_network import JointNetwork
from dovetail.bounds.lp_batch.linear_programs import LinearPrograms
from dovetail.bounds.planes.domain import Boxes, gamma
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import Mip

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
        asked = _questions(network)
        self._asked = self._tensor(asked.rows)
        self.column = torch.as_tensor(asked.columns, device=device)
        self._sign, self.slack = self._tensor(asked.signs), self._tensor(asked.slack)
        self.decides = torch.as_tensor(asked.decides, device=device)
        self.partner = torch.as_tensor(asked.partner, device=device)
        self._inputs = torch.as_tensor(network.inputs, device=device)
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

    def programs(self, lower: Tensor, upper: Tensor) -> tuple[LinearPrograms, Separation]:
        """The LPs of N boxes, (N, columns) each, and how far apart the planes are on them."""
        box = Boxes(lower[:, self._inputs], upper[:, self._inputs])
        planes = self.planes.planes(self._asked, self.planes.ranges(box))
        count, asked, _ = planes.slopes.shape
        most = -box.minimum(-planes.slopes, -planes.offset)  # what each plane is never above
        big = (most - self.slack).clamp(min=0.0) * (1.0 + ROUNDING)
        entry = torch.where(self.decides, big, 1.0) * self._sign
        down = torch.where(self.decides & (self._sign < 0.0), big, 0.0)
        right = planes.offset - self.slack - down
        right = right - ROUNDING * (planes.offset.abs() + self.slack + down)
        rows = torch.zeros(count, asked, self.n_columns, dtype=lower.dtype, device=lower.device)
        rows[:, :, self._inputs] = -planes.slopes
        rows[:, torch.arange(asked, device=lower.device), self.column] += entry
        apart = Separation(
            -(planes.slopes + planes.slopes[:, self.partner]),
            -(planes.offset + planes.offset[:, self.partner]),
            self._inputs,
        )
        endless = torch.full_like(right, torch.inf)
        host = self.host_rows.expand(count, -1, -1)
        programs = LinearPrograms(
            self.cost,
            self.offset,
            torch.cat([host, rows], 1),
            torch.cat([self._row_lower.expand(count, -1), right], 1),
            torch.cat([self._row_upper.expand(count, -1), endless], 1),
            lower,
            upper,
        )
        return programs, apart


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
