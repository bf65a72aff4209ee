"""How families of columns are laid out as tables: what stands in the rows, what across.

Families over the same few indices (weeks, say) stand below each other, a column for each index; over many
indices they stand side by side. Two or more indices make a table of their own, the last index across.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.core.amounts import listed
from dovetail.core.arrays import IntArray
from dovetail.report.page.families import ArrayIndices, ColumnFamily, Index

ACROSS = 12
"""Numbers that stand across on a screen, and in print."""
NO_COLUMN = -1


@dataclass(frozen=True, eq=False)
class Grid:
    """Columns in rows and across; NO_COLUMN where there is none."""

    title: str
    rows: Sequence[str]
    across: Sequence[str]
    columns: IntArray
    """(rows, across)"""
    corner: str = "index"
    """What the rows are called."""
    mixed: bool = False
    """Whether the rows have nothing to do with each other: each number has its own digits then."""


def grids(families: Sequence[ColumnFamily]) -> list[Grid]:
    """All families, in their order; those that go together at the place of the first."""
    together: dict[tuple[Index, ...] | int, list[ColumnFamily]] = {}
    for number, family in enumerate(families):
        key = tuple(family.indices) if family.depth == 1 else number
        together.setdefault(key, []).append(family)
    return [grid for group in together.values() for grid in _of_group(group)]


def _of_group(group: list[ColumnFamily]) -> list[Grid]:
    first = group[0]
    if first.depth == 0:
        return [_list(family) for family in group]
    if first.depth > 1:
        return [_of_two_ways(family) for family in group]
    index = [entry for (entry,) in first.indices]
    columns = np.array([family.columns for family in group])
    labels = [family.label for family in group]
    if len(index) <= ACROSS and (len(group) > 1 or len(index) > 1):
        return [Grid(listed(labels, 4), labels, index, columns, "family")]
    parts = range(0, len(group), ACROSS)
    return [
        Grid(listed(labels[k : k + ACROSS], 4), index, labels[k : k + ACROSS], columns[k : k + ACROSS].T)
        for k in parts
    ]


def _list(family: ColumnFamily) -> Grid:
    rows = [",".join(index) for index in family.indices]
    title = family.label or "Single columns"
    corner = "index" if family.label else "name"
    return Grid(title, rows, ["value"], family.columns[:, None], corner, mixed=not family.label)


def _of_two_ways(family: ColumnFamily) -> Grid:
    """The last index across; if that has too many values, the first."""
    for across in (-1, 0):
        if family.shape is not None and family.shape[across] <= ACROSS:
            return _of_array(family, family.shape, across)
        if family.shape is not None:
            continue
        heads = list(dict.fromkeys(index[across] for index in family.indices))
        if len(heads) <= ACROSS:
            return _crossed(family, across, heads)
    return _list(family)


def _of_array(family: ColumnFamily, shape: tuple[int, ...], across: int) -> Grid:
    """The same for an array: no index is looked at."""
    columns = np.moveaxis(family.columns.reshape(shape), across, -1)
    rows = [",".join(index) for index in ArrayIndices(columns.shape[:-1])]
    return Grid(family.label, rows, [str(k) for k in range(shape[across])], columns.reshape(len(rows), -1))


def _crossed(family: ColumnFamily, across: int, heads: list[str]) -> Grid:
    place = {head: k for k, head in enumerate(heads)}
    rests = [index[:-1] if across else index[1:] for index in family.indices]
    rows = {rest: i for i, rest in enumerate(dict.fromkeys(rests))}
    columns = np.full((len(rows), len(heads)), NO_COLUMN)
    where = [rows[rest] for rest in rests], [place[index[across]] for index in family.indices]
    columns[where] = family.columns
    return Grid(family.label, [",".join(rest) for rest in rows], heads, columns)
