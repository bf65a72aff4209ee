"""All values that a few integer columns can take together."""

from __future__ import annotations

import itertools

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray


def grid(columns: IntArray, lower: FloatArray, upper: FloatArray, most: int) -> FloatArray | None:
    """(k, columns) every combination within the bounds, or None if there are more than `most`."""
    low, high = np.ceil(lower[columns]), np.floor(upper[columns])
    counts = high - low + 1.0
    if not np.all(np.isfinite(counts)) or np.prod(counts) > most:
        return None
    ranges = [first + np.arange(int(count)) for first, count in zip(low, counts, strict=True)]
    return np.array(list(itertools.product(*ranges))).reshape(int(np.prod(counts)), columns.size)
