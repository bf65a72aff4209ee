"""A template: the same block many times, with data of its own for each, and rows that couple them.

It holds what was said, as arrays. Nothing here grows with the blocks but the users' own arrays; the program
over all columns is made of it in template_expansion.py, for whoever needs that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import ModelError
from dovetail.core.family_arrays import FamilyArrays, FamilyRow, RowArrays
from dovetail.core.options import require_count


@dataclass(frozen=True, eq=False)
class Template:
    """`count` blocks with the same families of columns and the same rows, as `Problem.add_template` returns.

    Its columns stand behind those that the problem had before, family by family, block by block.

    >>> import numpy as np, dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0], names=["price"]))
    >>> shops = problem.add_template(2, {"stock": dt.Family(upper=5.0, width=2), "sold": dt.Family()})
    >>> shops["stock"].columns.tolist(), shops["sold"].columns.tolist()
    ([[1, 2], [3, 4]], [[5], [6]])
    >>> block = problem.add_predictor(lambda X: X.min(axis=1), shops["stock"], shops["sold"])
    >>> shops.values(problem.predict(np.array([0.0, 1.0, 2.0, 4.0, 3.0, 0.0, 0.0])))["sold"].tolist()
    [[1.0], [3.0]]
    """

    name: str
    count: int
    families: Mapping[str, FamilyArrays]
    rows: tuple[RowArrays, ...]
    """Each stands for `count * width` rows."""
    coupling: tuple[RowArrays, ...]
    first_column: int
    """Where its columns begin among all of the problem."""

    @property
    def n_columns(self) -> int:
        """Of all its blocks."""
        return self.count * sum(family.width for family in self.families.values())

    def __getitem__(self, families: str | tuple[str, ...]) -> FamilyColumns:
        """Columns of a family, or of several beside each other: what predictors and `Result.value` take."""
        names = families if isinstance(families, tuple) else (families,)
        for name in names:
            if name not in self.families:
                raise ModelError(f"there is no family {name!r}; there are {', '.join(self.families)}.")
        if not names:
            raise ModelError(f"name a family: {', '.join(self.families)}.")
        return FamilyColumns(self, names)

    def values(self, point: Any) -> dict[str, FloatArray]:
        """A `Result`, or a value for every column of the problem, by family: (count, width) views of it."""
        x = np.asarray(getattr(point, "x", point), dtype=np.float64)
        if x.ndim != 1 or x.size < self.first_column + self.n_columns:
            raise ModelError(
                f"values() takes a number for every column, such as result.x, not shape {x.shape}."
            )
        return {name: x[self._span(family)].reshape(self.count, -1) for name, family in self.families.items()}

    def __repr__(self) -> str:
        families = ", ".join(f"{name} ({family.width})" for name, family in self.families.items())
        return f"<Template {self.name!r}: {self.count} blocks of {families}>"

    def _span(self, family: FamilyArrays) -> slice:
        first = self.first_column + family.first
        return slice(first, first + self.count * family.width)

    def only(self, blocks: IntArray) -> Template:
        """These blocks alone, without coupling rows, as the only columns of a problem."""
        families, first = {}, 0
        for name, family in self.families.items():
            lower, upper, cost = (
                array[blocks] if array.ndim and len(array) > 1 else array
                for array in (family.lower, family.upper, family.cost)
            )
            families[name] = replace(family, first=first, lower=lower, upper=upper, cost=cost)
            first += len(blocks) * family.width
        return replace(self, count=len(blocks), families=families, rows=(), coupling=(), first_column=0)


@dataclass(frozen=True, eq=False)
class FamilyColumns:
    """Columns of a template's families in every block: an array of indices to those who want one."""

    template: Template
    families: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """(blocks, columns)."""
        return self.template.count, sum(self.template.families[name].width for name in self.families)

    @property
    def columns(self) -> IntArray:
        """(blocks, columns) indices."""
        template = self.template
        spans = [template._span(template.families[name]) for name in self.families]
        return np.concatenate(
            [np.arange(span.start, span.stop).reshape(template.count, -1) for span in spans], axis=1
        )

    def __repr__(self) -> str:
        return f"<FamilyColumns: {', '.join(self.families)} {self.shape}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> IntArray:
        return self.columns if dtype is None else self.columns.astype(dtype)


def whole_families(inputs: Any, outputs: Any) -> tuple[FamilyColumns, FamilyColumns] | None:
    """Inputs and outputs of a predictor that are families of one template; None for other columns."""
    both = isinstance(inputs, FamilyColumns) and isinstance(outputs, FamilyColumns)
    return (inputs, outputs) if both and inputs.template is outputs.template else None


def read_template(
    name: Any,
    count: Any,
    families: Any,
    rows: Iterable[FamilyRow],
    coupling: Iterable[FamilyRow],
    first_column: int,
    column_of: Callable[[str, Hashable], int],
) -> Template:
    """What was said, looked at; `column_of` finds the columns that coupling rows name besides families."""
    if not isinstance(name, str):
        raise ModelError(f"name is {name!r}; give a string.")
    require_count("count (blocks of a template)", count, at_least=1)
    if not isinstance(families, Mapping) or not families:
        raise ModelError(f"families is {families!r}; give a mapping of names to dovetail.Family.")
    prefix = f"{name}." if name else ""
    arrays: dict[str, FamilyArrays] = {}
    first = 0
    for family, said in families.items():
        if not isinstance(family, str) or not family or "[" in family:
            raise ModelError(f"a family is called {family!r}; give a string without brackets.")
        arrays[family] = FamilyArrays.of(prefix + family, said, int(count), first)
        first += int(count) * arrays[family].width
    private = _rows("rows", rows, prefix, "row", arrays, int(count), None)
    shared = _rows("coupling", coupling, prefix, "coupling", arrays, int(count), column_of)
    labels = [row.label for row in (*private, *shared)]
    for label in labels:
        if labels.count(label) > 1:
            raise ModelError(f"two rows are called {label!r}; give each a name= of its own.")
    return Template(name, int(count), arrays, private, shared, first_column)


def _rows(
    what: str,
    rows: Any,
    prefix: str,
    kind: str,
    families: Mapping[str, FamilyArrays],
    count: int,
    column_of: Callable[[str, Hashable], int] | None,
) -> tuple[RowArrays, ...]:
    if not isinstance(rows, Iterable):
        raise ModelError(f"{what} is {rows!r}; give a list of dovetail.FamilyRow.")
    read = []
    for number, row in enumerate(rows):
        if not isinstance(row, FamilyRow) or not isinstance(row.coefficients, Mapping):
            raise ModelError(f"{what}[{number}] is {row!r}; give a dovetail.FamilyRow with a mapping.")
        if not isinstance(row.name, str) or "[" in row.name:
            raise ModelError(f"{what}[{number}] is called {row.name!r}; give a string without brackets.")
        label = prefix + (row.name or f"{kind}{number}")
        read.append(RowArrays.of(label, row, families, count, column_of))
    return tuple(read)
