"""A mixed-integer linear program without networks (called the host of the predictors).

min or max cost'x + offset subject to row_lower <= A x <= row_upper, lower <= x <= upper, x_j integer where
integer[j]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal
from weakref import WeakValueDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from dovetail.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    flags,
    require_finite,
    require_interval,
    resolve,
    vector,
)
from dovetail.core.errors import ModelError
from dovetail.core.names import LazyNames, distinct
from dovetail.core.sparse import row_of_entries, times
from dovetail.core.words import several

INFINITY = 1e20
"""Limits at or beyond this size mean "no limit", as in HiGHS and SCIP."""

TOLERANCE, HAIR = 1e-6, 1e-9
"""The absolute tolerance of the check for rows, bounds and integers, in the user's units (for predictions
relative to max(1, |value|)), and the tolerance given to engines."""
FINE = 1e3 * TOLERANCE
"""Integer rows with smaller entries can meet the tolerance on purpose; others only by coincidence."""

SMALLEST, LARGEST = 1e-9, 1e15
"""HiGHS drops matrix entries below the first number with only a warning, and refuses entries above the
second."""
INFINITE_COST = 1e20
"""HiGHS treats costs from here on as infinite."""


_CHECKED: WeakValueDictionary[int, sp.csr_array] = WeakValueDictionary()
"""Checked matrices by the id of the object. They are read-only, so that derived programs share them without
another check."""


class _DistinctNames(tuple[str, ...]):
    """Names known to be distinct: derived programs need not compare them again."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class Mip:
    """A mixed-integer linear program as arrays; checked and read-only after construction.

    min or max cost'x + offset, subject to row_lower <= A x <= row_upper, lower <= x <= upper, and x_j integer
    where integer[j]. `A` is dense, sparse, or None without constraints. A scalar stands for a vector with
    this value in every entry. Variables are >= 0 by default. `names` (of variables) and `row_names` (of
    constraints) are used in messages and to address variables; without names they are ``x[j]`` and
    ``row[i]``.

    >>> import dovetail as dt
    >>> mip = dt.Mip(
    ...     cost=[3.0, 2.0], A=[[1.0, 1.0]], row_lower=[2.0], row_upper=[8.0],
    ...     upper=5.0, integer=[True, False], names=["trucks", "hours"],
    ... )
    >>> mip.n_rows, mip.n_columns, mip.objective([1.0, 2.0])
    (1, 2, 7.0)
    """

    cost: FloatArray
    A: sp.csr_array
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray
    sense: Literal["min", "max"] = "min"
    offset: float = 0.0
    names: Sequence[str] | None = None
    row_names: Sequence[str] | None = None
    objective_name: str = ""

    def __init__(
        self,
        cost: ArrayLike,
        A: Any = None,
        row_lower: ArrayLike = (),
        row_upper: ArrayLike = (),
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        integer: Any = False,
        sense: Literal["min", "max"] = "min",
        offset: float = 0.0,
        names: Sequence[str] | None = None,
        row_names: Sequence[str] | None = None,
        objective_name: str = "",
    ) -> None:
        put = object.__setattr__
        put(self, "objective_name", str(objective_name))
        put(self, "cost", vector("cost", cost, None))
        columns = self.cost.size
        put(self, "A", _matrix(A, columns))
        rows = self.A.shape[0]
        per_row = f"A has {several(rows, 'row')}: give one per row of A"
        per_column = f"cost has {columns}: give one per variable"
        _require_sides(rows, row_lower=row_lower, row_upper=row_upper)
        put(self, "row_lower", _limits("row_lower", row_lower, rows, per_row))
        put(self, "row_upper", _limits("row_upper", row_upper, rows, per_row))
        put(self, "lower", _limits("lower", lower, columns, per_column))
        put(self, "upper", _limits("upper", upper, columns, per_column))
        put(self, "integer", flags("integer", integer, columns))
        put(self, "sense", sense)
        try:
            put(self, "offset", float(offset))
        except (TypeError, ValueError, OverflowError):
            raise ModelError(f"offset is {offset!r}; give a finite number.") from None
        put(self, "names", _names("names", names, columns, per_column))
        put(self, "row_names", _names("row_names", row_names, rows, per_row))
        self._validate()
        self._round_integer_bounds()

    def _validate(self) -> None:
        if self.n_columns == 0:
            raise ModelError("cost is empty; a problem needs at least one variable.")
        if not isinstance(self.sense, str) or self.sense not in ("min", "max"):
            raise ModelError(f'sense is {self.sense!r}; give "min" or "max".')
        if not np.isfinite(self.offset):
            raise ModelError(f"offset is {self.offset}; give a finite number.")
        require_finite("cost", self.cost, self.column_name)
        _require_usable_costs(self)
        require_interval("the interval", self.lower, self.upper, self.column_name)
        require_interval("the interval", self.row_lower, self.row_upper, self.row_name)
        _require_usable_entries(self)

    def _round_integer_bounds(self) -> None:
        """Round bounds of integers to whole numbers, because HiGHS's presolve draws false conclusions from
        others."""
        low, high = whole_bounds(self.lower, self.upper)
        for name, whole, own in (("lower", low, self.lower), ("upper", high, self.upper)):
            limits = np.where(self.integer, whole, own) + 0.0
            limits.flags.writeable = False
            object.__setattr__(self, name, limits)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.cost.size)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.A.shape[0])

    @property
    def sign(self) -> float:
        """1 when minimising, -1 when maximising: `sign * objective` is always minimised."""
        return 1.0 if self.sense == "min" else -1.0

    @cached_property
    def sides_as_checked(self) -> tuple[FloatArray, FloatArray]:
        """The limits of rows; for rows with small integer steps relaxed as far as the check accepts.

        Such a row (over integers alone, with an entry below `FINE`) has integer points within the tolerance
        of its limit. The check accepts them, so every search and every proof must include them.
        """
        small = np.abs(self.A.data) < FINE
        if not np.any(small):
            return self.row_lower, self.row_upper
        row = row_of_entries(self.A)
        mixed = np.bincount(row, ~self.integer[self.A.indices], self.n_rows) > 0
        fine = np.bincount(row, small, self.n_rows) > 0
        room = np.where(fine & ~mixed, TOLERANCE - HAIR, 0.0)
        return self.row_lower - room, self.row_upper + room

    def as_checked(self) -> Mip:
        """The same program with `sides_as_checked`."""
        row_lower, row_upper = self.sides_as_checked
        if row_lower is self.row_lower:
            return self
        return replace(self, row_lower=row_lower, row_upper=row_upper)

    def loosened(self, columns: IntArray | slice = slice(None)) -> Mip:
        """Rows and continuous columns relaxed as far as the check accepts, so that every point that passes
        is included; or rows and some columns, if points are clipped to the bounds of the others."""
        room = np.zeros(self.n_columns)
        room[columns] = np.where(self.integer[columns], 0.0, TOLERANCE)
        return replace(
            self,
            row_lower=self.row_lower - TOLERANCE,
            row_upper=self.row_upper + TOLERANCE,
            lower=self.lower - room,
            upper=self.upper + room,
        )

    def objective(self, x: FloatArray) -> float:
        """The objective at `x`, in the user's sense."""
        return float(self.cost @ x) + self.offset

    def row_violation(self, X: FloatArray) -> FloatArray:
        """The violation of rows at a point, or (T, rows) at each row of `X`.

        Signed: negative inside, minus the slack of the nearer limit. Used by searches; the check has its own
        computation.
        """
        activity = times(self.A, X)
        return np.maximum(self.row_lower - activity, activity - self.row_upper)

    def bound_violation(self, X: FloatArray) -> FloatArray:
        """The violation of bounds at a point, or at each row of `X`; signed like rows."""
        return np.maximum(self.lower - X, X - self.upper)

    def column_name(self, j: int) -> str:
        """The name of column j in messages."""
        return self.names[j] if self.names is not None else f"x[{j}]"

    def row_name(self, i: int) -> str:
        """The name of row i in messages."""
        return self.row_names[i] if self.row_names is not None else f"row[{i}]"

    def resolve(self, what: str, references: Any) -> IntArray:
        """Column indices for an array of indices or names, keeping its shape."""
        return resolve(what, references, self.n_columns, lambda: self._index)

    @cached_property
    def turned(self) -> tuple[sp.csr_array, sp.csr_array]:
        """The transposes of A and |A|, made once, because bounds from multipliers use them often."""
        turned = sp.csr_array(self.A.T)
        return turned, sp.csr_array(abs(turned))

    @cached_property
    def _index(self) -> dict[str, int] | None:
        """Columns by name, if they have names."""
        return None if self.names is None else {name: j for j, name in enumerate(self.names)}

    def with_columns(
        self, lower: FloatArray, upper: FloatArray, integer: BoolArray, names: Sequence[str]
    ) -> Mip:
        """The program with more columns at its end, without costs and entries."""
        more = len(names)
        return replace(
            self,
            cost=np.concatenate([self.cost, np.zeros(more)]),
            A=sp.hstack([self.A, sp.csr_array((self.n_rows, more))], format="csr"),
            lower=np.concatenate([self.lower, lower]),
            upper=np.concatenate([self.upper, upper]),
            integer=np.concatenate([self.integer, integer]),
            names=None if self.names is None else self._with_names(names),
        )

    def with_rows(
        self, rows: Any, lower: ArrayLike, upper: ArrayLike, names: Sequence[str] | None = None
    ) -> Mip:
        """The program with more rows at its end; without `names` the rows lose their names."""
        own = () if names is None else map(self.row_name, range(self.n_rows))
        return replace(
            self,
            A=sp.vstack([self.A, rows], format="csr"),
            row_lower=np.concatenate([self.row_lower, lower]),
            row_upper=np.concatenate([self.row_upper, upper]),
            row_names=None if names is None else distinct([*own, *names]),
        )

    def _with_names(self, names: Sequence[str]) -> Sequence[str]:
        assert self.names is not None
        if isinstance(self.names, LazyNames):
            return self.names.with_names(names)
        taken = set(self.names)
        fresh = [
            name if name not in taken else f"{name}#{self.n_columns + k}" for k, name in enumerate(names)
        ]
        return (*self.names, *fresh)

    def relaxed(self) -> Mip:
        """The same program without integrality."""
        return replace(self, integer=np.zeros(self.n_columns, dtype=bool))

    def minimised(self) -> Mip:
        """The same program as a minimisation."""
        return self if self.sense == "min" else self._minimised

    @cached_property
    def _minimised(self) -> Mip:
        """Computed once, because every search and proof needs the program in this form."""
        return replace(self, cost=-self.cost, offset=-self.offset, sense="min")


