"""The decision as tables, one per family of variables; large families are shortened.

Values at their limits are marked. Families over the same few indices (weeks, say) stand below each other
with a column for each index; families over many indices stand side by side. A family of two or more indices
has a table of its own, with the last index across. Each shortened table says how many values are left out;
all values are in `result.x` and in the result's file.

Variables by family: names such as ``make[3,bread]`` show which variables belong together, and the position of
each. Modelling tools write indices in brackets; older files have ``make_3_17`` or ``make(3,bread)``, people
``make_bread`` and ``sell_bread`` (`word_families`). ``cement_wall``, ``cement_beam``, ``ash_wall``,
``ash_beam`` are two families, over two words. Only words that several labels share count: ``net_cost`` and
``net_profit`` alone do not show whether they are one family.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple, overload

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import TOLERANCE
from dovetail.core.names import LazyNames, NumberedNames, split_index
from dovetail.core.words import listed, several
from dovetail.report.page.number_text import NOTHING, number, numbers, visible

_NUMBERED = re.compile(r"(.*?[^\d_.])((?:[_.]?\d+)(?:[_.]\d+)*)$", re.DOTALL)

Index = tuple[str, ...]


LEAST_WORDS, LEAST_LABELS = 2, 2
"""The labels of a family, and of the families with the same words."""


@dataclass(frozen=True, eq=False)
class ColumnFamily:
    """Columns with one label; columns without an index are all in the family ""."""

    label: str
    columns: IntArray
    indices: Sequence[Index]
    """An index for each column; in the family "" the whole name."""
    shape: tuple[int, ...] | None = None
    """The shape, if the columns are known to be an array: a million names are not parsed one by one."""

    @property
    def depth(self) -> int:
        """The number of indices of each; 0 if it differs, or two have the same indices."""
        if self.shape is not None:
            return len(self.shape)
        depths = {len(index) for index in self.indices}
        told_apart = self.label and len(depths) == 1 and len(set(self.indices)) == len(self.indices)
        return depths.pop() if told_apart else 0


class ArrayIndices(Sequence[Index]):
    """The indices of an array, made on request."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def __len__(self) -> int:
        return math.prod(self.shape)

    @overload
    def __getitem__(self, k: int) -> Index: ...
    @overload
    def __getitem__(self, k: slice) -> list[Index]: ...
    def __getitem__(self, k: int | slice) -> Index | list[Index]:
        if isinstance(k, slice):
            return [self[j] for j in range(*k.indices(len(self)))]
        return tuple(map(str, np.unravel_index(range(len(self))[k], self.shape)))

    def __iter__(self) -> Iterator[Index]:
        return product(*([str(k) for k in range(size)] for size in self.shape))


def families(names: Sequence[str] | None, n_columns: int) -> list[ColumnFamily]:
    """All columns by family, in the order of their first members; single columns come last."""
    whole = LazyNames(NumberedNames("x", (n_columns,))) if names is None else names
    arrays: list[ColumnFamily] = []
    found: dict[str, tuple[list[int], list[Index]]] = {}
    first = 0
    for part in whole.parts if isinstance(whole, LazyNames) else (whole,):
        if isinstance(part, NumberedNames) and part.shape and len(part) > 1:
            columns = np.arange(first, first + len(part))
            arrays.append(ColumnFamily(part.label, columns, ArrayIndices(part.shape), part.shape))
        else:
            _add_singles(found, part, first)
        first += len(part)
    several, alone = _families_and_singles(found)
    worded = word_families({j: whole[j] for j in alone})
    several += [
        ColumnFamily(label, np.array(list(words.values())), [(word,) for word in words])
        for label, words in worded.items()
    ]
    alone = sorted(set(alone) - {j for words in worded.values() for j in words.values()})
    several = sorted(several + arrays, key=lambda family: int(family.columns.min()))
    if alone:
        several.append(ColumnFamily("", np.array(alone), [(whole[j],) for j in alone]))
    return several


