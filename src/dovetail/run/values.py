"""The values of a result by the names of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.names import in_short, split_index
from dovetail.core.suggestion import did_you_mean

SHOWN = 8
"""Values that are shown where somebody looks at all of them."""


class Values(Mapping[str, Any]):
    """Values by name: one column's by its own name, a family's by what stands before its indices.

    >>> import numpy as np
    >>> values = Values(np.array([1.0, 2.0, 3.0]), ["x[0,a]", "x[1,a]", "cost"])
    >>> values["cost"], values["x[1,a]"], values["x"]
    (3.0, 2.0, {(0, 'a'): 1.0, (1, 'a'): 2.0})
    >>> dict(values)
    {'x[0,a]': 1.0, 'x[1,a]': 2.0, 'cost': 3.0}
    """

    def __init__(self, x: FloatArray, names: Sequence[str] | None) -> None:
        self._x = x
        self._names = names

    def __len__(self) -> int:
        return int(self._x.size)

    def __iter__(self) -> Iterator[str]:
        """The names of all columns, in their order; without names they are called x[0], x[1], ..."""
        return iter(self._names) if self._names is not None else (f"x[{j}]" for j in range(len(self)))

    def __getitem__(self, name: str) -> Any:
        if name in self._index:
            return float(self._x[self._index[name]])
        if name in self.families:
            return self.families[name]
        known = [*self.families, *self._index]
        raise KeyError(f"there is no column and no family called {name!r}{did_you_mean(name, known)}")

    def __contains__(self, name: object) -> bool:
        return name in self._index or name in self.families

    @cached_property
    def families(self) -> dict[str, dict[Any, float]]:
        """Columns that differ in their indices only: by what they have in common, then by index."""
        found: dict[str, dict[Any, float]] = {}
        for name, value in zip(self, self._x.tolist(), strict=True):
            label, index = split_index(name)
            if index:
                found.setdefault(label, {})[index if len(index) > 1 else index[0]] = value
        return found

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self)}

    def __repr__(self) -> str:
        return f"<Values: {self.in_short()}>"

    def in_short(self, most: int = SHOWN) -> str:
        """The first few in one line."""
        shown, rest = self.shown(most)
        return ", ".join([*(f"{in_short(name)} = {value}" for name, value in shown), rest]).rstrip(", ")

    def shown(self, most: int = SHOWN) -> tuple[list[tuple[str, str]], str]:
        """Names and values of the first few columns that are not 0, and what is left, in words."""
        places = np.flatnonzero(self._x)
        shown = [(self._name(j), f"{self._x[j]:.6g}") for j in places[:most].tolist()]
        others = {"more": len(places) - len(shown), "at 0": len(self) - len(places)}
        return shown, ", ".join(f"{count} {word}" for word, count in others.items() if count)

    def _name(self, j: int) -> str:
        return self._names[j] if self._names is not None else f"x[{j}]"
