"""A model written in another modelling tool, as dovetail sees it.

Each tool has one file in `models/` that says how its models are read into a `Mip`, how its variables are
told apart, and how new ones are made. Reading never changes the owner's model.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Protocol

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
    indicators: tuple[Indicator, ...] = ()
    """Its indicator constraints, which the `Mip` does not hold."""

    @cached_property
    def column(self) -> dict[Hashable, int]:
        """Columns by key."""
        return {key: j for j, key in enumerate(self.keys)}


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
