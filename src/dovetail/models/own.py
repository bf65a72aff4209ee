"""`dovetail.Problem` behind the same face as the models of other tools.

Columns are integers or names; a number with a decimal point is a fixed feature.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, ObjectArray
from dovetail.core.containers import as_array, like
from dovetail.core.errors import ModelError
from dovetail.core.foreign import Answer, Reading, Ties
from dovetail.core.problem import Problem
from dovetail.core.template import FamilyColumns


@dataclass(frozen=True)
class Column:
    """A column by its index; a bare integer would be taken for a number."""

    index: int

    def __str__(self) -> str:
        return f"column {self.index}"


class OwnModel:
    """A `dovetail.Problem`."""

    tool = "Problem"
    heavy = ()

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def read(self, *, rows: bool = True) -> Reading:
        """The problem's own host, which needs no reading."""
        mip = self._problem.mip
        return Reading(mip, tuple(range(mip.n_columns)))

    def unpack(self, given: Any) -> ObjectArray:
        """Indices and names as columns."""
        entries = as_array(given, lambda item: item.columns if isinstance(item, FamilyColumns) else item)
        for place, entry in enumerate(entries.flat):
            if isinstance(entry, Integral) and not isinstance(entry, bool):
                entries.flat[place] = Column(int(entry))
        return entries

    def key(self, variable: Any) -> Hashable:
        """The column's index."""
        if isinstance(variable, Column):
            return variable.index
        if isinstance(variable, str):
            return int(self._problem.mip.resolve("variables", np.array(variable)))
        raise ModelError(f"{variable!r} is no column of the problem; give its index or its name.")

    def enclosed(self) -> Iterable[Any]:
        """Nothing but the model itself."""
        return (self._problem,)

    def watch(self, ties: Ties) -> None:
        """Nothing: a problem holds its predictors itself."""

    def moved(self, reading: Reading) -> bool:
        """Never: variables are known by what they are."""
        return False

    def create(self, shape: tuple[int, int], *, binary: bool, name: str) -> Any:
        """New columns at the end."""
        size = shape[0] * shape[1]
        low, high = (0.0, 1.0) if binary else (-np.inf, np.inf)
        names = [f"{name}_{i}_{o}" for i in range(shape[0]) for o in range(shape[1])]
        added = self._problem.add_columns(
            np.full(size, low), np.full(size, high), np.full(size, binary), names
        )
        return added.reshape(shape)

    def discard(self, created: Any) -> None:
        """Columns of a problem keep their indices, so they stay: nothing refers to them any more."""

    def like(self, given: Any, values: FloatArray) -> Any:
        """Arrays, dictionaries and frames."""
        return like(given, values)

    def table(self, given: Any, entries: ObjectArray) -> Any:
        """As it was passed."""
        return given

    def load(self, reading: Reading, answer: Answer) -> None:
        """A problem has no place for an answer: the result has it."""
