"""A point moved onto equations that it misses by less than some of its columns are known.

An output of a predictor that computes in float32 is known to its rounding and no better. Where a row asks
for a value between two of float32's, no answer meets it, and a value within the rounding does. A row or bound
that leaves room to one side is another matter: there are answers inside, and they are to be found.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import TOLERANCE, Mip

FAR = 2.0**-14
"""Relative: a thousand roundings of float32, which is more than its networks add up to."""


def nearly_met(mip: Mip, x: FloatArray) -> bool:
    """Whether what is missed of rows is next to nothing of what their columns are."""
    missed = mip.row_violation(x)
    return bool(np.all(missed <= np.maximum(TOLERANCE, FAR * (abs(mip.A) @ np.abs(x)))))


def near_equations(mip: Mip, x: FloatArray, loose: BoolArray, rows: BoolArray) -> bool:
    """Whether all that is missed of `rows` and bounds are equations and fixed columns, by next to nothing of
    what the `loose` columns are."""
    sizes = np.where(loose, np.abs(x), 0.0)
    missed, outside = mip.row_violation(x), mip.bound_violation(x)
    faults, beyond = rows & (missed > TOLERANCE), outside > TOLERANCE
    if not (np.any(faults) or np.any(beyond)):
        return False
    near = np.all(missed[faults] <= FAR * (abs(mip.A) @ sizes)[faults])
    only = np.all(_equations(mip)[faults]) and np.all((_fixed(mip) & loose)[beyond])
    return bool(near and only and np.all(outside[beyond] <= FAR * sizes[beyond]))


def onto_rows(mip: Mip, x: FloatArray, room: FloatArray, rows: BoolArray) -> FloatArray | None:
    """`x` with each column moved by no more than its `room`, inside its bounds and onto these rows.

    None where one needs more. Each row that is missed is met by itself, its columns moving in the ratio of
    their rooms: where a column is in several of them, the caller has to look whether all are met.

    >>> mip = Mip([0.0, 0.0], A=[[1.0, 1.0]], row_lower=2.0, row_upper=2.0)
    >>> onto_rows(mip, np.array([1.5, 0.49]), np.array([0.0, 0.02]), np.array([True])).tolist()
    [1.5, 0.5]
    """
    inside = np.clip(x, mip.lower, mip.upper)
    outside = np.abs(inside - x) > TOLERANCE
    activity = mip.A @ inside
    missing = np.maximum(mip.row_lower - activity, 0.0) - np.maximum(activity - mip.row_upper, 0.0)
    missed = rows & (np.abs(missing) > TOLERANCE)
    reach = abs(mip.A) @ room
    if np.any(np.abs(inside - x)[outside] > room[outside]) or np.any(np.abs(missing)[missed] > reach[missed]):
        return None
    share = np.where(missed, missing / np.where(missed, reach, 1.0), 0.0)
    return np.asarray(inside + room * (mip.A.sign().T @ share))


def _equations(mip: Mip) -> BoolArray:
    return np.asarray(mip.row_upper - mip.row_lower <= TOLERANCE)


def _fixed(mip: Mip) -> BoolArray:
    return np.asarray(mip.upper - mip.lower <= TOLERANCE)
