"""How far a predictor's answer for a row moves with the batch around it.

A table holds what the predictor said of each row in one large batch. Asked for one row alone, or in another
batch, a float32 network gives other last digits, since its sums are taken in another order. What a table
proves must hold for those answers too.

This is measured, not derived: rows are asked for again, alone and among others, and the largest difference
is allowed for, and one more rounding. A table is made of answers seen on this machine, and so is its spread:
worst cases of any machine, as `Program.errors` has them, are ten times as wide, and known for few networks.
float64 moves in the sixteenth digit, far below the 1e-6 that `optimal` promises; only classes can notice.
"""

from __future__ import annotations

import time

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.batch_rounding import DOUBLE
from dovetail.core.description import Description
from dovetail.core.predictor import Predictor
from dovetail.networks.arithmetic import FLOAT32, FLOAT64, FORMATS

ALONE = 32
"""Rows that are asked for again, each by itself."""
PATIENCE = 0.2
"""Seconds after which no more are asked for: a predictor may be slow."""


def batch_spread(
    predictor: Predictor, description: Description, X: FloatArray, values: FloatArray
) -> FloatArray:
    """Per output, how far from `values`, the answer for `X`, the answer in another batch may be."""
    largest = np.max(np.abs(values), axis=0, initial=0.0)
    known = description.quadratic is not None  # what it computes, and that it is no function in disguise
    if description.is_float64 and (known or not _is_float32(values)):
        return np.asarray(DOUBLE * np.maximum(1.0, largest))
    floor = _last_digit(description, values) * largest
    return np.asarray(floor + _seen(predictor, X, values))


def _last_digit(description: Description, values: FloatArray) -> float:
    """The roundoff of one operation, as far as the predictor shows in what it computes."""
    if description.is_float64:
        short = np.all(values.astype(np.float32).view(np.uint32) & 0xFFFF == 0)  # whole numbers, say
        return FLOAT32.roundoff if _is_float32(values) and not short else FLOAT64.roundoff
    coarse = description.rounding
    return coarse if coarse > FORMATS["float16"].roundoff else FLOAT32.roundoff


def _is_float32(values: FloatArray) -> bool:
    """A function may compute in float32 without saying so: all its values are such numbers."""
    with np.errstate(over="ignore"):
        return bool(np.all(values.astype(np.float32) == values))


def _seen(predictor: Predictor, X: FloatArray, values: FloatArray) -> FloatArray:
    begin = time.perf_counter()
    half = slice(0, None, 2)
    worst = np.max(np.abs(predictor.predict(X[half]) - values[half]), axis=0, initial=0.0)
    for i in np.unique(np.linspace(0, len(X) - 1, ALONE).astype(int)):
        if time.perf_counter() - begin > PATIENCE:
            break
        worst = np.maximum(worst, np.abs(predictor.predict(X[i : i + 1]) - values[i : i + 1])[0])
    return np.asarray(worst)
