"""A model written in another modelling tool, as dovetail sees it.

Each tool has one file in `models/` that says how its models are read into a `Mip`, how its variables are
told apart, and how new ones are made. Reading never changes the owner's model.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Protocol
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import ModelError
from dovetail.core.indicator import Indicator
from dovetail.core.mip import Mip

ObjectArray = NDArray[np.object_]
"""Variables of some tool, numbers among them."""

NUMBER = -1
"""Stands for a column where there is a number instead of a variable."""


@dataclass(frozen=True, eq=False)
class Reading:
    """A model as it was at one moment; `keys[j]` is what column j is known by in its own tool."""

    mip: Mip
    keys: tuple[Hashable, ...]
    switched: tuple[Indicator, ...] = ()
    """Indicator constraints that no row of the `Mip` can hold."""

    @cached_property
    def column(self) -> dict[Hashable, int]:
        """Columns by key."""
        return {key: j for j, key in enumerate(self.keys)}


class Itself:
    """A key for a variable that cannot be hashed or compared, for instance because == makes a constraint.

    Equal to no other than a key of the same object, which it does not keep alive.
    """

    __slots__ = ("_number", "_object")

    def __init__(self, thing: Any) -> None:
        self._number, self._object = id(thing), ref(thing)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Itself)
            and self._number == other._number
            and self._object() is other._object()  # a number is given again when an object is gone
        )


class ForeignModel(Protocol):
    """What a file in `models/` offers for one tool."""

    tool: str
    """How messages call its models."""
    heavy: tuple[type, ...]
    """Containers that keep the whole model alive: of these only what they hold is kept between solves."""

    def read(self, *, rows: bool = True) -> Reading:
        """The model as it is now; without rows where only columns matter."""
        ...

    def unpack(self, given: Any) -> ObjectArray:
        """The variables and numbers in a container of any kind this tool's users would pass, in its shape."""
        ...

    def key(self, variable: Any) -> Hashable:
        """What a variable is known by; a `ModelError` for anything that is no variable of this model."""
        ...

    def enclosed(self) -> Iterable[Any]:
        """The model itself, and models inside it that predictors may have been tied to."""
        ...

    def moved(self, reading: Reading) -> bool:
        """Whether variables may mean other columns now than when the model was read."""
        ...

    def create(self, shape: tuple[int, int], *, binary: bool, name: str) -> Any:
        """New variables in the owner's model, free or binary, in a container that tool's users expect."""
        ...

    def discard(self, created: Any) -> None:
        """Take back what `create` made."""
        ...


@dataclass(frozen=True, eq=False)
class Places:
    """Where entries are found: columns, or numbers where `column` is NUMBER."""

    column: IntArray
    number: FloatArray

    def values(self, x: FloatArray) -> FloatArray:
        """What the entries are at the point `x`."""
        return np.where(self.column == NUMBER, self.number, x[self.column])


def locate(model: ForeignModel, reading: Reading, what: str, entries: ObjectArray) -> Places:
    """The columns behind variables; numbers stay numbers. The shape is kept."""
    column = np.full(entries.shape, NUMBER, dtype=np.int64)
    number = np.zeros(entries.shape)
    for place, entry in enumerate(entries.flat):
        if isinstance(entry, (Real, np.bool_)):
            number.flat[place] = _finite(what, entry)
            continue
        found = reading.column.get(model.key(entry))
        if found is None:
            raise ModelError(
                f"{what}: {entry} is not a variable of this {model.tool} (any more); pass variables of "
                "the model itself that have not been removed."
            )
        column.flat[place] = found
    return Places(column, number)


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a problem came from: a foreign model, as it was read."""

    model: ForeignModel
    reading: Reading

    def value(self, given: Any, x: FloatArray) -> Any:
        """Values of the model's variables, or of columns by name or index, in the shape they were given."""
        entries = self.model.unpack(given)
        if all(isinstance(entry, (str, Integral)) for entry in entries.flat):
            picked = x[self.reading.mip.resolve("value()", entries)]
        elif self.model.moved(self.reading):
            raise ModelError(
                f"variables of this {self.model.tool} were deleted since it was solved, and others may have "
                "taken their places; solve it again, or ask by name."
            )
        else:
            picked = locate(self.model, self.reading, "value()", entries).values(x)
        return float(picked) if picked.ndim == 0 else picked


def _finite(what: str, entry: Any) -> float:
    try:
        number = float(entry)
    except OverflowError:
        number = np.inf
    if not np.isfinite(number):
        raise ModelError(f"{what} holds {number}; give variables or finite numbers.")
    return number


def table(given: Any, unfold: Callable[[Any], Any]) -> ObjectArray:
    """Nested lists, arrays, frames and a tool's own containers as one array of variables and numbers.

    `unfold` turns one of the tool's containers into an array or a list, and hands back everything else.
    Leaves are never given to numpy to look into: several tools' variables pass for sequences or integers.
    """
    shape, leaves = _leaves(given, unfold)
    result = np.empty(len(leaves), dtype=object)
    for place, leaf in enumerate(leaves):
        result[place] = leaf
    return result.reshape(shape)


def _leaves(item: Any, unfold: Callable[[Any], Any]) -> tuple[tuple[int, ...], list[Any]]:
    item = unfold(item)
    if isinstance(item, dict):
        item = _in_order(item)
    elif hasattr(item, "to_numpy"):  # a frame or series of pandas, an array of xarray
        item = item.to_numpy()
    if isinstance(item, np.ndarray) and item.dtype != object:
        return item.shape, item.ravel().tolist()
    if isinstance(item, np.ndarray):
        parts = [_leaves(entry, unfold) for entry in item.flat]
        inner = _common_shape(part[0] for part in parts)
        return (*item.shape, *inner), [leaf for part in parts for leaf in part[1]]
    if isinstance(item, (list, tuple, range)):
        parts = [_leaves(entry, unfold) for entry in item]
        inner = _common_shape(part[0] for part in parts)
        return (len(parts), *inner), [leaf for part in parts for leaf in part[1]]
    return (), [item]


def _in_order(items: dict[Any, Any]) -> Any:
    """The values of a dictionary; a table of them where its keys are all the combinations of some indices."""
    values = list(items.values())
    sizes = {len(key) if isinstance(key, tuple) else 1 for key in items}
    if len(sizes) != 1 or sizes == {1}:
        return values
    axes = [dict.fromkeys(indices) for indices in zip(*items, strict=True)]
    shape = tuple(len(axis) for axis in axes)
    if math.prod(shape) != len(items):
        return values
    result = np.empty(len(items), dtype=object)
    for place, key in enumerate(itertools.product(*axes)):
        result[place] = items[key]
    return result.reshape(shape)


def _common_shape(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    different = sorted(set(shapes))
    if len(different) > 1:
        raise ModelError(
            f"rows of different shapes {different[0]} and {different[1]} in one array of variables; give "
            "(n_samples, n_features), every row with the same number of entries."
        )
    return different[0] if different else ()


def distinct(names: Iterable[str]) -> tuple[str, ...] | None:
    """Names that tell columns apart: of equal ones the later get a number; None where nothing is named."""
    given = list(names)
    if not any(given):
        return None
    result: dict[str, None] = {}  # as an ordered set
    again: Counter[str] = Counter()
    for j, name in enumerate(given):
        unique = name or f"x[{j}]"
        while unique in result:
            again[name] += 1
            unique = f"{name}#{again[name] + 1}"
        result[unique] = None
    return tuple(result)
