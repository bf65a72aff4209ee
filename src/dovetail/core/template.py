"""A template: many equal blocks with data of their own, and rows that couple them.

The arrays are stored as they were stated. Nothing here grows with the number of blocks except the user's
arrays; `expanded` makes the full program when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import ModelError
from dovetail.core.family_arrays import FamilyArrays, FamilyRow, RowArrays
from dovetail.core.mip import Mip
from dovetail.core.names import LazyNames, NumberedNames
from dovetail.core.options import require_count


@dataclass(frozen=True, eq=False)
class Template:
    """`count` equal blocks, as `Problem.add_template` returns them: the families address their variables.

    The variables of a template come after those that the problem had before, family by family, block by
    block.

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
    """Each row stands for `count * width` rows."""
    coupling: tuple[RowArrays, ...]
    first_column: int
    """Index of its first column among all columns of the problem."""

    @property
    def n_columns(self) -> int:
        """Number of columns of all blocks."""
        return self.count * sum(family.width for family in self.families.values())

    def __getitem__(self, families: str | tuple[str, ...]) -> FamilyColumns:
        """The columns of a family, or of several side by side: accepted by predictors and `Result.value`."""
        names = families if isinstance(families, tuple) else (families,)
        for name in names:
            if name not in self.families:
                raise ModelError(f"there is no family {name!r}; there are {', '.join(self.families)}.")
        if not names:
            raise ModelError(f"name a family: {', '.join(self.families)}.")
        return FamilyColumns(self, names)

    def values(self, point: Any) -> dict[str, FloatArray]:
        """The values of each family, (count, width) views of a `Result` or of a value for every variable."""
        x = np.asarray(getattr(point, "x", point), dtype=np.float64)
        if x.ndim != 1 or x.size < self.first_column + self.n_columns:
            raise ModelError(
                f"values() takes a number for every variable, such as result.x, not shape {x.shape}."
            )
        return {name: x[self._span(family)].reshape(self.count, -1) for name, family in self.families.items()}

    def __repr__(self) -> str:
        families = ", ".join(f"{name} ({family.width})" for name, family in self.families.items())
        return f"<Template {self.name!r}: {self.count} blocks of {families}>"

    def _span(self, family: FamilyArrays) -> slice:
        first = self.first_column + family.first
        return slice(first, first + self.count * family.width)

    def only(self, blocks: IntArray) -> Template:
        """These blocks alone, without coupling rows, as a problem of their own."""
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
    """The columns of some families in every block; converts to an array of indices."""

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
    """The inputs and outputs of a predictor if they are whole families of one template; otherwise None."""
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
    """Check what was stated and make a template of it; `column_of` finds columns of the `Mip` that coupling
    rows name."""
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
    private = _read_rows("rows", rows, prefix, "row", arrays, int(count), None)
    shared = _read_rows("coupling", coupling, prefix, "coupling", arrays, int(count), column_of)
    labels = [row.label for row in (*private, *shared)]
    for label in labels:
        if labels.count(label) > 1:
            raise ModelError(f"two rows are called {label!r}; give each a name= of its own.")
    return Template(name, int(count), arrays, private, shared, first_column)


