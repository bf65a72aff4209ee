"""Multipliers for many boxes at a time: those of LPs over the boxes, with the networks' planes as rows.

Where they come from does not matter, a checker takes any; nothing here has to be exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from dovetail.bounds.lp_batch.interior_point import multipliers
from dovetail.bounds.lp_batch.linear_programs import LinearPrograms
from dovetail.certificates.checker.leaf_values import PlaneRows
from dovetail.certificates.proof import Leaves
from dovetail.core.arrays import FloatArray, IntArray

FAR = 1e6
"""Where a column without a bound is taken to end: for finding multipliers only."""


@dataclass(frozen=True, eq=False)
class LeafPrograms:
    """The LPs of N boxes: over columns and unknowns; rows of the host, planes of outputs, fixed classes."""

    cost: FloatArray
    rows: FloatArray
    """(N, rows, columns and unknowns)."""
    low: FloatArray
    high: FloatArray
    lower: FloatArray
    upper: FloatArray
    host: int
    """So many rows are the host's."""
    regression: IntArray

    def take(self, chosen: IntArray) -> LeafPrograms:
        """Of some of the boxes."""
        rows, low, high = self.rows[chosen], self.low[chosen], self.high[chosen]
        lower, upper = self.lower[chosen], self.upper[chosen]
        return LeafPrograms(self.cost, rows, low, high, lower, upper, self.host, self.regression)

    def linear_programs(self) -> LinearPrograms:
        """For those who work on all of them at a time."""
        arrays = (self.rows, self.low, self.high, self.lower, self.upper)
        tensors = (torch.from_numpy(np.ascontiguousarray(array)) for array in arrays)
        return LinearPrograms(torch.from_numpy(self.cost), 0.0, *tensors)

    def leaves(self, weight: FloatArray, y: FloatArray) -> Leaves:
        """What a certificate keeps of multipliers (N, rows), the objective having these weights."""
        y = np.where((y > 0.0) & np.isneginf(self.low), 0.0, y)
        y = np.where((y < 0.0) & np.isposinf(self.high), 0.0, y)
        reduced = weight[:, None] * self.cost - (y[:, None, :] @ self.rows)[:, 0]
        planes = self.host + 2 * self.regression.size
        return Leaves(weight, y[:, : self.host], reduced[:, self.regression], np.abs(y[:, planes:]))


def leaf_multipliers(programs: LeafPrograms) -> Leaves:
    """Of every box, with the objective."""
    with torch.inference_mode():
        y, _ = multipliers(programs.linear_programs())
    found = np.nan_to_num(y.numpy(), nan=0.0, posinf=0.0, neginf=0.0)
    return programs.leaves(np.ones(len(found)), found)


def leaf_programs(planes: PlaneRows) -> LeafPrograms:
    """With the planes as rows."""
    p = planes
    count = len(p.lower)
    lower, upper = np.clip(p.lower, -FAR, FAR), np.clip(p.upper, -FAR, FAR)
    unknown = np.broadcast_to(p.unknowns, (count, p.unknowns.size))
    cost = np.concatenate([p.cost, np.zeros(p.unknowns.size)])
    lower, upper = np.hstack([lower, -unknown]), np.hstack([upper, unknown])
    return LeafPrograms(cost, *_rows(p), lower, upper, len(p.A), p.regression)


def _rows(p: PlaneRows) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(N, rows, columns and unknowns) and their sides: the host's, planes of outputs, fixed classes."""
    count, n, m, q = len(p.lower), p.cost.size, len(p.A), p.regression.size
    spread = np.concatenate([p.variables, n + np.arange(p.unknowns.size)])
    rows = np.zeros((count, m + 2 * q + p.classes, n + p.unknowns.size))
    low, high = np.full(rows.shape[:2], -np.inf), np.full(rows.shape[:2], np.inf)
    rows[:, :m, :n], low[:, :m], high[:, :m] = p.A, p.row_lower, p.row_upper
    below, above = rows[:, m : m + q], rows[:, m + q : m + 2 * q]
    for o in range(q):
        below[:, o, spread], above[:, o, spread] = -p.below[:, o], -p.above[:, o]
        below[:, o, p.regression[o]] += 1.0
        above[:, o, p.regression[o]] += 1.0
    low[:, m : m + q], high[:, m + q : m + 2 * q] = p.below_offset[:, :q], p.above_offset[:, :q]
    least, most = p.logits
    for c in range(p.classes):
        one = np.isfinite(least[:, c])[:, None]
        rows[:, m + 2 * q + c, spread] = np.where(one, p.above[:, q + c], p.below[:, q + c])
        low[:, m + 2 * q + c] = least[:, c] - p.above_offset[:, q + c]
        high[:, m + 2 * q + c] = most[:, c] - p.below_offset[:, q + c]
    return rows, low, high
