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

Entries = tuple[IntArray, IntArray, FloatArray]
"""Rows, columns and numbers of entries of the matrix."""


def expanded(host: Mip | None, sense: Literal["min", "max"], templates: Sequence[Template]) -> Mip:
    """The host and all blocks as one program; without a host, a program of the given sense."""
    cost = _columns(host, templates, "cost")
    return Mip(
        cost=cost,
        A=_matrix(host, templates, cost.size),
        row_lower=_sides(host, templates, "lower"),
        row_upper=_sides(host, templates, "upper"),
        lower=_columns(host, templates, "lower"),
        upper=_columns(host, templates, "upper"),
        integer=_columns(host, templates, "integer"),
        sense=sense if host is None else host.sense,
        offset=0.0 if host is None else host.offset,
        names=_column_names(host, templates),
        row_names=_row_names(host, templates),
    )


def few_blocks(*columns: FamilyColumns, most: int = 16) -> tuple[Mip, tuple[IntArray, ...]]:
    """Some blocks of a template as a program of their own, and where these columns are in it.

    As many as a predictor is probed at, spread over the template: nobody writes all of it out for that.
    """
    template = columns[0].template
    few = template.only(np.linspace(0, template.count - 1, most).astype(int))
    return expanded(None, "min", [few]), tuple(few[part.families].columns for part in columns)


def _columns(host: Mip | None, templates: Sequence[Template], part: str) -> NDArray[Any]:
    """One number for each column."""
    return np.concatenate(
        [
            *([] if host is None else [getattr(host, part)]),
            *(
                np.broadcast_to(getattr(family, part), (template.count, family.width)).ravel()
                for template in templates
                for family in template.families.values()
            ),
        ]
    )


def _sides(host: Mip | None, templates: Sequence[Template], side: str) -> FloatArray:
    """One limit for each row."""
    return np.concatenate(
        [
            *([] if host is None else [getattr(host, f"row_{side}")]),
            *(
                np.broadcast_to(getattr(row, side), (blocks, row.width)).ravel()
                for template in templates
                for row, blocks in _rows(template)
            ),
            np.empty(0),  # there may be none
        ]
    )


def _rows(template: Template) -> Iterator[tuple[RowArrays, int]]:
    """All rows of a template, each with how many times it is there."""
    yield from ((row, template.count) for row in template.rows)
    yield from ((row, 1) for row in template.coupling)


def _matrix(host: Mip | None, templates: Sequence[Template], columns: int) -> sp.csr_array:
    entries: list[Entries] = []
    first = 0
    if host is not None:
        given = sp.coo_array(host.A)
        entries.append((*given.coords, given.data))
        first = host.n_rows
    for template in templates:
        for row, blocks in _rows(template):
            entries += _own_entries(template, row, first, blocks)
            entries += [_host_entries(column, row, first) for column in row.host]
            first += row.width * blocks
    if not entries:
        return sp.csr_array((first, columns))
    rows, places, numbers = (np.concatenate(part) for part in zip(*entries, strict=True))
    return sp.csr_array((numbers, (rows, places)), shape=(first, columns))


def _own_entries(template: Template, row: RowArrays, first: int, blocks: int) -> Iterator[Entries]:
    """Entries of a row (and of all its copies, one for each of `blocks`) in the template's own columns."""
    i = np.arange(template.count)[:, None]
    for name, numbers in row.coefficients.items():
        family = template.families[name]
        j = np.arange(family.width if row.summed else row.width)
        shape = (template.count, j.size)
        rows = first + (0 if blocks == 1 else i * row.width) + (0 if row.summed else j)
        columns = template.first_column + family.first + i * family.width + (j if family.width > 1 else 0)
        yield (
            np.broadcast_to(rows, shape).ravel(),
            np.broadcast_to(columns, shape).ravel(),
            np.broadcast_to(numbers, shape).ravel(),
        )


def _host_entries(column: int, row: RowArrays, first: int) -> Entries:
    rows = first + np.arange(row.width)
    return rows, np.full(row.width, column), np.broadcast_to(row.host[column], (1, row.width)).ravel()


def _column_names(host: Mip | None, templates: Sequence[Template]) -> LazyNames:
    given = [] if host is None else _given(host.names, "x", host.n_columns)
    return LazyNames(
        *given,
        *(
            NumberedNames(family.label, _shape(template.count, family.width))
            for template in templates
            for family in template.families.values()
        ),
    )


def _row_names(host: Mip | None, templates: Sequence[Template]) -> LazyNames:
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
