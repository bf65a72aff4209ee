"""The program of a problem as the user stated it: a `Mip`, and templates that are not written out.

A solve of many blocks works on this form, part by part, with the user's own arrays. The matrix over all
variables is built only when `mip` is read.

Consecutive rows and columns of a program as they were stated, of the `Mip` or of a template in every
block.

A family of a million blocks is a few numbers and the user's own arrays. Activities of rows and values of
columns are computed part by part from these arrays, without a matrix or a vector over all columns, and
infinite limits are skipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Literal

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.errors import ModelError
from dovetail.core.family_arrays import RowArrays
from dovetail.core.mip import Mip
from dovetail.core.names import label_of
from dovetail.core.pieces import each_piece, piece_of
from dovetail.core.template import Template, column_names, columns_of, expanded, row_names, sides_of

CHUNK = 4096
"""Number of blocks added up at once: nested sums of this size are a thousand times as accurate as one long
sum."""


class RowPart(ABC):
    """Consecutive rows."""

    def __init__(self, size: int, nonzeros: int, sides: tuple[FloatArray, FloatArray]) -> None:
        self.size = size
        """Number of rows."""
        self.nonzeros = nonzeros
        """Number of matrix entries of these rows."""
        self.sides = sides
        """Lower and upper limits, which broadcast to (blocks, rows of one block)."""

    @abstractmethod
    def entries(self) -> Iterator[FloatArray]:
        """All coefficients; a coefficient shared by many rows may be returned once."""

    @abstractmethod
    def activity(self, x: FloatArray, *, sizes: bool = False) -> FloatArray:
        """(size,) the activities at a point, or with the `sizes` (absolute values) of the coefficients."""

    def beyond(self, x: FloatArray) -> FloatArray:
        """(size,) the violations at a point; negative inside."""
        return _outside(self.activity(x), *self.sides).ravel()

    def farthest(self, x: FloatArray) -> tuple[float, int]:
        """The largest violation and its row."""
        return _largest(self.beyond(x))


class HostRows(RowPart):
    """Rows of the `Mip`, given by its matrix. Its columns come first."""

    def __init__(self, host: Mip) -> None:
        super().__init__(host.n_rows, int(host.A.nnz), (host.row_lower, host.row_upper))
        self.host = host

    @cached_property
    def _sizes(self) -> sp.csr_array:
        return abs(self.host.A)

    def entries(self) -> Iterator[FloatArray]:
        """The entries of the matrix."""
        yield self.host.A.data

    def activity(self, x: FloatArray, *, sizes: bool = False) -> FloatArray:
        """Uses the matrix."""
        A = self._sizes if sizes else self.host.A
        return np.asarray(A @ x[: self.host.n_columns])


class _TemplateRows(RowPart):
    """A row of a template, which stands for many rows."""

    def __init__(self, template: Template, row: RowArrays, times: int) -> None:
        nonzeros = sum(_times(entry, (1, row.width)) for entry in row.host.values())
        for name, entry in row.coefficients.items():
            width = template.families[name].width if row.summed else row.width
            nonzeros += _times(entry, (template.count, width))
        super().__init__(times * row.width, nonzeros, (row.lower, row.upper))
        self.template, self.row = template, row

    def entries(self) -> Iterator[FloatArray]:
        yield from self.row.coefficients.values()
        yield from self.row.host.values()


class PrivateRows(_TemplateRows):
    """A row within every block of a template."""

    def __init__(self, template: Template, row: RowArrays) -> None:
        super().__init__(template, row, template.count)

    def activity(self, x: FloatArray, *, sizes: bool = False) -> FloatArray:
        """Computed block by block."""
        values, shape = self.template.values(x), (self.template.count, self.row.width)
        total = np.empty(shape)
        each_piece(lambda some: self._add_up(values, some, total[some], sizes), *shape)
        return total.ravel()

    def _add_up(self, values: dict[str, FloatArray], some: slice, total: FloatArray, sizes: bool) -> None:
        """The sums of the private rows of some blocks, from the values of all families."""
        total.fill(0.0)
        for name, entry in self.row.coefficients.items():
            mine, part = piece_of(entry, some), values[name][some]
            mine = np.abs(mine) if sizes else mine
            if self.row.summed:
                total += (mine * part).sum(axis=1, keepdims=True)
            elif mine.size == 1 and float(mine.ravel()[0]) == 1.0:
                total += part
            elif mine.size == 1 and float(mine.ravel()[0]) == -1.0:
                total -= part
            else:
                total += mine * part

    @cached_property
    def _equations(self) -> bool:
        return np.array_equal(self.row.lower, self.row.upper)

    def beyond(self, x: FloatArray) -> FloatArray:
        """Block by block."""
        values, shape = self.template.values(x), (self.template.count, self.row.width)
        found = np.empty(shape)
        each_piece(lambda some: self._beyond(values, some, found[some]), *shape)
        return found.ravel()

    def _beyond(self, values: dict[str, FloatArray], some: slice, found: FloatArray) -> None:
        lower, upper = (piece_of(side, some) for side in self.sides)
        self._add_up(values, some, found, sizes=False)
        if self._equations:
            found -= lower
            np.abs(found, out=found)
        else:
            found[...] = _outside(found, lower, upper)

    def farthest(self, x: FloatArray) -> tuple[float, int]:
        """Computed piece by piece: no array has the size of all rows."""
        values, shape = self.template.values(x), (self.template.count, self.row.width)

        def most(some: slice) -> tuple[slice, float, int]:
            found = np.empty((some.stop - some.start, shape[1]))
            self._beyond(values, some, found)
            return some, *_largest(found.ravel())

        some, amount, at = max(each_piece(most, *shape), key=lambda one: one[1])
        return amount, some.start * shape[1] + at


class CouplingRows(_TemplateRows):
    """A row over all blocks of a template, or one for each column of its families."""

    def __init__(self, template: Template, row: RowArrays) -> None:
        super().__init__(template, row, 1)

    def activity(self, x: FloatArray, *, sizes: bool = False) -> FloatArray:
        """Sums over all blocks of the template."""
        total = np.zeros(self.row.width)
        for column, entry in self.row.host.items():
            total += (np.abs(entry) if sizes else entry).ravel() * x[column]
        own = self.template.values(x)
        for name, given in self.row.coefficients.items():
            entry, values = np.abs(given) if sizes else given, own[name]
            sums = entry.ravel() * column_sums(values) if entry.size == 1 else column_sums(entry * values)
            total += sums.sum() if self.row.summed else sums
        return total


def row_parts(host: Mip | None, templates: tuple[Template, ...]) -> Iterator[RowPart]:
    """All rows, in their order."""
    if host is not None:
        yield HostRows(host)
    for template in templates:
        yield from (PrivateRows(template, row) for row in template.rows)
        yield from (CouplingRows(template, row) for row in template.coupling)


def column_sums(values: FloatArray) -> FloatArray:
    """(columns,) over all blocks, in sums of sums."""
    whole = len(values) - len(values) % CHUNK
    chunks, ones = values[:whole].reshape(-1, CHUNK, values.shape[1]), np.ones(CHUNK)
    sums = each_piece(lambda some: ones @ chunks[some], len(chunks), CHUNK * values.shape[1])
    rest = values[whole:].sum(axis=0)
    return np.asarray(np.concatenate(sums).sum(axis=0) + rest if sums else rest)


def _largest(amounts: FloatArray) -> tuple[float, int]:
    """The largest value and its place; negative if there is none. NaN counts as the largest."""
    if not amounts.size:
        return -np.inf, 0
    at = int(np.argmax(amounts))
    return (np.inf if np.isnan(amounts[at]) else float(amounts[at])), at


def _outside(activity: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(lower - activity, activity - upper))


def _times(entry: FloatArray, shape: tuple[int, int]) -> int:
    """Number of nonzeros in an array that is broadcast to a shape."""
    return int(np.count_nonzero(entry)) * (shape[0] * shape[1] // max(1, entry.size))


@dataclass(frozen=True, eq=False)
class ColumnPart:
    """Consecutive columns; `shape` is (blocks, columns per block), and the arrays broadcast to it."""

    first: int
    shape: tuple[int, int]
    lower: FloatArray
    upper: FloatArray
    cost: FloatArray
    integer: BoolArray

    def of(self, x: np.ndarray) -> np.ndarray:
        """Their (blocks, columns) values at a point, a view if the point is one piece."""
        return x[self.first : self.first + self.shape[0] * self.shape[1]].reshape(self.shape)

    @property
    def costs(self) -> bool:
        """Whether any of the columns has a cost."""
        return bool(np.any(self.cost))

    @property
    def whole(self) -> bool:
        """Whether any of the columns is an integer."""
        return bool(np.any(self.integer))

    def value(self, x: FloatArray) -> float:
        """The columns' part of the objective."""
        mine = self.of(x)
        return float(self.cost * mine.sum()) if self.cost.ndim == 0 else float((self.cost * mine).sum())

    def outside(self, x: FloatArray) -> FloatArray:
        """(blocks, columns) the violations of their bounds; negative inside."""
        mine = self.of(x)
        return np.asarray(np.maximum(self.lower - mine, mine - self.upper))

    def farthest(self, x: FloatArray) -> tuple[float, int]:
        """The largest violation of a bound, and its column."""
        found = (-np.inf, self.first)
        for limit, sign in ((self.lower, -1.0), (self.upper, 1.0)):
            if np.all(limit == sign * np.inf):
                continue
            some, most = max(
                each_piece(partial(self._beyond, self.of(x), limit, sign), *self.shape),
                key=lambda one: one[1],
            )
            if most > found[0]:
                beyond = sign * (self.of(x)[some] - piece_of(limit, some))
                found = most, self.first + some.start * self.shape[1] + int(np.argmax(beyond))
        return found

    def _beyond(self, mine: FloatArray, limit: FloatArray, sign: float, some: slice) -> tuple[slice, float]:
        """The largest violation of one limit by a column of a piece."""
        part = mine[some]
        if limit.size == 1:
            return some, sign * (float(part.max() if sign > 0.0 else part.min()) - float(limit.ravel()[0]))
        apart = part - piece_of(limit, some)
        return some, float(apart.max() if sign > 0.0 else -apart.min())

    def fraction(self, x: FloatArray) -> Callable[[slice], FloatArray]:
        """The distance of integers from whole numbers, piece by piece."""
        mine = self.of(x)

        def apart(some: slice) -> FloatArray:
            part = mine[some]
            return np.where(piece_of(self.integer, some), np.abs(part - np.round(part)), 0.0)

        return apart

    def clip(self, x: FloatArray) -> None:
        """Clip to the bounds in place and round integers; never -0."""
        each_piece(partial(self._clip, self.of(x)), *self.shape)

    def _clip(self, mine: FloatArray, some: slice) -> None:
        part = mine[some]
        if np.any(self.lower != -np.inf) or np.any(self.upper != np.inf):
            np.clip(part, piece_of(self.lower, some), piece_of(self.upper, some), out=part)
        if self.whole:
            np.copyto(part, np.round(part), where=piece_of(self.integer, some))
        part += 0.0


