"""Names of columns and rows, and checks of the order of features by name."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, product
from typing import Any, overload

import numpy as np

from dovetail.core.errors import PredictorError


def distinct(names: Iterable[str]) -> tuple[str, ...] | None:
    """Make names distinct: later duplicates get a number. None if nothing has a name."""
    given = list(names)
    if not any(given):
        return None
    result: dict[str, None] = {}  # a dict serves as an ordered set
    again: Counter[str] = Counter()
    for j, name in enumerate(given):
        unique = name or f"x[{j}]"
        while unique in result:
            again[name] += 1
            unique = f"{name}#{again[name] + 1}"
        result[unique] = None
    return tuple(result)


def free_name(prefix: str, taken: Collection[str], first: int = 0) -> str:
    """The prefix with the smallest number from `first` on that makes a free name."""
    return next(name for k in count(first) if (name := f"{prefix}{k}") not in taken)


@dataclass(frozen=True)
class NumberedNames:
    """Names made of a label and the indices of an array: ``spend[17]``, ``up[17,3]``."""

    label: str
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, k: int) -> str:
        if not self.shape:
            return self.label
        return f"{self.label}[{','.join(map(str, np.unravel_index(k, self.shape)))}]"

    def __iter__(self) -> Iterator[str]:
        if not self.shape:
            return iter((self.label,))
        return (
            f"{self.label}[{','.join(place)}]" for place in product(*(map(str, range(n)) for n in self.shape))
        )


class LazyNames(Sequence[str]):
    """Names made on access: a million blocks need no million strings. The caller ensures that labels are
    distinct."""

    def __init__(self, *parts: NumberedNames | tuple[str, ...]) -> None:
        self.parts = tuple(part for part in parts if len(part))
        self._first = [0, *accumulate(map(len, self.parts))]

    def __len__(self) -> int:
        return self._first[-1]

    @overload
    def __getitem__(self, k: int) -> str: ...
    @overload
    def __getitem__(self, k: slice) -> tuple[str, ...]: ...
    def __getitem__(self, k: int | slice) -> str | tuple[str, ...]:
        if isinstance(k, slice):
            return tuple(self[j] for j in range(*k.indices(len(self))))
        place = range(len(self))[k]  # negative ones count from the end, others are refused
        part = bisect_right(self._first, place) - 1
        return self.parts[part][place - self._first[part]]

    def __iter__(self) -> Iterator[str]:
        return (name for part in self.parts for name in part)

    def with_names(self, names: Sequence[str]) -> LazyNames:
        """More names after these; duplicates get a number."""
        given = {name for part in self.parts if isinstance(part, tuple) for name in part}
        labels = {part.label for part in self.parts if isinstance(part, NumberedNames)}
        fresh = (
            name if name not in given and label_of(name) not in labels else f"{name}#{len(self) + k}"
            for k, name in enumerate(names)
        )
        return LazyNames(*self.parts, tuple(fresh))


def in_short(name: str, most: int = 24) -> str:
    """A name in one line of limited length, whatever it contains."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in name)
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."


def label_of(name: str) -> str:
    """A name without its indices."""
    return name.partition("[")[0]


def split_index(name: str) -> tuple[str, tuple[int | str, ...]]:
    """A name without its indices, and the indices, integers as such; empty if there are none. Modelling
    tools write ``x[1,a]``, ``x[1, a]``, ``x(1, 2)`` or ``x_1_2``.

    >>> split_index("plant[3,'north west']"), split_index("x_0_1"), split_index("cost")
    (('plant', (3, 'north west')), ('x', (0, 1)), ('cost', ()))
    """
    found = _INDEXED.fullmatch(name)
    if found is None:
        return name, ()
    inside = found["brackets"] or found["parentheses"]
    parts = found["digits"][1:].split("_") if inside is None else inside.split(",")
    return found["label"], tuple(_index(part.strip().strip("'\"")) for part in parts)


_INDEXED = re.compile(
    r"(?P<label>.+?)(?:\[(?P<brackets>[^\[\]]+)\]|\((?P<parentheses>[^()]+)\)|(?P<digits>(?:_\d+)+))"
)


def _index(text: str) -> int | str:
    return int(text) if _WHOLE.fullmatch(text) else text


_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")
"""Integers as they are written as an index: 07 is not 7."""


def require_feature_order(block: str, what: str, given: Sequence[str], trained: Sequence[str] | None) -> None:
    """Refuse names that are a permutation of the features' names."""
    if trained is not None and is_another_order(given, trained):
        raise PredictorError(
            f"{block}: {what} has the columns {', '.join(given)}, but the predictor was trained on "
            f"{', '.join(trained)}; give these, in this order."
        )


def is_another_order(given: Sequence[str], trained: Sequence[str]) -> bool:
    """Whether the names are those of all features in another order.

    A feature may be a whole name (``heat``), the beginning of a name (``heat[3]``, ``heat_oven``), or one of
    its indices (``setting[heat,3]``). Names of other forms say nothing about the order.
    """
    if all(name.isdigit() for name in trained):  # an index may be any of these
        return False
    meant = [features_in(name, trained) for name in given]
    order = [name for features in meant if len(features) == 1 for name in features]
    return order != list(trained) and len(order) == len(given) and sorted(order) == sorted(trained)


def features_in(name: str, known: Collection[str]) -> set[str]:
    """The features that the name of a column may refer to."""
    if name in known:
        return {name}
    _, index = split_index(name)
    begun = {one for one in known if one and name.startswith(one) and not name[len(one)].isalnum()}
    return begun | {str(part) for part in index} & set(known)


def labels_of(table: Any) -> list[Any] | None:
    """The column labels of a table, if it has names for them; the entries of a pandas series."""
    if hasattr(type(table), "iloc"):
        return list(getattr(table, "columns", table.index))
    columns = getattr(table, "columns", None) if hasattr(type(table), "__array__") else None
    return None if columns is None else list(columns)
