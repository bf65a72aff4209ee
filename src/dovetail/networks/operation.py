"""One operation of a program: its value, range, rounding and planes, in one place.

An operation reads earlier numbers, by their places in one long row, and makes new ones. Arrays have one row
per sample: (n, numbers before) in, (n, size) out.
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
"""Bounds of each number."""


@dataclass(frozen=True, eq=False)
class Operation(ABC):
    """The interface of an operation. Integer fields are places of numbers that the operation reads."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of results."""

    @abstractmethod
    def values(self, v: FloatArray) -> FloatArray:
        """In float64."""

    @abstractmethod
    def range(self, low: FloatArray, high: FloatArray) -> Between:
        """The range of the results for numbers between two bounds."""

    @abstractmethod
    def error(
        self, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
    ) -> FloatArray:
        """The error of the computed results, given the errors of the numbers read."""

    @abstractmethod
    def write(self, graph: GraphBuilder) -> Expressions:
        """The operation as steps with planes."""

    def parts(self) -> Iterator[str | np.ndarray]:
        """All names and arrays that define the operation."""
        yield type(self).__name__
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, sparse.csr_array):
                yield from (value.data, value.indices, value.indptr)
            else:
                yield value if isinstance(value, np.ndarray) else repr(value)

    @property
    def sources(self) -> IntArray:
        """The places that results may depend on."""
        arrays = [getattr(self, one.name) for one in fields(self)]
        return np.concatenate(
            [a.ravel() for a in arrays if isinstance(a, np.ndarray) and a.dtype.kind == "i"]
        )

    def moved(self, places: Callable[[IntArray], IntArray]) -> Self:
        """The same operation on other places."""
        changed: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "i":
                changed[one.name] = places(value)
        return replace(self, **changed)


@dataclass(frozen=True, eq=False)
class RowOperation(Operation):
    """An operation on rows of numbers with results of the same length."""

    read: IntArray
    """(rows, numbers in each row)."""

    @property
    def size(self) -> int:
        """Number of results."""
        return self.read.size

    def flat(self, part: FloatArray) -> FloatArray:
        """(n, rows, length or 1) flattened row after row."""
        return np.broadcast_to(part, (len(part), *self.read.shape)).reshape(len(part), -1)
