"""Reading the arrays a user passes in: right size, right kind, finite, or an error that names the entry."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import DovetailError, ModelError
from dovetail.core.pieces import each_piece
from dovetail.core.words import did_you_mean, several

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ObjectArray = NDArray[np.object_]
"""An array of variables of a modelling tool, possibly with numbers among them."""

NameOf = Callable[[int], str]


def vector(
    what: str,
    values: ArrayLike,
    size: int | None,
    error: type[DovetailError] = ModelError,
    *,
    expected: str = "",
) -> FloatArray:
    """`values` as a read-only float64 vector of the given size; `expected` names the origin of the size in
    messages."""
    try:
        if values is None:
            raise ValueError("it is None")
        if np.iscomplexobj(values):
            raise ValueError("they are complex")
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as reason:
        raise error(f"{what} cannot be read as numbers ({reason}).") from None
    if array.ndim == 0 and size is not None:
        array = np.full(size, float(array))
    if array.ndim != 1:
        raise error(f"{what} must be a vector, but has shape {array.shape}.")
    if size is not None and array.size != size:
        has = several(array.size, "entry", "entries")
        raise error(f"{what} has {has}, {expected or f'expected {size}'}.")
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


def as_array(what: str, values: Any) -> NDArray[Any]:
    """Any array-like input as an array of a single shape."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as reason:
        raise ModelError(f"{what} is no array ({reason}); give rows of equal length.") from None


def flags(what: str, values: Any, size: int) -> BoolArray:
    """`values` as a read-only vector of booleans; 0 and 1 are taken, anything else is refused."""
    array = as_array(what, values)
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape != (size,):
        raise ModelError(f"{what} has shape {array.shape}, expected ({size},).")
    if array.dtype != np.bool_:
        if not np.all(np.isin(array, (0, 1))):
            raise ModelError(
                f"{what} must be true (integer) or false (continuous) per column; "
                "semi-continuous and semi-integer variables are not supported: "
                "write them with a binary variable and two constraints."
            )
        array = array.astype(np.bool_)
    array = array.copy()
    array.flags.writeable = False
    return array


def resolve(
    what: str, references: Any, columns: int, index: Callable[[], Mapping[str, int] | None]
) -> IntArray:
    """Column indices for an array of indices or names, keeping its shape; `index` makes columns by name."""
    array = as_array(what, references)
    if array.dtype == object and all(isinstance(entry, Integral) for entry in array.flat):
        array = _as_integers(what, array)
    if array.dtype.kind in "US" or array.dtype == object:
        return _by_name(what, array, index())
    if array.dtype.kind not in "iu":
        raise ModelError(f"{what} must hold indices or names of variables, not {array.dtype} values.")
    outside = array[(array < 0) | (array >= columns)]
    if outside.size:
        raise ModelError(
            f"{what} names variable {outside.flat[0]}, but the variables are 0 to {columns - 1}."
        )
    return array.astype(np.int64)


def _as_integers(what: str, array: NDArray[Any]) -> IntArray:
    try:
        return array.astype(np.int64)
    except OverflowError:
        raise ModelError(f"{what} names a variable with an index that is too large.") from None


FIXED = ", and numbers have no names: dovetail.add_predictor_constr(problem, ...) takes fixed features."


def _is_number(name: object) -> bool:
    try:
        return bool(np.isfinite(float(str(name))))
    except ValueError:
        return False


def _by_name(what: str, array: NDArray[Any], index: Mapping[str, int] | None) -> IntArray:
    if index is None:
        raise ModelError(f"{what} uses names, but the Mip was built without names=.")
    resolved = np.empty(array.shape, dtype=np.int64)
    for place, name in np.ndenumerate(array):
        try:
            resolved[place] = index[name]
        except (KeyError, TypeError):
            meant = did_you_mean(name, index) or (FIXED if _is_number(name) else ".")
            raise ModelError(f"{what}: there is no variable called {str(name)!r}{meant}") from None
    return resolved


def columns_of_one(columns: list[FloatArray]) -> FloatArray | None:
    """The array whose columns these are, if they are all its columns in order; otherwise None."""
    first, width = columns[0], len(columns)
    if first.ndim != 1 or len(first) < 2 or first.strides[0] != width * first.itemsize:
        return None
    begin = first.__array_interface__["data"][0]
    for k, column in enumerate(columns):
        apart = column.__array_interface__["data"][0] - begin
        if column.strides != first.strides or column.shape != first.shape or apart != k * first.itemsize:
            return None
    return np.lib.stride_tricks.as_strided(first, (len(first), width), (first.strides[0], first.itemsize))


def all_finite(numbers: FloatArray) -> bool:
    """Whether all values are finite. The sum of the values decides this in nearly all cases, without extra
    memory.

    >>> import numpy as np
    >>> from dovetail.core.arrays import all_finite
    >>> all_finite(np.array([1e308, 1e308])), all_finite(np.array([1.0, np.nan]))
    (True, False)
    """

    def total(some: slice) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(numbers[some].sum())

    width = numbers.size // max(1, len(numbers))
    finite = all(math.isfinite(one) for one in each_piece(total, len(numbers), width))
    return finite or bool(np.all(np.isfinite(numbers)))