def column_parts(host: Mip | None, templates: tuple[Template, ...]) -> Iterator[ColumnPart]:
    """All columns, in their order."""
    if host is not None:
        lower, upper, cost = (array[:, None] for array in (host.lower, host.upper, host.cost))
        yield ColumnPart(0, (host.n_columns, 1), lower, upper, cost, host.integer[:, None])
    for template in templates:
        for family in template.families.values():
            yield ColumnPart(
                template.first_column + family.first,
                (template.count, family.width),
                family.lower,
                family.upper,
                family.cost,
                np.array(family.integer),
            )


@dataclass(frozen=True, eq=False)
class StatedProgram:
    """The columns and rows stated so far. Immutable: adding returns a new object."""

    host: Mip | None
    own_sense: Literal["min", "max"]
    """The sense of a program without a `Mip`."""
    waiting: tuple[Template, ...] = ()
    """The templates after the `Mip`, in order."""

    @cached_property
    def mip(self) -> Mip:
        """The program over all columns, made on first access."""
        if self.waiting:
            return expanded(self.host, self.own_sense, self.waiting)
        if self.host is None:
            raise ModelError("the problem has no variables; give it a Mip, or call add_template(...) first.")
        return self.host

    @property
    def sense(self) -> Literal["min", "max"]:
        """The sense of the `Mip`, or that of a problem without a `Mip`."""
        return self.own_sense if self.host is None else self.host.sense

    @property
    def sign(self) -> float:
        """1 when minimising, -1 when maximising: `sign * objective` is always to be made small."""
        return 1.0 if self.sense == "min" else -1.0

    @property
    def offset(self) -> float:
        """A constant in the objective."""
        return 0.0 if self.host is None else self.host.offset

    @property
    def n_columns(self) -> int:
        """Number of columns of the `Mip` and of all blocks."""
        own = 0 if self.host is None else self.host.n_columns
        return own + sum(template.n_columns for template in self.waiting)

    @property
    def n_rows(self) -> int:
        """Number of rows of the `Mip` and of all blocks."""
        return sum(part.size for part in self.rows)

    @cached_property
    def nonzeros(self) -> int:
        """Number of nonzeros of the full matrix, whether it is made or not."""
        return sum(part.nonzeros for part in self.rows)

    @cached_property
    def columns(self) -> tuple[ColumnPart, ...]:
        """All columns, part by part."""
        return tuple(column_parts(self.host, self.waiting))

    @cached_property
    def rows(self) -> tuple[RowPart, ...]:
        """All rows, part by part."""
        return tuple(row_parts(self.host, self.waiting))

    @cached_property
    def names(self) -> Sequence[str] | None:
        """Names of the columns, made on first access."""
        return column_names(self.host, self.waiting) if self.waiting else self.mip.names

    @cached_property
    def row_names(self) -> Sequence[str] | None:
        """Names of the rows."""
        return row_names(self.host, self.waiting) if self.waiting else self.mip.row_names

    def column_name(self, j: int) -> str:
        """The name of column j in messages."""
        return self.names[j] if self.names is not None else f"x[{j}]"

    def row_name(self, i: int) -> str:
        """The name of row i in messages."""
        return self.row_names[i] if self.row_names is not None else f"row[{i}]"

    @cached_property
    def lower(self) -> FloatArray:
        """(columns,) lower bounds."""
        return columns_of(self.host, self.waiting, "lower") if self.waiting else self.mip.lower

    @cached_property
    def upper(self) -> FloatArray:
        """(columns,) upper bounds."""
        return columns_of(self.host, self.waiting, "upper") if self.waiting else self.mip.upper

    @cached_property
    def integer(self) -> BoolArray:
        """(columns,) whether each is an integer."""
        return columns_of(self.host, self.waiting, "integer") if self.waiting else self.mip.integer

    @cached_property
    def row_lower(self) -> FloatArray:
        """(rows,)."""
        return sides_of(self.host, self.waiting, "lower") if self.waiting else self.mip.row_lower

    @cached_property
    def row_upper(self) -> FloatArray:
        """(rows,)."""
        return sides_of(self.host, self.waiting, "upper") if self.waiting else self.mip.row_upper

    def objective(self, x: FloatArray) -> float:
        """The objective at `x`, in the user's sense."""
        if not self.waiting:
            return self.mip.objective(x)
        return sum(part.value(x) for part in self.columns if part.costs) + self.offset

    def objective_size(self, x: FloatArray) -> float:
        """The sum of the absolute terms of the objective at `x`, which bounds its rounding error."""
        return float(sum(np.sum(np.abs(part.cost * part.of(x))) for part in self.columns if part.costs))

    def activity(self, x: FloatArray, *, sizes: bool = False) -> FloatArray:
        """(rows,) the activities at `x`, or with the `sizes` (absolute values) of the entries."""
        return np.concatenate([np.empty(0), *(part.activity(x, sizes=sizes) for part in self.rows)])

    def clipped(self, x: FloatArray, *, own: bool = False) -> FloatArray:
        """A copy clipped to the bounds, with integers rounded; the point itself if it may be changed
        (`own`)."""
        x = x if own else np.array(x, dtype=np.float64)
        for part in self.columns:
            part.clip(x)
        return x

    def with_mip(self, mip: Mip) -> StatedProgram:
        """The program with its matrix replaced by one with the same columns and more."""
        return replace(self, host=mip, waiting=())

    def uncoupled(self) -> StatedProgram:
        """The program without limits on the coupling rows."""
        below, above = np.array(-np.inf), np.array(np.inf)
        waiting = []
        for template in self.waiting:
            free = [replace(row, lower=below, upper=above) for row in template.coupling]
            waiting.append(replace(template, coupling=tuple(free)))
        return replace(self, waiting=tuple(waiting))

    def with_template(self, template: Template) -> StatedProgram:
        """The program with one more template; labels that are taken are refused."""
        columns, rows = self._labels()
        for kind, taken, own in (
            ("family", columns, [family.label for family in template.families.values()]),
            ("row", rows, [row.label for row in (*template.rows, *template.coupling)]),
        ):
            for label in own:
                if label in taken:
                    raise ModelError(
                        f"{kind} {label!r}: there is already a {kind} or something else of that name in the "
                        "problem; call it something else, or give the template a name=."
                    )
        return replace(self, waiting=(*self.waiting, template))

    def column(self, row: str, key: Hashable) -> int:
        """The column of the `Mip` that a coupling row names, by name or index."""
        if isinstance(key, Integral) and 0 <= key < self.n_columns:
            return int(key)
        named = self.host is not None and self.host.names is not None
        if not named or not isinstance(key, str):
            raise ModelError(f"row {row} names {key!r}, which is no family and no variable of the problem.")
        assert self.host is not None
        return int(self.host.resolve(f"row {row}", key))

    def _labels(self) -> tuple[set[str], set[str]]:
        """Names of all columns and rows without their indices; those without names are called x and row."""
        columns, rows = set(), set()
        if self.host is not None:
            columns = {label_of(name) for name in self.host.names or ("x",)}
            rows = {label_of(name) for name in self.host.row_names or ("row",)}
        for template in self.waiting:
            columns |= {family.label for family in template.families.values()}
            rows |= {row.label for row in (*template.rows, *template.coupling)}
        return columns, rows
