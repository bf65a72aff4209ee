"""The maximum of several numbers: pooling, ensembles by maximum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.networks.arithmetic import Arithmetic
from dovetail.networks.graph import Expressions, GraphBuilder
from dovetail.networks.operation import Between, Operation


@dataclass(frozen=True, eq=False)
class Maxima(Operation):
    """The maximum of each row of numbers."""

    read: IntArray
    """(size, numbers in each row)."""

    @property
    def size(self) -> int:
        """Number of results."""
        return len(self.read)

    def values(self, v: FloatArray) -> FloatArray:
        """In float64."""
        return np.asarray(v[:, self.read].max(axis=2))

    def range(self, low: FloatArray, high: FloatArray) -> Between:
        """Increasing in each number."""
        return self.values(low), self.values(high)

    def error(
        self, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
    ) -> FloatArray:
        """No rounding."""
        return self.values(error)

    def write(self, graph: GraphBuilder) -> Expressions:
        """max(a, b) = a + relu(b - a), in rounds of pairs."""
        rivals = [graph.read(column) for column in self.read.T]
        while len(rivals) > 1:
            left = rivals[-1:] if len(rivals) % 2 else []
            pairs = zip(rivals[0::2], rivals[1::2], strict=False)
            rivals = [
                graph.added(a, graph.function("relu", graph.added(b, a, -1.0))) for a, b in pairs
            ] + left
        return rivals[0]
