"""The program over all columns that templates stand for: the host first, then template by template.

Columns of a template are family by family, block by block; its rows are row by row, block by block, then its
coupling rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.family_arrays import RowArrays
from dovetail.core.mip import Mip
from dovetail.core.names import LazyNames, NumberedNames
from dovetail.core.template import FamilyColumns, Template

Entries = tuple[IntArray, FloatArray]
"""(rows, entries of a row): their columns and numbers; rows that were stated as one have equally many."""


def expanded(host: Mip | None, sense: Literal["min", "max"], templates: Sequence[Template]) -> Mip:
    """The host and all blocks as one program; without a host, a program of the given sense."""
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
    """Some blocks of a template as a program of their own, and where these columns are in it.

    As many as a predictor is probed at, spread over the template: nobody writes all of it out for that.
    """
    template = columns[0].template
    few = template.only(np.linspace(0, template.count - 1, most).astype(int))
    return expanded(None, "min", [few]), tuple(few[part.families].columns for part in columns)


def columns_of(host: Mip | None, templates: Sequence[Template], part: str) -> NDArray[Any]:
    """One number for each column."""
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
    """One limit for each row."""
    own = None if host is None else getattr(host, f"row_{side}")
    rows = [(row, blocks) for template in templates for row, blocks in _rows(template)]
    stated = [(getattr(row, side), (blocks, row.width)) for row, blocks in rows]
    return _spread_out(own, stated, np.float64)


def _spread_out(
    own: NDArray[Any] | None, stated: list[tuple[Any, tuple[int, int]]], dtype: type
) -> NDArray[Any]:
    """A host's numbers, then stated ones over their blocks: each is written once."""
    first = 0 if own is None else len(own)
    whole: NDArray[Any] = np.empty(first + sum(blocks * width for _, (blocks, width) in stated), dtype=dtype)
    whole[:first] = [] if own is None else own
    for numbers, (blocks, width) in stated:
        last = first + blocks * width
        whole[first:last].reshape(blocks, width)[...] = numbers
        first = last
    return whole


def _rows(template: Template) -> Iterator[tuple[RowArrays, int]]:
    """All rows of a template, each with how many times it is there."""
    yield from ((row, template.count) for row in template.rows)
    yield from ((row, 1) for row in template.coupling)


def _matrix(host: Mip | None, templates: Sequence[Template], columns: int) -> sp.csr_array:
    """All rows, their entries in the order of the columns, so that nothing has to be sorted."""
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
    """A row of every block."""
    names = _in_order(template, row)
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
    """A row over all blocks, or one for each column of their families; columns of the host come first."""
    host = sorted(row.host)
    indices = [np.broadcast_to(np.array(host, dtype=np.int64), (row.width, len(host)))]
    numbers = [np.broadcast_to(row.host[column], (1, row.width)).T for column in host]
    for name in _in_order(template, row):
        at, entries = _spread(template, row, name)
        indices.append(at.reshape(1, -1) if row.summed else at.T)
        numbers.append(entries.reshape(1, -1) if row.summed else entries.T)
    return np.concatenate(indices, axis=1), np.concatenate(numbers, axis=1)


def _in_order(template: Template, row: RowArrays) -> list[str]:
    """The families of a row in the order of their columns."""
    return sorted(row.coefficients, key=lambda name: template.families[name].first)


def _spread(template: Template, row: RowArrays, name: str) -> tuple[IntArray, FloatArray]:
    """(blocks, rows) or, of a summed row, (blocks, columns): columns of a family in a row, and numbers."""
    family = template.families[name]
    blocks, across = np.arange(template.count)[:, None], np.arange(family.width if row.summed else row.width)
    at = template.first_column + family.first + blocks * family.width + (across if family.width > 1 else 0)
    shape = (template.count, across.size)
    return np.broadcast_to(at, shape), np.broadcast_to(row.coefficients[name], shape)


def column_names(host: Mip | None, templates: Sequence[Template]) -> LazyNames:
    """One for each column."""
    given = [] if host is None else _given(host.names, "x", host.n_columns)
    return LazyNames(
        *given,
        *(
            NumberedNames(family.label, _shape(template.count, family.width))
            for template in templates
            for family in template.families.values()
        ),
    )


def row_names(host: Mip | None, templates: Sequence[Template]) -> LazyNames:
    """One for each row."""
    given = [] if host is None else _given(host.row_names, "row", host.n_rows)
    return LazyNames(*given, *(part for template in templates for part in _names_of_rows(template)))


def _names_of_rows(template: Template) -> Iterator[NumberedNames]:
    for row in template.rows:
        yield NumberedNames(row.label, _shape(template.count, row.width))
    for row in template.coupling:
        yield NumberedNames(row.label, (row.width,) if row.width > 1 else ())


def _given(names: Sequence[str] | None, label: str, size: int) -> list[NumberedNames | tuple[str, ...]]:
    """The host's own names; as messages call them where it has none."""
    if names is None:
        return [NumberedNames(label, (size,))]
    return list(names.parts) if isinstance(names, LazyNames) else [tuple(names)]


def _shape(count: int, width: int) -> tuple[int, ...]:
    return (count, width) if width > 1 else (count,)
