"""Multipliers for many boxes at a time: those of LPs over the boxes, with the networks' planes as rows.

Where they come from does not matter, a checker takes any; nothing here has to be exact.
"""

from __future__ import annotations

import numpy as np
import torch

from dovetail.bounds.lp_batch.interior_point import multipliers
from dovetail.bounds.lp_batch.linear_programs import LinearPrograms
from dovetail.certificates.checker.leaf_values import PlaneRows
from dovetail.certificates.proof import Leaves
from dovetail.core.arrays import FloatArray

FAR = 1e6
"""Where a column without a bound is taken to end: for finding multipliers only."""


def leaf_multipliers(planes: PlaneRows) -> Leaves:
    """Of every box, with the objective."""
    p = planes
    count, m, q = len(p.lower), len(p.A), p.regression.size
    rows, low, high = _rows(p)
    lower, upper = np.clip(p.lower, -FAR, FAR), np.clip(p.upper, -FAR, FAR)
    unknown = np.broadcast_to(p.unknowns, (count, p.unknowns.size))
    cost = np.concatenate([p.cost, np.zeros(p.unknowns.size)])
    lower, upper = np.hstack([lower, -unknown]), np.hstack([upper, unknown])
    tensors = (torch.from_numpy(np.ascontiguousarray(array)) for array in (rows, low, high, lower, upper))
    with torch.inference_mode():
        y, _ = multipliers(LinearPrograms(torch.from_numpy(cost), 0.0, *tensors))
    found = np.nan_to_num(y.numpy(), nan=0.0, posinf=0.0, neginf=0.0)
    found = np.where((found > 0.0) & np.isneginf(low), 0.0, found)
    found = np.where((found < 0.0) & np.isposinf(high), 0.0, found)
    reduced = cost - (found[:, None, :] @ rows)[:, 0]
    return Leaves(
        np.ones(count),
        found[:, :m],
        reduced[:, p.regression],
        np.abs(found[:, m + 2 * q :]),
    )


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
