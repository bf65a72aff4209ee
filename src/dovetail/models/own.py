"""`dovetail.Problem` with the interface of other tools' models.

Variables are integers or names; a number with a decimal point is a fixed feature.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from dovetail.core.arrays import ObjectArray
from dovetail.core.foreign import Answer, ForeignModel, Reading, Ties, as_array
from dovetail.core.template import FamilyColumns


@dataclass(frozen=True)
class Column:
    """A column by its index; a bare integer would count as a number."""

    index: int

    def __str__(self) -> str:
        return f"column {self.index}"


class OwnModel(ForeignModel):
    """A `dovetail.Problem`."""

    tool = "Problem"
    source = "its index or its name"

    def read(self, *, rows: bool = True) -> Reading:
        """The program of the problem itself."""
        mip = self._model.mip
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
            return int(self._model.mip.resolve("variables", np.array(variable)))
        raise self.no_variable(variable)

    def watch(self, ties: Ties) -> None:
        """Nothing to do: a problem holds its predictors itself."""

    def create(self, shape: tuple[int, int], *, binary: bool, name: str) -> Any:
        """New columns at the end."""
        size = shape[0] * shape[1]
        low, high = (0.0, 1.0) if binary else (-np.inf, np.inf)
        names = [f"{name}_{i}_{o}" for i in range(shape[0]) for o in range(shape[1])]
        added = self._model.add_columns(np.full(size, low), np.full(size, high), np.full(size, binary), names)
        return added.reshape(shape)

    def discard(self, created: Any) -> None:
        """Nothing to do: columns of a problem keep their indices."""

    def load(self, reading: Reading, answer: Answer) -> None:
        """Nothing to do: the values are in the result."""