def split(name: str) -> tuple[str, Index]:
    """Label and indices of a name; a name without indices is its own label."""
    label, index = split_index(name)
    if index:
        return label, tuple(map(str, index))
    match = _NUMBERED.match(name)
    return (match[1], tuple(re.split(r"[_.]", match[2].lstrip("_.")))) if match else (name, ())


def _add_singles(found: dict[str, tuple[list[int], list[Index]]], names: Iterable[str], first: int) -> None:
    """Names by their labels."""
    for j, name in enumerate(names, start=first):
        label, index = split(name)
        columns, indices = found.setdefault(label, ([], []))
        columns.append(j)
        indices.append(index)


def _families_and_singles(
    found: dict[str, tuple[list[int], list[Index]]],
) -> tuple[list[ColumnFamily], list[int]]:
    """Families, and the columns that belong to none."""
    several: list[ColumnFamily] = []
    alone: list[int] = []
    for label, (columns, indices) in found.items():
        if len(columns) == 1 or () in indices:
            alone += columns
        else:
            several.append(ColumnFamily(label, np.array(columns), indices))
    return several, sorted(alone)


def word_families(names: Mapping[int, str]) -> dict[str, dict[str, int]]:
    """Columns by label and word; words of families with the same indices are in one order."""
    found: dict[str, dict[str, int]] = {}
    for column, name in names.items():
        label, _, word = name.rpartition("_")
        if label and word:
            found.setdefault(label, {})[word] = column
    together: dict[frozenset[str], list[str]] = {}
    for label, words in found.items():
        if len(words) >= LEAST_WORDS:
            together.setdefault(frozenset(words), []).append(label)
    return {
        label: {word: found[label][word] for word in found[labels[0]]}
        for labels in together.values()
        if len(labels) >= LEAST_LABELS
        for label in labels
    }


MOST_CELLS = 8000
"""Largest number of cells on one page: about 200 KB of text, which a phone's browser still scrolls."""
MOST_ROWS, MOST_TABLES = 200, 24
"""Largest number of rows of one table, and of tables."""
DENSE_FROM = 50
"""Number of letters in the head of a table above which letters and gaps are smaller."""
MOST_CHOSEN = 400
"""Largest number of chosen indices that are listed: a screen of them."""
SORTED_FROM, FILTERED_FROM = 8, 20
"""Rows from which on a table can be sorted, and searched: fewer are seen at a glance."""


