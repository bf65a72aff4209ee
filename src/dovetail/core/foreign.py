"""A model written in another modelling tool, as dovetail sees it.

Each tool has one file in `models/` that says how its models are read into a `Mip`, how its variables are
told apart, how new ones are made, and how an answer is handed back. Reading never changes the owner's model;
loading an answer changes what its ways of reading a solution say, and nothing else.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray, ObjectArray, resolve
from dovetail.core.errors import ModelError
from dovetail.core.mip import Mip
from dovetail.core.quadratic import QuadraticTerms
from dovetail.core.special_constraints import Indicator


class RaggedError(ModelError):
    """Parts of a container have different shapes, so that there is no array of them."""


def as_array(given: Any, unfold: Callable[[Any], Any]) -> ObjectArray:
    """Nested lists, arrays, frames and a tool's own containers as one array of variables and numbers.

    `unfold` turns one of the tool's containers into an array or a list, and hands back everything else.
    Leaves are never given to numpy to look into: several tools' variables pass for sequences or integers.
    Nor are they asked for attributes they do not have: gurobipy repeats that complaint at the next error.
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
    elif hasattr(type(item), "to_numpy"):  # a frame or series of pandas, an array of xarray
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


def like(given: Any, values: FloatArray) -> Any:
    """Values as they would stand in `given`, of which `as_array` made an array of their shape.

    Dictionaries, frames and series keep their keys; everything else becomes an array, one entry a number.
    """
    if isinstance(given, dict):
        keys, shape = _table(given)
        inner = values.reshape(len(keys), *values.shape[len(shape) :])
        found = dict(zip(keys, inner, strict=True))
        return {key: like(item, found[key]) for key, item in given.items()}
    kind = type(given)
    if hasattr(kind, "iloc") and hasattr(kind, "to_numpy"):  # of pandas, which need not be installed
        axes = {"columns": given.columns} if values.ndim == 2 else {"name": given.name}
        return kind(values, index=given.index, **axes)
    return float(values) if values.ndim == 0 else values


def frame_of(given: Any, values: FloatArray) -> Any:
    """(n, k) values with the labels of a frame of pandas, or of the series that is its one row.

    Everything else is an array: what has no labels gives none.
    """
    if not hasattr(type(given), "iloc"):
        return values
    if hasattr(type(given), "columns"):
        return like(given, values)
    row = given.to_frame().T  # a series becomes a frame without pandas being imported here
    return type(row)(values, index=[0 if given.name is None else given.name], columns=row.columns)


def _in_order(items: dict[Any, Any]) -> Any:
    """The values of a dictionary; a table of them where its keys are all the combinations of some indices."""
    keys, shape = _table(items)
    result = np.empty(len(items), dtype=object)
    for place, key in enumerate(keys):
        result[place] = items[key]
    return result.reshape(shape)


def _table(items: dict[Any, Any]) -> tuple[list[Any], tuple[int, ...]]:
    """The keys in the order of a table, and its shape; a list where they are no combinations of indices."""
    keys = list(items)
    sizes = {len(key) if isinstance(key, tuple) else 1 for key in keys}
    if len(sizes) != 1 or sizes == {1}:
        return keys, (len(keys),)
    axes = [dict.fromkeys(indices) for indices in zip(*keys, strict=True)]
    shape = tuple(len(axis) for axis in axes)
    if math.prod(shape) != len(keys):
        return keys, (len(keys),)
    return list(itertools.product(*axes)), shape


