"""Bounds of all columns, narrowed by rows: where the trees of a certificate begin."""

from __future__ import annotations

import numpy as np

from dovetail.certificates.checker.rounding import gamma
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import Mip
from dovetail.core.sparse import row_of_entries

ROUNDS = 10
"""Of all rows; what more of them bring is left to the trees."""
PAD = 1e-9
"""Relative: limits are put a little farther out than computed."""


def root_box(mip: Mip) -> tuple[FloatArray, FloatArray]:
    """Bounds that hold for every point within rows and bounds, which are as loose as the check's already."""
    lower, upper = mip.lower.copy(), mip.upper.copy()
    row, column, a = row_of_entries(mip.A), mip.A.indices, mip.A.data
    terms = int(np.max(np.diff(mip.A.indptr), initial=0))
    for _ in range(ROUNDS if a.size else 0):
        before = lower, upper
        low = np.where(a > 0.0, a * lower[column], a * upper[column])
        high = np.where(a > 0.0, a * upper[column], a * lower[column])
        most = _rest(mip.row_upper, low, row, gamma(terms), 1.0)
        least = _rest(mip.row_lower, high, row, gamma(terms), -1.0)
        new_upper = np.where(a > 0.0, most / a, least / a)
        new_lower = np.where(a > 0.0, least / a, most / a)
        new_upper = np.where(np.isnan(new_upper), np.inf, new_upper + PAD * (1.0 + np.abs(new_upper)))
        new_lower = np.where(np.isnan(new_lower), -np.inf, new_lower - PAD * (1.0 + np.abs(new_lower)))
        lower, upper = lower.copy(), upper.copy()
        np.minimum.at(upper, column, new_upper)
        np.maximum.at(lower, column, new_lower)
        upper = np.where(mip.integer, np.floor(upper + 1e-7), upper)
        lower = np.where(mip.integer, np.ceil(lower - 1e-7), lower)
        if np.array_equal(before[0], lower) and np.array_equal(before[1], upper):
            break
    return lower, upper


def _rest(side: FloatArray, parts: FloatArray, row: np.ndarray, noise: float, outward: float) -> FloatArray:
    """What is left for each entry: the side less all other entries' parts; infinite where one of those is."""
    endless = ~np.isfinite(parts)
    finite = np.where(endless, 0.0, parts)
    total = np.bincount(row, finite, side.size)
    size = np.bincount(row, np.abs(finite), side.size)
    others = np.bincount(row, endless, side.size)[row] - endless
    left = side[row] - (total[row] - finite)
    left = left + outward * noise * (size[row] + np.where(np.isfinite(side[row]), np.abs(side[row]), 0.0))
    return np.where(others > 0, outward * np.inf, left)
