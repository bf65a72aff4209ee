"""What a library's comparison means for float64: the largest number that it sends left.

A split is a question that numbers answer with yes up to some point, and with no beyond it. Where that point
is can be found without knowing how the question is asked (with < or <=, after a cast, behind a scaler): by
bisection over all float64, which takes 64 questions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray

_SIGN = np.int64(-(2**63))
_LARGEST = np.finfo(np.float64).max


def largest_going_left(goes_left: Callable[[FloatArray], BoolArray], count: int) -> FloatArray:
    """(count,) for each of so many questions the largest float64 answered with yes; -infinity if none is,
    infinity if all are.

    `goes_left` answers all of them at once, each for a number of its own.
    """
    yes, no = np.full(count, _rank(-_LARGEST)), np.full(count, _rank(_LARGEST) + 1)
    while np.any(no - 1 > yes):
        middle = (yes >> 1) + (no >> 1) + (yes & no & 1)
        with np.errstate(over="ignore"):
            left = goes_left(_number(middle))
        yes, no = np.where(left, middle, yes), np.where(left, no, middle)
    found = _number(yes)
    with np.errstate(over="ignore"):
        return np.where(goes_left(found), np.where(found == _LARGEST, np.inf, found), -np.inf)


def float32_at_most(thresholds: FloatArray) -> FloatArray:
    """x goes left where float32(x) <= threshold: scikit-learn's trees, and CatBoost's."""
    return largest_going_left(lambda x: x.astype(np.float32) <= thresholds, thresholds.size)


def float32_below(thresholds: FloatArray) -> FloatArray:
    """x goes left where float32(x) < threshold: XGBoost's trees."""
    return largest_going_left(lambda x: x.astype(np.float32) < thresholds, thresholds.size)


def _rank(number: float) -> np.int64:
    """Floats in their order as whole numbers."""
    bits = np.float64(number).view(np.int64)
    return np.int64(bits if bits >= 0 else _SIGN - bits)


def _number(rank: np.ndarray) -> FloatArray:
    bits = np.where(rank >= 0, rank, _SIGN - rank)
    return np.asarray(bits).view(np.float64)
