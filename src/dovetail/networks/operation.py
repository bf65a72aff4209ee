"""One operation of a program: its value, its range, what it rounds, and how planes see it, in one place.

An operation reads numbers that come before it, known by their places in one long row, and gives new ones.
Arrays have one row per sample: (n, numbers before) go in, (n, size) come out. Errors and ranges that are not
known are infinite or NaN.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.networks.arithmetic import Arithmetic
from dovetail.networks.graph import Expressions, GraphBuilder

Between = tuple[FloatArray, FloatArray]
"""The least and the largest value of each number."""


@dataclass(frozen=True, eq=False)
class Operation(ABC):
    """What every operation says of itself. Fields of whole numbers are places of numbers that it reads."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers it gives."""

    @abstractmethod
    def values(self, v: FloatArray) -> FloatArray:
        """In float64."""

    @abstractmethod
    def range(self, low: FloatArray, high: FloatArray) -> Between:
        """Of what it gives, for numbers between two bounds, each on its own."""

    @abstractmethod
    def error(
        self, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
    ) -> FloatArray:
        """How far what is computed may be from what is exact, given how far its numbers may be."""

    @abstractmethod
    def write(self, graph: GraphBuilder) -> Expressions:
        """The same in steps that have planes."""

    def parts(self) -> Iterator[str | np.ndarray]:
        """All that makes it what it is, in names and arrays."""
        yield type(self).__name__
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, sparse.csr_array):
                yield from (value.data, value.indices, value.indptr)
            else:
                yield value if isinstance(value, np.ndarray) else repr(value)

    def moved(self, places: Callable[[IntArray], IntArray]) -> Self:
        """The same of numbers at other places."""
        changed: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "i":
                changed[one.name] = places(value)
        return replace(self, **changed)


@dataclass(frozen=True, eq=False)
class RowOperation(Operation):
    """An operation that makes of each row of numbers a row as long."""

    read: IntArray
    """(rows, how many)."""

    @property
    def size(self) -> int:
        """How many numbers it gives."""
        return self.read.size

    def flat(self, part: FloatArray) -> FloatArray:
        """(n, rows, how many, or 1) laid out row after row."""
        return np.broadcast_to(part, (len(part), *self.read.shape)).reshape(len(part), -1)
