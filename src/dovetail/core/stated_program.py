"""The program of a problem as the user stated it: a `Mip`, and templates that are not written out.

A solve of many blocks works on this form, part by part, with the user's own arrays. The matrix over all
variables is built only when `mip` is read.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Literal

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.errors import ModelError
from dovetail.core.mip import Mip
from dovetail.core.names import label_of
from dovetail.core.row_part import ColumnPart, RowPart, column_parts, row_parts
from dovetail.core.template import Template, column_names, columns_of, expanded, row_names, sides_of


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
        """The program over all columns, made when it is first asked for."""
        if self.waiting:
            return expanded(self.host, self.own_sense, self.waiting)
        if self.host is None:
            raise ModelError("the problem has no variables; give it a Mip, or call add_template(...) first.")
        return self.host

    @property
    def sense(self) -> Literal["min", "max"]:
        """The sense of the `Mip`, or its own."""
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
        """Names of the columns, made when they are read."""
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
