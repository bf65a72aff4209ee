"""Columns by family: names such as ``make[3,bread]`` say which columns are one thing, and where each stands.

Modelling tools write indices in brackets; older files have ``make_3_17`` or ``make(3,bread)``,
people ``make_bread`` and ``sell_bread`` (`word_families`).

``cement_wall``, ``cement_beam``, ``ash_wall``, ``ash_beam`` are two families, over two words. Only words
that several labels have in common count: of ``net_cost`` and ``net_profit`` alone nobody knows whether they
are one thing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import overload

import numpy as np

from dovetail.core.arrays import IntArray
from dovetail.core.names import LazyNames, NumberedNames, split_index

_NUMBERED = re.compile(r"(.*?[^\d_.])((?:[_.]?\d+)(?:[_.]\d+)*)$", re.DOTALL)

Index = tuple[str, ...]


LEAST_WORDS, LEAST_LABELS = 2, 2
"""Of a family, and of those that have the same words."""


@dataclass(frozen=True, eq=False)
class ColumnFamily:
    """Columns with one label; those without an index of their own are all in the family ""."""

    label: str
    columns: IntArray
    indices: Sequence[Index]
    """One for each column; of the family "" the whole name."""
    shape: tuple[int, ...] | None = None
    """Where they are known to be an array of this shape: a million of them are not looked at one by one."""

    @property
    def depth(self) -> int:
        """How many indices each has; 0 where that differs, or two have the same."""
        if self.shape is not None:
            return len(self.shape)
        depths = {len(index) for index in self.indices}
        told_apart = self.label and len(depths) == 1 and len(set(self.indices)) == len(self.indices)
        return depths.pop() if told_apart else 0


class ArrayIndices(Sequence[Index]):
    """The indices of an array, made when somebody asks for them."""

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
    """All columns by family, in the order of their first ones, those that stand alone last."""
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
    """Label and indices of a name; a name without any is its own label."""
    label, index = split_index(name)
    if index:
        return label, tuple(map(str, index))
    match = _NUMBERED.match(name)
    return (match[1], tuple(re.split(r"[_.]", match[2].lstrip("_.")))) if match else (name, ())


def _add_singles(found: dict[str, tuple[list[int], list[Index]]], names: Iterable[str], first: int) -> None:
    """Names one by one, by their labels."""
    for j, name in enumerate(names, start=first):
        label, index = split(name)
        columns, indices = found.setdefault(label, ([], []))
        columns.append(j)
        indices.append(index)


def _families_and_singles(
    found: dict[str, tuple[list[int], list[Index]]],
) -> tuple[list[ColumnFamily], list[int]]:
    """Families, and the columns that stand alone."""
    several: list[ColumnFamily] = []
    alone: list[int] = []
    for label, (columns, indices) in found.items():
        if len(columns) == 1 or () in indices:
            alone += columns
        else:
            several.append(ColumnFamily(label, np.array(columns), indices))
    return several, sorted(alone)


def word_families(names: Mapping[int, str]) -> dict[str, dict[str, int]]:
    """Columns by label and word, the words of families that go together in one order."""
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
