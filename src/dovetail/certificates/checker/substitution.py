"""Columns of a part in terms of its variables and unknowns: as they are, or as equality rows define them."""

from __future__ import annotations

import numpy as np

from dovetail.certificates.checker.joint_graph import Definition, JointGraph
from dovetail.certificates.checker.region import Boxes, Region
from dovetail.certificates.checker.rounding import gamma
from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.mip import Mip

RegionRow = tuple[FloatArray | None, float, float]
"""What cuts a region: weights, and what they come to at most and at least."""
NO_ROW: RegionRow = (None, np.inf, -np.inf)


class Substitution:
    """Rows over columns become rows over variables and unknowns; `place` says where the columns are."""

    def __init__(self, joint: JointGraph, place: dict[int, int], definitions: list[Definition]) -> None:
        self._joint, self._place, self._definitions = joint, place, definitions
        self.variables = np.array([place[int(j)] for j in joint.variables], dtype=np.int64)
        """Places of the columns that are variables."""
        self._weights = []
        for one in definitions:
            weights = np.zeros(joint.inputs)
            joint.place_in(one.column, weights)
            self._weights.append((place[one.column], weights, one.constant))

    def box(self, boxes: Boxes) -> tuple[FloatArray, FloatArray]:
        """Bounds of variables and unknowns."""
        unknown = np.broadcast_to(self._joint.unknowns, (len(boxes.lower), self._joint.unknowns.size))
        at = self.variables
        return np.hstack([boxes.lower[:, at], -unknown]), np.hstack([boxes.upper[:, at], unknown])

    def rows(self, rows: FloatArray) -> FloatArray:
        """(N, variables and unknowns) of rows over columns, regression outputs left out."""
        total = np.zeros((len(rows), self._joint.inputs))
        total[:, : self.variables.size] = rows[:, self.variables]
        for at, weights, _ in self._weights:
            total += rows[:, [at]] * weights
        return total

    def noise(self, rows: FloatArray, off: FloatArray, slopes: FloatArray) -> FloatArray:
        """What those, and slopes that are added, may be off by, where the rows were off by `off`."""
        size = self._absolute(np.abs(rows)) + np.abs(slopes)
        return self._absolute(off) + gamma(2 + len(self._weights)) * size

    def _absolute(self, sizes: FloatArray) -> FloatArray:
        total = np.zeros((len(sizes), self._joint.inputs))
        total[:, : self.variables.size] = sizes[:, self.variables]
        for at, weights, _ in self._weights:
            total += sizes[:, [at]] * np.abs(weights)
        return total

    def constant(self, rows: FloatArray, off: FloatArray) -> FloatArray:
        """(N,) what constants of definitions come to, at least."""
        parts = np.array([rows[:, at] * c for at, _, c in self._weights]).reshape(-1, len(rows))
        loose = np.array([off[:, at] * abs(c) for at, _, c in self._weights]).reshape(-1, len(rows))
        noise = gamma(len(parts)) * np.abs(parts).sum(axis=0) + 2.0 * loose.sum(axis=0)
        return np.asarray(parts.sum(axis=0) - noise)

    def region_row(self, mip: Mip, row: int, boxes: Boxes) -> RegionRow:
        """A row of the part over variables and unknowns."""
        if row < 0:
            return NO_ROW
        entries = mip.A[[row]].tocoo()
        weights, shift = np.zeros(self._joint.inputs), 0.0
        ends = [float(mip.row_upper[row]), float(mip.row_lower[row])]
        sizes, total = np.zeros(self._joint.inputs), sum(abs(end) for end in ends if np.isfinite(end))
        for j, a in zip(entries.coords[1].tolist(), entries.data.tolist(), strict=True):
            if j not in self._place or j in self._joint.regression.tolist():
                raise UnsupportedError("the row of a part has other columns in it")
            one = np.zeros(self._joint.inputs)
            constant = self._joint.place_in(j, one)
            weights, shift = weights + a * one, shift + a * constant
            sizes, total = sizes + np.abs(a * one), total + abs(a * constant)
        reach = Region(*self.box(boxes)).size[0]
        if not np.isfinite(shift) or not np.all(np.isfinite(reach[sizes > 0.0])):
            return NO_ROW
        total += float(sizes[sizes > 0.0] @ reach[sizes > 0.0])
        room = gamma(2 * entries.data.size) * total
        return weights, ends[0] - shift + room, ends[1] - shift - room

    def cost_row(self, cost: FloatArray, noise: FloatArray, most: float, boxes: Boxes) -> RegionRow:
        """The part's cost (known up to `noise`, by place) over variables and unknowns, at most `most`."""
        outputs = [self._place[int(j)] for j in self._joint.regression]
        if np.any(np.abs(cost[outputs]) + noise[outputs] > 0.0):
            raise UnsupportedError("the cost of a part has outputs of networks in it")
        weights, size = self.rows(cost[None])[0], self._absolute(np.abs(cost)[None])[0]
        slack = self._absolute(noise[None])[0]
        constants = np.zeros((len(self._weights), 2))
        for k, (at, _, constant) in enumerate(self._weights):
            constants[k] = cost[at] * constant, noise[at] * abs(constant)
        reach = Region(*self.box(boxes)).size[0]
        seen = (size > 0.0) | (slack > 0.0)
        if not np.isfinite(most) or not np.all(np.isfinite(reach[seen])):
            return NO_ROW
        total = abs(most) + float(np.abs(constants[:, 0]).sum() + size[seen] @ reach[seen])
        room = float(constants[:, 1].sum() + slack[seen] @ reach[seen])
        side = most - float(constants[:, 0].sum())
        return weights, side + (room + gamma(2 * len(cost)) * total) * (1.0 + gamma(len(cost))), -np.inf


def definition(mip: Mip, column: int, row: int) -> Definition:
    """A column as an equality row has it; the row is as loose as the check already."""
    start, stop = mip.A.indptr[row], mip.A.indptr[row + 1]
    entries = dict(zip(mip.A.indices[start:stop].tolist(), mip.A.data[start:stop].tolist(), strict=True))
    own = entries.pop(column, 0.0)
    if abs(own) != 1.0 or not np.isfinite(mip.row_upper[row] - mip.row_lower[row]):
        raise UnsupportedError(f"{mip.row_name(row)} does not say what {mip.column_name(column)} is")
    middle = 0.5 * (mip.row_lower[row] + mip.row_upper[row])
    missed = 0.5 * (mip.row_upper[row] - mip.row_lower[row]) + gamma(4) * (1.0 + abs(middle))
    return Definition(column, {j: -a * own for j, a in entries.items()}, float(middle * own), float(missed))