def _common_shape(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    different = sorted(set(shapes))
    if len(different) > 1:
        raise RaggedError(
            f"rows of different shapes {different[0]} and {different[1]} in one array of variables; give "
            "(n_samples, n_features), the same number of entries for every sample."
        )
    return different[0] if different else ()


NUMBER = -1
"""Stands for a column where there is a number instead of a variable."""


@dataclass(frozen=True, eq=False)
class Slack:
    """A variable that its tool made for a row and that the `Mip` does without.

    Its value is constant + coefficients'x, and no less than `at_least`.
    """

    key: Hashable
    name: str
    columns: Sequence[int]
    coefficients: Sequence[float]
    constant: float
    at_least: float = -np.inf

    def value(self, x: FloatArray) -> float:
        """What it is at the point `x`."""
        activity = np.dot(self.coefficients, x[np.asarray(self.columns, dtype=np.int64)])
        return max(float(self.constant + activity), self.at_least)


@dataclass(frozen=True, eq=False)
class Reading:
    """A model as it was at one moment; `keys[j]` is what column j is known by in its own tool.

    Columns behind those are auxiliary (see `core/special_constraints.py`): no tool knows of them.
    """

    mip: Mip
    keys: tuple[Hashable, ...]
    indicators: tuple[Indicator, ...] = ()
    """Its indicator constraints, which the `Mip` does not hold."""
    slacks: tuple[Slack, ...] = ()
    """Variables of the model that are no columns; their owner may ask for their values all the same."""
    quadratics: tuple[QuadraticTerms, ...] = ()
    """Of its objective and rows: the `Mip` has only what is linear in these."""

    @cached_property
    def column(self) -> dict[Hashable, int]:
        """Columns by key."""
        return {key: j for j, key in enumerate(self.keys)}

    @cached_property
    def with_slacks(self) -> Reading:
        """The same with slacks behind the columns, for those who ask for values of a `whole` point."""
        if not self.slacks:
            return self
        return replace(self, keys=(*self.keys, *(slack.key for slack in self.slacks)), slacks=())

    def whole(self, x: FloatArray) -> FloatArray:
        """The point of all variables: columns, then slacks; columns that dovetail added are left out."""
        return np.concatenate([x[: len(self.keys)], [slack.value(x) for slack in self.slacks]])

    @cached_property
    def index(self) -> dict[str, int]:
        """Places in a whole point by name; slacks give way to columns of the same name."""
        names = [*map(self.mip.column_name, range(len(self.keys))), *(s.name for s in self.slacks)]
        return {name: j for j, name in reversed([*enumerate(names)])}


@dataclass(frozen=True, eq=False)
class Answer:
    """What a solve found, as far as a model can be told."""

    x: FloatArray | None
    """A value for every column that was read, and maybe more behind them; None where no point was found."""
    objective: float | None
    status: str
    stop_reason: str


class Ties(Protocol):
    """What a tool's own functions ask about the predictors that its models have."""

    def refuse(self, parts: Iterable[Any]) -> None:
        """A `ModelError` where the tool must not solve a model that has these parts (`enclosed`)."""
        ...

    def copied(self, parts: Iterable[Any], copy: Any) -> None:
        """Note that `copy` was made of a model that has these parts: it has none of their predictors."""
        ...


class ForeignModel(ABC):
    """What a file in `models/` offers for one tool.

    What is not abstract serves tools whose variables are known by what they are, and that have no containers
    of their own.
    """

    tool: str
    """How messages call its models."""
    heavy: tuple[type, ...] = ()
    """Containers that keep the whole model alive: of these only what they hold is kept between solves."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @abstractmethod
    def read(self, *, rows: bool = True) -> Reading:
        """The model as it is now; without rows where only columns matter."""

    @abstractmethod
    def key(self, variable: Any) -> Hashable:
        """What a variable is known by; a `ModelError` for anything that is no variable of this model."""

    @abstractmethod
    def watch(self, ties: Ties) -> None:
        """From now on the tool asks `ties` before it solves this model, and tells it of copies."""

    @abstractmethod
    def create(self, shape: tuple[int, int], *, binary: bool, name: str) -> Any:
        """New variables in the owner's model, free or binary, in a container that tool's users expect."""

    @abstractmethod
    def discard(self, created: Any) -> None:
        """Take back what `create` made."""

    @abstractmethod
    def load(self, reading: Reading, answer: Answer) -> None:
        """Let the model's own ways of reading a solution give the answer; its program stays as it is.

        Variables removed since are left out. Without a point, what was loaded before is withdrawn where the
        tool lets one. A `ModelError` says what the tool refuses.
        """

    def unpack(self, given: Any) -> ObjectArray:
        """The variables and numbers in a container of any kind this tool's users would pass, in its shape."""
        return as_array(given, lambda item: np.asarray(item) if isinstance(item, np.ndarray) else item)

    def enclosed(self) -> Iterable[Any]:
        """The model itself, and models inside it that predictors may have been tied to."""
        return (self._model,)

    def moved(self, reading: Reading) -> bool:
        """Whether variables may mean other columns now than when the model was read."""
        return False

    def like(self, given: Any, values: FloatArray) -> Any:
        """Values in a container like the one given; `unpack` has found as many variables in it."""
        return like(given, values)

    def table(self, given: Any, entries: ObjectArray) -> Any:
        """The (n, k) variables and numbers of a container as this tool's users hold them; `given` itself, as
        it was passed, where the tool has no tables of variables."""
        return given


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
        """Values of the model's variables, or of columns by name or index, as they were given."""
        if isinstance(given, dict) and self._holds_containers(given):
            return {key: self.value(item, x) for key, item in given.items()}
        entries, reading = self.model.unpack(given), self.reading.with_slacks
        if all(isinstance(entry, (str, Integral)) for entry in entries.flat):
            column = resolve("value()", entries, len(reading.keys), lambda: self.reading.index)
            places = Places(column, np.zeros(column.shape))
        else:
            self._require_in_place("solve it again, or ask by name")
            places = locate(self.model, reading, "value()", entries)
        if np.any(places.column >= len(self.reading.keys)):  # slacks, which are worked out for those who ask
            x = self.reading.whole(x)
        return self.model.like(given, places.values(x))

    def _holds_containers(self, given: dict[Any, Any]) -> bool:
        """Whether a dictionary holds more than single variables: each part then comes back as it is."""
        try:
            return bool(given) and self.model.unpack(list(given.values())).ndim > 1
        except RaggedError:
            return True

    def load(self, answer: Answer) -> None:
        """Hand the answer to the model."""
        self._require_in_place("solve it again")
        self.model.load(self.reading, answer)

    def _require_in_place(self, remedy: str) -> None:
        if self.model.moved(self.reading):
            raise ModelError(
                f"variables of this {self.model.tool} were deleted since it was solved, and others may have "
                f"taken their places; {remedy}."
            )


def _finite(what: str, entry: Any) -> float:
    try:
        number = float(entry)
    except OverflowError:
        number = np.inf
    if not np.isfinite(number):
        raise ModelError(f"{what} holds {number}; give variables or finite numbers.")
    return number