class Cell(NamedTuple):
    """The text of a cell, and its kind: "up" or "low" at a limit, "fixed", "yes", "no"."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class ValueTable:
    """A table as it is shown."""

    title: str
    about: str
    head: list[str]
    """The name of the rows first."""
    rows: list[tuple[str, list[Cell]]]
    left_out: str = ""
    chosen: list[str] = field(default_factory=list)
    """Instead of rows: the indices of the binaries that are 1."""

    @property
    def sortable(self) -> bool:
        """Whether the table gets a sort button."""
        return len(self.rows) >= SORTED_FROM

    @property
    def dense(self) -> bool:
        """Whether the table needs smaller letters to fit."""
        return sum(map(len, self.head)) > DENSE_FROM

    @property
    def fits(self) -> bool:
        """Whether the table is as wide as its content; tables below each other have the full width."""
        return self.head[0] != "family"

    @property
    def filterable(self) -> bool:
        """Whether the table gets a search field."""
        return len(self.rows) >= FILTERED_FROM

    @property
    def marks(self) -> set[str]:
        """The marks that need a legend."""
        return {cell.mark for _, cells in self.rows for cell in cells}


@dataclass(frozen=True, eq=False)
class Point:
    """Values and limits of all columns; a result from an old file has no limits."""

    x: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray
    read: BoolArray
    written: BoolArray

    @classmethod
    def of(cls, result: Any) -> Point:
        """Of a result with a point."""
        x, facts = result.x, result.facts
        if facts is None:
            free, no = np.full(x.size, np.inf), np.zeros(x.size, dtype=bool)
            return cls(x, -free, free, no, no, no)
        return cls(x, facts.lower, facts.upper, facts.integer, facts.read, facts.written)

    def ties(self, columns: IntArray) -> str:
        """Which columns, or how many of them, are inputs or outputs of predictors."""
        words = []
        for kind, tied in (("input", self.read[columns]), ("output", self.written[columns])):
            count = int(np.count_nonzero(tied))
            if count:
                words.append(kind if count == tied.size else several(count, kind))
        return " and ".join(words) or NOTHING

    def binary(self, columns: IntArray) -> BoolArray:
        """Which of the columns are yes or no."""
        whole = self.integer[columns]
        return np.asarray(whole & (self.lower[columns] >= 0.0) & (self.upper[columns] <= 1.0))

    def fixed(self, columns: IntArray) -> BoolArray:
        """Which columns are data: their limits leave one value."""
        return np.asarray(self.lower[columns] == self.upper[columns])

    def constant(self, columns: IntArray) -> bool:
        """Whether all of the columns are data."""
        return bool(np.all(self.fixed(columns)))

    def at_lower(self, columns: IntArray) -> BoolArray:
        """Which columns are at their lower limit, data not counted."""
        return np.asarray(self.x[columns] <= self.lower[columns] + TOLERANCE) & ~self.fixed(columns)

    def at_upper(self, columns: IntArray) -> BoolArray:
        """Which columns are at their upper limit, data not counted."""
        return np.asarray(self.x[columns] >= self.upper[columns] - TOLERANCE) & ~self.fixed(columns)


def decision_tables(result: Any) -> tuple[list[ValueTable], str]:
    """The tables, and a note about those that are left out."""
    point = Point.of(result)
    decided = [
        family for family in families(result.names, point.x.size) if not point.constant(family.columns)
    ]
    laid_out = grids(decided)
    tables, cells = [], MOST_CELLS
    shown = laid_out[:MOST_TABLES]
    for k, grid in enumerate(shown):
        width = len(grid.across)
        fair = cells // (len(shown) - k) // width
        tables.append(_table(grid, point, max(1, min(MOST_ROWS, fair))))
        cells -= len(tables[-1].rows) * width
    rest = len(laid_out) - len(shown)
    more = several(rest, "more family", "more families")
    return tables, f"{more} of variables only in the result itself." if rest else ""


def family_rows(result: Any) -> list[tuple[str, list[Cell]]]:
    """A row for each family: the number of its variables, their kind, and the range of their values."""
    point = Point.of(result)
    found = families(result.names, point.x.size)
    named = [visible(family.label) if family.label else "single variables" for family in found]
    return [(name, _overview(f, point)) for name, f in zip(named, found, strict=True)][: 2 * MOST_TABLES]


def _overview(family: ColumnFamily, point: Point) -> list[Cell]:
    columns = family.columns
    values = point.x[columns]
    kind = "yes or no" if np.all(point.binary(columns)) else _kind(point.integer[columns])
    low, mean, high = numbers(np.array([values.min(), values.mean(), values.max()]))
    nonzero = int(np.count_nonzero(np.abs(values) > TOLERANCE))
    at_limits = point.at_lower(columns).sum(), point.at_upper(columns).sum()
    texts = [f"{columns.size:,}", kind, point.ties(columns), low, mean, high, f"{nonzero:,}"]
    return [Cell(text) for text in (*texts, *(f"{int(amount):,}" for amount in at_limits))]


def _kind(integer: BoolArray) -> str:
    if integer.all():
        return "integer"
    return "some integer" if integer.any() else "continuous"


def _table(grid: Grid, point: Point, most_rows: int) -> ValueTable:
    if grid.columns.shape[1] == 1 and len(grid.rows) > ACROSS and np.all(point.binary(grid.columns)):
        return _chosen(grid, point)
    rows, left_out = _rows_shown(grid, point, most_rows)
    columns = grid.columns[rows]
    cells = _cells(columns, point, grid.mixed)
    head = [grid.corner, *(visible(text, 30) for text in grid.across)]
    labelled = [(visible(grid.rows[i]), line) for i, line in zip(rows.tolist(), cells, strict=True)]
    there = grid.columns[grid.columns != NO_COLUMN]
    about = [several(there.size, "variable")]
    tied = point.ties(there)
    about += [f"{tied} of a predictor"] if tied != NOTHING else []
    alike = all(bool(np.all(limit[there] == limit[there[0]])) for limit in (point.lower, point.upper))
    if alike and not np.all(point.binary(there)):
        about.append(f"limits {_limits(point, int(there[0])).text}")
    elif len(head) == 2 and not alike:
        head.append("limits")
        for line, column in zip(cells, columns[:, 0].tolist(), strict=True):
            line.append(_limits(point, column))
    return ValueTable(visible(grid.title), ", ".join(about), head, labelled, left_out)


def _chosen(grid: Grid, point: Point) -> ValueTable:
    """The indices of the binaries that are 1, instead of a long column of yes and no."""
    columns = grid.columns[:, 0]
    yes = np.flatnonzero(point.x[columns] > 0.5)
    about = f"{yes.size:,} of {columns.size:,} are yes"
    tied = point.ties(columns)
    about += f", {tied} of a predictor" if tied != NOTHING else ""
    shown = [visible(grid.rows[i], 40) for i in yes[:MOST_CHOSEN].tolist()]
    left_out = f"{yes.size - MOST_CHOSEN:,} more are yes." if yes.size > MOST_CHOSEN else ""
    return ValueTable(visible(grid.title), about, [], [], left_out, shown)


def _limits(point: Point, column: int) -> Cell:
    lower, upper = point.lower[column], point.upper[column]
    if lower == upper:
        return Cell("fixed")
    if np.isinf(lower) and np.isinf(upper):
        return Cell("none")
    return Cell(f"{number(lower, 4)} to {number(upper, 4)}")


def _rows_shown(grid: Grid, point: Point, most: int) -> tuple[IntArray, str]:
    """The rows with the largest values, in their order, and a note about the others."""
    size = np.where(grid.columns == NO_COLUMN, 0.0, np.abs(point.x[grid.columns]))
    total = len(grid.rows)
    if total <= most:
        return np.arange(total), ""
    scale = size.max(axis=0)
    rank = (size / np.where(scale > 0.0, scale, 1.0)).max(axis=1)
    nonzero = int(np.count_nonzero(rank > TOLERANCE))
    rows = np.sort(np.argsort(-rank, kind="stable")[: max(1, min(most, nonzero))])
    zeros, others = min(total - nonzero, total - len(rows)), max(0, nonzero - len(rows))
    told = [several(zeros, "row of zeros", "rows of zeros")] * (zeros > 0)
    told += [several(others, "other")] * (others > 0)
    which = ", those with the largest values" if others else ""
    return rows, f"{len(rows):,} of {total:,} rows{which}. Left out: {', '.join(told)}."


def _cells(columns: IntArray, point: Point, mixed: bool) -> list[list[Cell]]:
    """(rows, across) cells; the decimals of a family are alike."""
    there = columns != NO_COLUMN
    values = np.where(there, point.x[columns], np.nan)
    binary = there & point.binary(columns)
    fixed = there & point.fixed(columns)
    up = there & point.at_upper(columns) & ~binary
    low = there & point.at_lower(columns) & ~binary & (point.lower[columns] != 0.0)
    zero = np.abs(values) <= TOLERANCE
    kinds = {"": ~there, "fixed": fixed, "yes": binary & ~zero, "no": binary, "up": up, "low": low}
    marks = np.select([*kinds.values(), zero], [*kinds, "no"], "")
    texts = _texts(values, mixed)
    words = np.where(binary & (marks != "fixed"), np.where(marks == "yes", "yes", "no"), "").tolist()
    return [
        [Cell(word or text, mark) for text, mark, word in zip(*line, strict=True)]
        for line in zip(texts, marks.tolist(), words, strict=True)
    ]


def _texts(values: FloatArray, mixed: bool) -> list[Sequence[str]]:
    """In wide tables a row holds a family, in long tables a column does."""
    if mixed:
        shown = np.where(np.abs(values) <= TOLERANCE, 0.0, values)
        return [[number(value) for value in line] for line in shown.tolist()]
    if len(values) <= values.shape[1]:
        return [numbers(line) for line in values]
    return list(zip(*(numbers(line) for line in values.T), strict=True))


ACROSS = 12
"""Number of columns that fit a screen, and a printed page."""
NO_COLUMN = -1


@dataclass(frozen=True, eq=False)
class Grid:
    """The columns of the problem in rows and across; NO_COLUMN for empty cells."""

    title: str
    rows: Sequence[str]
    across: Sequence[str]
    columns: IntArray
    """(rows, across)"""
    corner: str = "index"
    """The heading of the rows."""
    mixed: bool = False
    """Whether the rows are unrelated: each number then has its own number of digits."""


def grids(families: Sequence[ColumnFamily]) -> list[Grid]:
    """All families in their order; families with the same indices share one table, at the place of the
    first."""
    together: dict[tuple[Index, ...] | int, list[ColumnFamily]] = {}
    for place, family in enumerate(families):
        key = tuple(family.indices) if family.depth == 1 else place
        together.setdefault(key, []).append(family)
    return [grid for group in together.values() for grid in _of_group(group)]


def _of_group(group: list[ColumnFamily]) -> list[Grid]:
    first = group[0]
    if first.depth == 0:
        return [_list_table(family) for family in group]
    if first.depth > 1:
        return [_matrix_table(family) for family in group]
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


def _list_table(family: ColumnFamily) -> Grid:
    rows = [",".join(index) for index in family.indices]
    title = family.label or "Single variables"
    corner = "index" if family.label else "name"
    return Grid(title, rows, ["value"], family.columns[:, None], corner, mixed=not family.label)


def _matrix_table(family: ColumnFamily) -> Grid:
    """A table with the last index across, or the first index if the last one has too many values."""
    for across in (-1, 0):
        if family.shape is not None and family.shape[across] <= ACROSS:
            return _of_array(family, family.shape, across)
        if family.shape is not None:
            continue
        heads = list(dict.fromkeys(index[across] for index in family.indices))
        if len(heads) <= ACROSS:
            return _cross_table(family, across, heads)
    return _list_table(family)


def _of_array(family: ColumnFamily, shape: tuple[int, ...], across: int) -> Grid:
    """The table of an array, without parsing indices."""
    columns = np.moveaxis(family.columns.reshape(shape), across, -1)
    rows = [",".join(index) for index in ArrayIndices(columns.shape[:-1])]
    return Grid(family.label, rows, [str(k) for k in range(shape[across])], columns.reshape(len(rows), -1))


def _cross_table(family: ColumnFamily, across: int, heads: list[str]) -> Grid:
    place = {head: k for k, head in enumerate(heads)}
    rests = [index[:-1] if across else index[1:] for index in family.indices]
    rows = {rest: i for i, rest in enumerate(dict.fromkeys(rests))}
    columns = np.full((len(rows), len(heads)), NO_COLUMN)
    where = [rows[rest] for rest in rests], [place[index[across]] for index in family.indices]
    columns[where] = family.columns
    return Grid(family.label, [",".join(rest) for rest in rows], heads, columns)
