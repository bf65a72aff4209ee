"""Columns by family: names such as ``make[3,bread]`` say which columns are one thing, and where each stands.

Modelling tools write indices in brackets; older files have ``make_3_17`` or ``make(3,bread)``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import IntArray
from dovetail.core.names import LazyNames, NumberedNames

_BRACKETS = re.compile(r"(.*?)[\[(](.*)[\])]$", re.DOTALL)
_NUMBERED = re.compile(r"(.*?[^\d_.])((?:[_.]?\d+)(?:[_.]\d+)*)$", re.DOTALL)

Index = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ColumnFamily:
    """Columns with one label; those without an index of their own are all in the family ""."""

    label: str
    columns: IntArray
    indices: list[Index]
    """One for each column; of the family "" the whole name."""

    @property
    def depth(self) -> int:
        """How many indices each has; 0 where that differs, or two have the same."""
        depths = {len(index) for index in self.indices}
        told_apart = self.label and len(depths) == 1 and len(set(self.indices)) == len(self.indices)
        return depths.pop() if told_apart else 0


def families(names: Sequence[str] | None, n_columns: int) -> list[ColumnFamily]:
    """All columns by family, in the order of their first ones, those that stand alone last."""
    found: dict[str, tuple[list[int], list[Index]]] = {}
    names = LazyNames(NumberedNames("x", (n_columns,))) if names is None else names
    for j, name in enumerate(names):
        label, index = split(name)
        columns, indices = found.setdefault(label, ([], []))
        columns.append(j)
        indices.append(index)
    return _with_single_ones_joined(found, names)


def split(name: str) -> tuple[str, Index]:
    """Label and indices of a name; a name without any is its own label."""
    match = _BRACKETS.match(name)
    if match and match[1]:
        return match[1], tuple(part.strip() for part in match[2].split(","))
    match = _NUMBERED.match(name)
    return (match[1], tuple(re.split(r"[_.]", match[2].lstrip("_.")))) if match else (name, ())


def _with_single_ones_joined(
    found: dict[str, tuple[list[int], list[Index]]], names: Sequence[str]
) -> list[ColumnFamily]:
    alone: list[int] = []
    several = []
    for label, (columns, indices) in found.items():
        if len(columns) == 1 or () in indices:
            alone += columns
        else:
            several.append(ColumnFamily(label, np.array(columns), indices))
    if alone:
        alone.sort()
        several.append(ColumnFamily("", np.array(alone), [(names[j],) for j in alone]))
    return several
