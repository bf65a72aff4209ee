"""A model of another modelling tool, as dovetail sees it.

Each tool has one file in `models/`. The file says how the tool's models are read into a `Mip`, how its
variables are identified, how new variables are made, and how a solution is written back. Reading never
changes the owner's model. Writing a solution changes only the values that the tool returns as its solution.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
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
    """Parts of a container have different shapes, so that no array can be made."""


def as_array(given: Any, unfold: Callable[[Any], Any]) -> ObjectArray:
    """Converts nested lists, arrays, frames and a tool's own containers to one array of variables and
    numbers.

    `unfold` turns a container of the tool into an array or a list, and returns everything else unchanged.
    numpy never inspects the leaves, because variables of several tools look like sequences or integers. The
    entries are not asked for missing attributes either, because gurobipy repeats that complaint at the next
    error.
    """
    shape, leaves = _leaves(given, unfold)
    result = np.empty(len(leaves), dtype=object)
    for place, leaf in enumerate(leaves):
        result[place] = leaf
    return result.reshape(shape)


def _leaves(item: Any, unfold: Callable[[Any], Any]) -> tuple[tuple[int, ...], list[Any]]:
    item = unfold(item)
    if isinstance(item, dict):
        item = _dictionary_values(item)
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
    """Values in the form of `given`, from the array that `as_array` made of it. Dictionaries, frames and
    series keep their keys; everything else becomes an array of numbers."""
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
    """(n, k) values with the labels of a pandas frame, or of the series that is its only row. Without labels
    an array."""
    if not hasattr(type(given), "iloc"):
        return values
    if hasattr(type(given), "columns"):
        return like(given, values)
    row = given.to_frame().T  # a series becomes a frame without pandas being imported here
    return type(row)(values, index=[0 if given.name is None else given.name], columns=row.columns)


def _dictionary_values(items: dict[Any, Any]) -> Any:
    """The values of a dictionary; a table of them if its keys are all combinations of some indices."""
    keys, shape = _table(items)
    result = np.empty(len(items), dtype=object)
    for place, key in enumerate(keys):
        result[place] = items[key]
    return result.reshape(shape)


def _table(items: dict[Any, Any]) -> tuple[list[Any], tuple[int, ...]]:
    """The keys in the order of a table, and its shape; a list if they are not all combinations of indices."""
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
"""Marks an entry that is a number instead of a variable."""


@dataclass(frozen=True, eq=False)
class Slack:
    """A slack variable that the tool created for a row, and that is not a column of the `Mip`. Its value
    is constant + coefficients'x, at least `at_least`."""

    key: Hashable
    name: str
    columns: Sequence[int]
    coefficients: Sequence[float]
    constant: float
    at_least: float = -np.inf

    def value(self, x: FloatArray) -> float:
        """The variable's value at the point `x`."""
        activity = np.dot(self.coefficients, x[np.asarray(self.columns, dtype=np.int64)])
        return max(float(self.constant + activity), self.at_least)


@dataclass(frozen=True)
class FunctionTerm:
    """A function in a constraint: column `written` = kind(column `read`)."""

    kind: str
    """exp, log, log10, sqrt, sin, cos, tanh or power."""
    read: int
    written: int
    power: float = 1.0
    """The exponent of a power."""


@dataclass(frozen=True, eq=False)
class Reading:
    """A snapshot of a model; `keys[j]` identifies column j in its tool. Columns after those are
    auxiliary (see `core/special_constraints.py`) and unknown to the tool."""

    mip: Mip
    keys: tuple[Hashable, ...]
    indicators: tuple[Indicator, ...] = ()
    """Its indicator constraints, which are not in the `Mip`."""
    slacks: tuple[Slack, ...] = ()
    """Variables of the model that are not columns; their owner may ask for their values."""
    quadratics: tuple[QuadraticTerms, ...] = ()
    """The quadratic terms of objective and rows; the `Mip` has the linear ones."""
    functions: tuple[FunctionTerm, ...] = ()
    """The functions in objective and rows."""
    helper_rows: tuple[int, ...] = ()
    """Rows that the model does not have: they define the arguments of functions and absolute values."""

    @cached_property
    def column(self) -> dict[Hashable, int]:
        """Columns by key."""
        return {key: j for j, key in enumerate(self.keys)}

    @cached_property
    def with_slacks(self) -> Reading:
        """Names of the columns followed by the slacks, for values of a `whole` point."""
        if not self.slacks:
            return self
        return replace(self, keys=(*self.keys, *(slack.key for slack in self.slacks)), slacks=())

    def whole(self, x: FloatArray) -> FloatArray:
        """The point of all variables: columns, then slacks, without columns that dovetail added."""
        return np.concatenate([x[: len(self.keys)], [slack.value(x) for slack in self.slacks]])

    @cached_property
    def index(self) -> dict[str, int]:
        """Places in a whole point by name; columns take precedence over slacks of the same name."""
        names = [*map(self.mip.column_name, range(len(self.keys))), *(s.name for s in self.slacks)]
        return {name: j for j, name in reversed([*enumerate(names)])}


