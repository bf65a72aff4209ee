"""Families of columns and rows for many equal blocks: arrays that numpy broadcasts to (blocks, columns).

Numbers are kept as given: a number stays a number, and an array is not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import ModelError
from dovetail.core.mip import INFINITY, LARGEST, SMALLEST, whole_bounds
from dovetail.core.options import require_count


@dataclass(frozen=True, eq=False)
class Family:
    """One variable, or k variables, of every block of a template.

    `lower` (default 0), `upper` (default infinity) and `cost` are numbers, (n,) arrays with a number for
    each of n blocks, (n, k) arrays, or (1, k) arrays for all blocks; `fixed` sets both bounds. k comes from
    the arrays or from `width`. Arrays are not copied, so do not change them.

    >>> import dovetail as dt, numpy as np
    >>> problem = dt.Problem(sense="max")
    >>> plants = problem.add_template(3, {"load": dt.Family(upper=np.array([2.0, 4.0, 9.0]), cost=1.0)})
    >>> problem.mip.upper.tolist(), problem.mip.names[2]
    ([2.0, 4.0, 9.0], 'load[2]')
    """

    lower: Any = None
    upper: Any = None
    cost: Any = 0.0
    integer: bool = False
    fixed: Any = field(default=None, kw_only=True)
    width: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True, eq=False)
class FamilyRow:
    """A constraint over families, ``lower <= sum of coefficient * variable <= upper``.

    In `rows` of a template it is one constraint per block. In `coupling` it is one constraint over all
    blocks, and may contain variables of the surrounding `Mip`. Coefficients and limits are numbers or arrays
    as in `Family`; limits of a coupling constraint, and coefficients of variables of the `Mip`, are numbers
    or (k,). Over families of k variables there are k constraints, one per variable (a family of one variable
    takes part in each of them); `summed` adds the k variables up in one constraint.

    >>> import dovetail as dt
    >>> problem = dt.Problem(sense="max")
    >>> plants = problem.add_template(
    ...     2,
    ...     {"load": dt.Family(upper=4.0, cost=1.0), "on": dt.Family(upper=1.0, integer=True)},
    ...     rows=[dt.FamilyRow({"load": 1.0, "on": -4.0}, upper=0.0)],
    ...     coupling=[dt.FamilyRow({"on": 1.0}, upper=1.0, name="staff")],
    ... )
    >>> problem.mip.A.toarray().tolist(), problem.mip.row_name(2)
    ([[1.0, 0.0, -4.0, 0.0], [0.0, 1.0, 0.0, -4.0], [0.0, 0.0, 1.0, 1.0]], 'staff')
    """

    coefficients: Mapping[Any, Any]
    lower: Any = -np.inf
    upper: Any = np.inf
    summed: bool = field(default=False, kw_only=True)
    name: str = field(default="", kw_only=True)


@dataclass(frozen=True, eq=False)
class FamilyArrays:
    """A checked family: its arrays broadcast to (blocks, width)."""

    label: str
    first: int
    """Its first column, counted from the first column of the template."""
    width: int
    lower: FloatArray
    upper: FloatArray
    cost: FloatArray
    integer: bool

    @classmethod
    def of(cls, label: str, family: Any, count: int, first: int) -> FamilyArrays:
        """Check a family; an error names the family and the place."""
        if not isinstance(family, Family):
            raise ModelError(f"family {label} is {family!r}; give a dovetail.Family.")
        lower, upper = family.lower, family.upper
        if family.fixed is not None:
            if lower is not None or upper is not None:
                raise ModelError(f"family {label} has fixed= and bounds; give one of the two.")
            lower = upper = family.fixed
        if type(family.integer).__name__ not in ("bool", "bool_"):
            raise ModelError(f"integer of family {label} is {family.integer!r}; give True or False.")
        given = {
            "lower": 0.0 if lower is None else lower,
            "upper": np.inf if upper is None else upper,
            "cost": family.cost,
        }
        arrays = {name: as_data(f"{name} of family {label}", values) for name, values in given.items()}
        width = _width(label, family.width, arrays)
        for name, array in arrays.items():
            require_shape(f"{name} of family {label}", array, count, width)
        require_numbers(f"cost of family {label}", arrays["cost"])
        low, high = _limits(f"the interval of family {label}", arrays["lower"], arrays["upper"])
        if family.integer:
            low, high = whole_bounds(low, high)
        return cls(label, first, width, low, high, arrays["cost"], bool(family.integer))


@dataclass(frozen=True, eq=False)
class RowArrays:
    """A checked row: its arrays broadcast to (blocks, width). The limits of a coupling row and its
    coefficients of the `Mip` broadcast to (1, width)."""

    label: str
    width: int
    """Number of rows per block, or in all for a coupling row."""
    coefficients: Mapping[str, FloatArray]
    """Coefficients by family; of a summed row they broadcast to (blocks, width of the family)."""
    host: Mapping[int, FloatArray]
    """Coefficients by column of the `Mip`."""
    lower: FloatArray
    upper: FloatArray
    summed: bool

    @classmethod
    def of(
        cls,
        label: str,
        row: FamilyRow,
        families: Mapping[str, FamilyArrays],
        count: int,
        column_of: Callable[[str, Hashable], int] | None,
    ) -> RowArrays:
        """Check a row: a coupling row if `column_of` finds columns of the `Mip`, otherwise a row of each
        block."""
        named = {name: row.coefficients[name] for name in row.coefficients if name in families}
        if not named:
            raise ModelError(f"row {label} names no family of the template ({', '.join(families)}).")
        width = 1 if row.summed else max(families[name].width for name in named)
        for name in named:
            if not row.summed and families[name].width not in (1, width):
                raise ModelError(
                    f"row {label} has family {name} with {families[name].width} columns and another with "
                    f"{width}; the widths must be equal or 1, or the row summed (summed=True)."
                )
        own: dict[str, FloatArray] = {}
        for name, values in named.items():
            what = f"coefficient of {name} in row {label}"
            own[name] = _entries(what, values, count, families[name].width if row.summed else width)
        host: dict[int, FloatArray] = {}
        for key in [key for key in row.coefficients if key not in named]:
            if column_of is None:
                raise ModelError(f"row {label} names {key!r}, which is no family of the template.")
            what = f"coefficient of {key!r} in row {label}"
            column = column_of(label, key)
            if column in host:
                raise ModelError(f"row {label} names column {key!r} twice, by name and by index.")
            host[column] = _entries(what, row.coefficients[key], 1, width)
        lower, upper = (
            as_data(f"{side} of row {label}", values, across=column_of is not None)
            for side, values in (("lower", row.lower), ("upper", row.upper))
        )
        for side, array in (("lower", lower), ("upper", upper)):
            require_shape(f"{side} of row {label}", array, count if column_of is None else 1, width)
        lower, upper = _limits(f"the interval of row {label}", lower, upper)
        return cls(label, width, own, host, lower, upper, bool(row.summed))


def as_data(what: str, values: Any, *, across: bool = False) -> FloatArray:
    """Numbers as a float64 array with zero or two dimensions: a vector has one number for each block, or with
    `across` one for each column."""
    try:
        if values is None or np.iscomplexobj(values):
            raise ValueError("it is None, or complex")
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as reason:
        raise ModelError(f"{what} cannot be read as numbers ({reason}).") from None
    if array.ndim > 2:
        raise ModelError(f"{what} has shape {array.shape}; give at most (blocks, columns).")
    if array.ndim == 1:
        array = array[None, :] if across else array[:, None]
    array = array.view()
    array.flags.writeable = False
    return array


def require_shape(what: str, array: FloatArray, count: int, width: int) -> None:
    """Refuse an array that does not broadcast to (count, width)."""
    if array.ndim and (array.shape[0] not in (1, count) or array.shape[1] not in (1, width)):
        raise ModelError(
            f"{what} has shape {array.shape}; give a number, or an array of shape ({count},), (1, {width}) "
            f"or ({count}, {width}): one for each of {count} blocks, {width} columns, or both."
        )


def require_numbers(what: str, array: FloatArray) -> None:
    """Refuse NaN and infinity."""
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise ModelError(f"{what} is {array[tuple(bad[0])]}{_place(bad[0])}; give a finite number.")


def _entries(what: str, values: Any, count: int, width: int) -> FloatArray:
    """Coefficients: 0, or of a size that solvers accept."""
    array = as_data(what, values, across=count == 1)
    require_shape(what, array, count, width)
    require_numbers(what, array)
    size = np.abs(array)
    bad = np.argwhere((size > 0.0) & ((size < SMALLEST) | (size > LARGEST)))
    if len(bad):
        raise ModelError(
            f"{what} is {array[tuple(bad[0])]}{_place(bad[0])}; give 0 or a size between {SMALLEST:g} and "
            f"{LARGEST:g} (solvers drop or refuse others): rescale the constraint."
        )
    return array


def _limits(what: str, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Limits, with infinity for no limit; crossed limits and NaN are refused."""
    bad = np.argwhere(
        np.isnan(lower) | np.isnan(upper) | (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    )
    if len(bad):
        low, high = np.broadcast_arrays(lower, upper)
        place = tuple(bad[0])
        raise ModelError(
            f"{what} is [{low[place]}, {high[place]}]{_place(bad[0])}; "
            "give lower <= upper, neither NaN, with -inf or inf for no limit."
        )
    return _unlimited(lower), _unlimited(upper)


def _unlimited(limits: FloatArray) -> FloatArray:
    far = np.abs(limits) >= INFINITY
    return np.where(far, np.copysign(np.inf, limits), limits) if np.any(far) else limits


def _width(label: str, said: int | None, arrays: Mapping[str, FloatArray]) -> int:
    if said is not None:
        require_count(f"width of family {label}", said, at_least=1)
        return int(said)
    return max(array.shape[1] if array.ndim else 1 for array in arrays.values())


def _place(place: Any) -> str:
    """The place in an array, for messages; empty for a number."""
    return f" at block {place[0]}, column {place[1]}" if len(place) else ""
