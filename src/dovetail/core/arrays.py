"""Reading the arrays a user passes in: right size, right kind, finite, or an error that names the entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import DovetailError, ModelError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

NameOf = Callable[[int], str]


def vector(
    what: str, values: ArrayLike, size: int | None, error: type[DovetailError] = ModelError
) -> FloatArray:
    """`values` as a read-only float64 vector of the given size."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise error(f"{what} cannot be read as numbers ({reason}).") from None
    if array.ndim == 0 and size is not None:
        array = np.full(size, float(array))
    if array.ndim != 1:
        raise error(f"{what} must be a vector, but has shape {array.shape}.")
    if size is not None and array.size != size:
        raise error(f"{what} has {array.size} entries, expected {size}.")
    array.flags.writeable = False
    return array


def require_finite(
    what: str, array: FloatArray, name_of: NameOf, error: type[DovetailError] = ModelError
) -> None:
    """Refuse NaN and infinity: both HiGHS and SCIP answer "optimal" to a NaN."""
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        j = int(bad[0])
        raise error(f"{what} is {array[j]} for {name_of(j)}; give a finite number.")


def require_interval(what: str, lower: FloatArray, upper: FloatArray, name_of: NameOf) -> None:
    """Refuse NaN, crossed limits, and limits at the wrong infinity."""
    bad = np.flatnonzero(
        np.isnan(lower) | np.isnan(upper) | (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    )
    if bad.size:
        j = int(bad[0])
        raise ModelError(
            f"{what} of {name_of(j)} is [{lower[j]}, {upper[j]}]; "
            "give lower <= upper, neither NaN, with -inf or inf for no limit."
        )


def flags(what: str, values: Any, size: int) -> BoolArray:
    """`values` as a read-only vector of booleans; 0 and 1 are taken, anything else is refused."""
    array = np.asarray(values)
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape != (size,):
        raise ModelError(f"{what} has shape {array.shape}, expected ({size},).")
    if array.dtype != np.bool_:
        if not np.all(np.isin(array, (0, 1))):
            raise ModelError(
                f"{what} must be true (integer) or false (continuous) per column; "
                "semi-continuous and semi-integer columns are not supported: "
                "write them with a binary column and two rows."
            )
        array = array.astype(np.bool_)
    array = array.copy()
    array.flags.writeable = False
    return array
