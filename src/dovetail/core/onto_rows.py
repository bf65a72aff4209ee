"""A point moved onto rows and bounds that it misses by less than some of its columns are known.

An output of a predictor that computes in float32 is known to its rounding and no better. Where a row asks
for a value between two of float32's, no answer meets it, and a value within the rounding does.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.mip import TOLERANCE, Mip


def onto_rows(mip: Mip, x: FloatArray, room: FloatArray) -> FloatArray | None:
    """`x` with each column moved by no more than its `room`; None where a row or bound needs more.

    Each row that is missed is met by itself, its columns moving in the ratio of their rooms: where a column
    is in several of them, the caller has to look whether all are met.

    >>> mip = Mip([0.0, 0.0], A=[[1.0, 1.0]], row_lower=2.0, row_upper=2.0)
    >>> onto_rows(mip, np.array([1.5, 0.49]), np.array([0.0, 0.02])).tolist()
    [1.5, 0.5]
    """
    inside = np.clip(x, mip.lower, mip.upper)
    activity = mip.A @ inside
    missing = np.maximum(mip.row_lower - activity, 0.0) - np.maximum(activity - mip.row_upper, 0.0)
    missed = np.abs(missing) > TOLERANCE
    reach = abs(mip.A) @ room
    if np.any(np.abs(inside - x) > np.maximum(room, TOLERANCE)) or np.any(
        np.abs(missing[missed]) > reach[missed]
    ):
        return None
    share = np.where(missed, missing / np.where(missed, reach, 1.0), 0.0)
    return np.asarray(inside + room * (mip.A.sign().T @ share))