def whole_bounds(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds of integers, rounded inwards. If no whole number lies between the bounds, they are kept, and the
    solve finds the problem infeasible."""
    low, high = np.ceil(lower - TOLERANCE), np.floor(upper + TOLERANCE)
    empty = low > high
    if not np.any(empty):
        return low, high
    return np.where(empty, lower, low), np.where(empty, upper, high)


def _matrix(A: Any, columns: int) -> sp.csr_array:
    if A is None:
        return sp.csr_array((0, columns))
    known = _CHECKED.get(id(A))
    if known is not None and known is A and known.shape[1] == columns:
        return known
    try:
        if np.iscomplexobj(A):
            raise ValueError("it holds complex numbers")
        matrix = sp.csr_array(_checked_matrix(A) if sp.issparse(A) else A, dtype=np.float64, copy=True)
    except (TypeError, ValueError, OverflowError) as reason:
        raise ModelError(f"A cannot be read as a matrix of numbers ({reason}).") from None
    if matrix.ndim != 2 or matrix.shape[1] != columns:
        raise ModelError(
            f"A has shape {matrix.shape}, but cost has {columns} entries: "
            f"A needs one column per entry of cost, shape (rows, {columns})."
        )
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    _CHECKED[id(matrix)] = matrix
    return matrix


def _checked_matrix(A: Any) -> Any:
    """A checked copy of a sparse matrix, because scipy trusts indices without a check."""
    A = A.copy()
    if A.format in ("csr", "csc", "bsr"):
        A.check_format(full_check=True)
    elif A.format == "coo":
        for index, size in zip(A.coords, A.shape, strict=True):
            if index.size != A.data.size or (index.size and not 0 <= index.min() <= index.max() < size):
                raise ValueError(f"its indices lie outside the shape {A.shape}, or are too few")
    return A


def _require_sides(rows: int, **sides: ArrayLike) -> None:
    """Both limits of rows are required: a missing one is not guessed."""
    for what, values in sides.items():
        if rows and isinstance(values, list | tuple) and not values:
            none = "-np.inf" if what == "row_lower" else "np.inf"
            raise ModelError(
                f"{what} is missing, but A has {several(rows, 'row')}: give one number per row of A, or "
                f"{what}={none} where no constraint has such a limit."
            )


def _limits(what: str, values: ArrayLike, size: int, expected: str) -> FloatArray:
    array = vector(what, values, size, expected=expected).copy()
    array[array >= INFINITY] = np.inf
    array[array <= -INFINITY] = -np.inf
    array += 0.0  # numpy takes 0.0 and -0.0 for bounds that cross
    array.flags.writeable = False
    return array


def _names(what: str, names: Sequence[str] | None, size: int, expected: str) -> Sequence[str] | None:
    if names is None or (isinstance(names, _DistinctNames | LazyNames) and len(names) == size):
        return names
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ModelError(f"{what} is {names!r}; give one name per entry.")
    result = tuple(map(str, names))
    if len(result) != size:
        raise ModelError(f"{what} has {several(len(result), 'entry', 'entries')}, {expected}.")
    if len(set(result)) != size:
        seen: set[str] = set()
        twice = next(name for name in result if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ModelError(f"{what} has {twice!r} twice; names must differ.")
    return _DistinctNames(result)


def _require_usable_costs(mip: Mip) -> None:
    dear = np.flatnonzero(np.abs(mip.cost) >= INFINITE_COST)
    if dear.size:
        j = int(dear[0])
        raise ModelError(
            f"the cost of {mip.column_name(j)} is {mip.cost[j]:g}; solvers take {INFINITE_COST:g} and more "
            "for infinite: rescale the objective."
        )


def _require_usable_entries(mip: Mip) -> None:
    data = np.abs(mip.A.data)
    bad = np.flatnonzero(~np.isfinite(data) | (data < SMALLEST) | (data > LARGEST))
    if bad.size:
        place = int(bad[0])
        row = int(np.searchsorted(mip.A.indptr, place, side="right")) - 1
        column = int(mip.A.indices[place])
        entry = (
            f"A has the entry {mip.A.data[place]} in {mip.row_name(row)}, variable {mip.column_name(column)}"
        )
        if not np.isfinite(mip.A.data[place]):
            raise ModelError(f"{entry}; give a finite number.")
        raise ModelError(
            f"{entry}; entries must be between {SMALLEST:g} and {LARGEST:g} in size (solvers drop or refuse "
            "others): rescale the constraint, or set the entry to 0."
        )