def _read_rows(
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


Place = tuple[str, int]
"""A column of a block: its family, and its place in the family."""


def places_of(columns: FamilyColumns) -> list[Place]:
    """The columns of families, side by side."""
    return [(name, k) for name in columns.families for k in range(columns.template.families[name].width)]


def column_of(array: FloatArray, k: int) -> FloatArray:
    """(blocks,) or (1,): a single column of an array that broadcasts to (blocks, columns)."""
    return array.reshape(1) if array.ndim == 0 else array[:, k if array.shape[1] > 1 else 0]


def entries_of(template: Template, row: RowArrays, number: int) -> dict[Place, FloatArray]:
    """The coefficients of one stated row by column, (blocks,) or (1,) each; columns with zeros only are left
    out."""
    found: dict[Place, FloatArray] = {}
    for name, entry in row.coefficients.items():
        width = template.families[name].width
        for k in range(width) if row.summed else (number if width > 1 else 0,):
            numbers = column_of(entry, k if row.summed else number)
            if np.any(numbers):
                found[name, k] = numbers
    return found


Entries = tuple[IntArray, FloatArray]
"""(rows, entries of a row) columns and coefficients; rows that were stated together have equally many
entries."""


def expanded(host: Mip | None, sense: Literal["min", "max"], templates: Sequence[Template]) -> Mip:
    """The `Mip` and all blocks as one program; without a `Mip`, a program of the given sense."""
    cost = columns_of(host, templates, "cost")
    return Mip(
        cost=cost,
        A=_matrix(host, templates, cost.size),
        row_lower=sides_of(host, templates, "lower"),
        row_upper=sides_of(host, templates, "upper"),
        lower=columns_of(host, templates, "lower"),
        upper=columns_of(host, templates, "upper"),
        integer=columns_of(host, templates, "integer"),
        sense=sense if host is None else host.sense,
        offset=0.0 if host is None else host.offset,
        names=column_names(host, templates),
        row_names=row_names(host, templates),
    )


def few_blocks(*columns: FamilyColumns, most: int = 16) -> tuple[Mip, tuple[IntArray, ...]]:
    """Some blocks of a template as a program of their own, and the places of these columns in it. A
    predictor is probed on these blocks, so that the full program is not needed."""
    template = columns[0].template
    few = template.only(np.linspace(0, template.count - 1, most).astype(int))
    return expanded(None, "min", [few]), tuple(few[part.families].columns for part in columns)


def columns_of(host: Mip | None, templates: Sequence[Template], part: str) -> NDArray[Any]:
    """A number for each column."""
    return _spread_out(
        None if host is None else getattr(host, part),
        [
            (getattr(family, part), (template.count, family.width))
            for template in templates
            for family in template.families.values()
        ],
        bool if part == "integer" else np.float64,
    )


def sides_of(host: Mip | None, templates: Sequence[Template], side: str) -> FloatArray:
    """A limit for each row."""
    own = None if host is None else getattr(host, f"row_{side}")
    rows = [(row, blocks) for template in templates for row, blocks in _rows(template)]
    stated = [(getattr(row, side), (blocks, row.width)) for row, blocks in rows]
    return _spread_out(own, stated, np.float64)


def _spread_out(
    own: NDArray[Any] | None, stated: list[tuple[Any, tuple[int, int]]], dtype: type
) -> NDArray[Any]:
    """The numbers of the `Mip`, followed by those of the templates for every block."""
    first = 0 if own is None else len(own)
    whole: NDArray[Any] = np.empty(first + sum(blocks * width for _, (blocks, width) in stated), dtype=dtype)
    whole[:first] = [] if own is None else own
    for numbers, (blocks, width) in stated:
        last = first + blocks * width
        whole[first:last].reshape(blocks, width)[...] = numbers
        first = last
    return whole


def _rows(template: Template) -> Iterator[tuple[RowArrays, int]]:
    yield from ((row, template.count) for row in template.rows)
    yield from ((row, 1) for row in template.coupling)


def _matrix(host: Mip | None, templates: Sequence[Template], columns: int) -> sp.csr_array:
    """All rows with their entries in column order, so that nothing has to be sorted."""
    parts: list[Entries] = []
    for template in templates:
        parts += [_private(template, row) for row in template.rows]
        parts += [_coupling(template, row) for row in template.coupling]
    lengths = [np.full(len(indices), indices.shape[1]) for indices, _ in parts]
    if host is not None:
        parts = [(host.A.indices, host.A.data), *parts]
        lengths = [np.diff(host.A.indptr), *lengths]
    if not parts:
        return sp.csr_array((0, columns))
    indices, numbers = (np.concatenate([part[k].ravel() for part in parts]) for k in (0, 1))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return sp.csr_array((numbers, indices, indptr), shape=(indptr.size - 1, columns))


def _private(template: Template, row: RowArrays) -> Entries:
    names = _column_order(template, row)
    sizes = [template.families[name].width if row.summed else 1 for name in names]
    shape = (template.count, row.width, sum(sizes))
    indices, numbers = np.empty(shape, dtype=np.int64), np.empty(shape)
    end = 0
    for name, size in zip(names, sizes, strict=True):
        begin, end = end, end + size
        at, entries = _spread(template, row, name)
        indices[:, :, begin:end] = at.reshape(template.count, row.width, size)
        numbers[:, :, begin:end] = entries.reshape(template.count, row.width, size)
    return indices.reshape(-1, end), numbers.reshape(-1, end)


def _coupling(template: Template, row: RowArrays) -> Entries:
    """A row over all blocks, or one for each column of its families; columns of the `Mip` come first."""
    host = sorted(row.host)
    indices = [np.broadcast_to(np.array(host, dtype=np.int64), (row.width, len(host)))]
    numbers = [np.broadcast_to(row.host[column], (1, row.width)).T for column in host]
    for name in _column_order(template, row):
        at, entries = _spread(template, row, name)
        indices.append(at.reshape(1, -1) if row.summed else at.T)
        numbers.append(entries.reshape(1, -1) if row.summed else entries.T)
    return np.concatenate(indices, axis=1), np.concatenate(numbers, axis=1)


def _column_order(template: Template, row: RowArrays) -> list[str]:
    return sorted(row.coefficients, key=lambda name: template.families[name].first)


def _spread(template: Template, row: RowArrays, name: str) -> tuple[IntArray, FloatArray]:
    """(blocks, rows), or (blocks, columns) for a summed row: the columns of a family in a row, and their
    coefficients."""
    family = template.families[name]
    blocks, across = np.arange(template.count)[:, None], np.arange(family.width if row.summed else row.width)
    at = template.first_column + family.first + blocks * family.width + (across if family.width > 1 else 0)
    shape = (template.count, across.size)
    return np.broadcast_to(at, shape), np.broadcast_to(row.coefficients[name], shape)


def column_names(host: Mip | None, templates: Sequence[Template]) -> LazyNames:
    """An entry for each column."""
    given = [] if host is None else _mip_names(host.names, "x", host.n_columns)
    return LazyNames(
        *given,
        *(
            NumberedNames(family.label, _shape(template.count, family.width))
            for template in templates
            for family in template.families.values()
        ),
    )


def row_names(host: Mip | None, templates: Sequence[Template]) -> LazyNames:
    """An entry for each row."""
    given = [] if host is None else _mip_names(host.row_names, "row", host.n_rows)
    return LazyNames(*given, *(part for template in templates for part in _names_of_rows(template)))


def _names_of_rows(template: Template) -> Iterator[NumberedNames]:
    for row in template.rows:
        yield NumberedNames(row.label, _shape(template.count, row.width))
    for row in template.coupling:
        yield NumberedNames(row.label, (row.width,) if row.width > 1 else ())


def _mip_names(names: Sequence[str] | None, label: str, size: int) -> list[NumberedNames | tuple[str, ...]]:
    """The names of the `Mip`; default names if it has none."""
    if names is None:
        return [NumberedNames(label, (size,))]
    return list(names.parts) if isinstance(names, LazyNames) else [tuple(names)]


def _shape(count: int, width: int) -> tuple[int, ...]:
    return (count, width) if width > 1 else (count,)