@dataclass(frozen=True, eq=False)
class Answer:
    """The solution of a solve in the form that a model can store."""

    x: FloatArray | None
    """A value for every column that was read, and possibly more after them; None without a solution."""
    objective: float | None
    status: str
    stop_reason: str
    prices: Callable[[], Mapping[str, float]] = dict
    """The prices of constraints by name, as far as known; computed on request."""


class Ties(Protocol):
    """The calls by which a tool asks about the predictors attached to a model."""

    def refuse(self, parts: Iterable[Any]) -> None:
        """Raise a `ModelError` if the tool must not solve a model that contains these parts (`enclosed`)."""
        ...

    def copied(self, parts: Iterable[Any], copy: Any) -> None:
        """Record that `copy` is a copy of a model with these parts; the copy has none of their predictors."""
        ...


class ForeignModel(ABC):
    """The interface of a file in `models/` for one tool. Methods that are not abstract suit tools whose
    variables are identified by their objects, without containers of their own."""

    tool: str
    """The name of the tool's models in messages."""
    source: str
    """What users pass as variables, in messages."""
    expressions: tuple[type, ...] = ()
    """Classes of expressions, which may be taken for variables."""
    heavy: tuple[type, ...] = ()
    """Containers that keep the whole model alive; between solves only their contents are kept."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @abstractmethod
    def read(self, *, rows: bool = True) -> Reading:
        """The model as it is now; without rows if only columns matter."""

    @abstractmethod
    def key(self, variable: Any) -> Hashable:
        """The key of a variable; a `ModelError` for anything that is no variable of this model."""

    @abstractmethod
    def watch(self, ties: Ties) -> None:
        """From now on the tool calls `ties` before it solves this model, and when it copies the model."""

    @abstractmethod
    def create(self, shape: tuple[int, int], *, binary: bool, name: str) -> Any:
        """Make new variables in the owner's model, free or binary, in a container that users of the tool
        expect."""

    @abstractmethod
    def discard(self, created: Any) -> None:
        """Remove the variables that `create` made."""

    @abstractmethod
    def load(self, reading: Reading, answer: Answer) -> None:
        """Make the model's own ways of reading a solution return this one; the program stays unchanged.
        Variables removed since are left out. Without a solution an earlier one is withdrawn if the tool
        allows it. A `ModelError` names the values that the tool refuses."""

    def is_of(self, model: Any) -> bool:
        """Whether this is the view of a model."""
        return model is self._model

    def held(self, reading: Reading) -> FloatArray:
        """(keys,) the values that the variables hold, of the last solution or as their owner set them; NaN
        for those without."""
        return np.full(len(reading.keys), np.nan)

    def no_variable(self, item: Any) -> ModelError:
        """The error for an item that is no variable of this model."""
        try:
            shown = " ".join(str(item).replace("---", "").split())[:80]
        except Exception:  # a variable of a model that no longer exists
            shown = f"a {type(item).__name__}"
        if isinstance(item, self.expressions):
            return ModelError(
                f"{shown} is an expression, not a variable; add a variable, a constraint that makes it equal "
                "to the expression, and pass the variable."
            )
        return ModelError(f"{shown!r} is not a variable of this {self.tool}; pass {self.source}.")

    def unpack(self, given: Any) -> ObjectArray:
        """The variables and numbers in a container of any kind that users of the tool pass, in its shape."""
        return as_array(given, lambda item: np.asarray(item) if isinstance(item, np.ndarray) else item)

    def enclosed(self) -> Iterable[Any]:
        """The model itself, and the models inside it that may have predictors."""
        return (self._model,)

    def moved(self, reading: Reading) -> bool:
        """Whether variables may be other columns now than when the model was read."""
        return False

    def like(self, given: Any, values: FloatArray) -> Any:
        """Values in a container of the same form; `unpack` found one variable for each value."""
        return like(given, values)

    def table(self, given: Any, entries: ObjectArray) -> Any:
        """The (n, k) variables and numbers of a container as users of the tool hold them; `given` itself if
        the tool has no tables of variables."""
        return given


@dataclass(frozen=True, eq=False)
class Places:
    """The places of entries: columns, or numbers where `column` is NUMBER."""

    column: IntArray
    number: FloatArray

    def values(self, x: FloatArray) -> FloatArray:
        """The values of the entries at the point `x`."""
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
    """The model of another tool from which a problem was read, with the reading."""

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
        if np.any(places.column >= len(self.reading.keys)):  # slacks are computed on request only
            x = self.reading.whole(x)
        return self.model.like(given, places.values(x))

    def _holds_containers(self, given: dict[Any, Any]) -> bool:
        """Whether a dictionary holds more than single variables: then each part is answered in its own
        form."""
        try:
            return bool(given) and self.model.unpack(list(given.values())).ndim > 1
        except RaggedError:
            return True

    def load(self, answer: Answer) -> None:
        """Hand the solution to the model."""
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
