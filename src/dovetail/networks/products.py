"""Products of pairs of numbers: gates, attention, products of inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.networks.arithmetic import Arithmetic
from dovetail.networks.graph import Expressions, GraphBuilder
from dovetail.networks.operation import Between, Operation


@dataclass(frozen=True, eq=False)
class Products(Operation):
    """An operation on pairs of numbers."""

    left: IntArray
    right: IntArray

    @property
    def size(self) -> int:
        """Number of results."""
        return len(self.left)

    def values(self, v: FloatArray) -> FloatArray:
        """In float64."""
        return np.asarray(v[:, self.left] * v[:, self.right])

    def range(self, low: FloatArray, high: FloatArray) -> Between:
        """From the corners; 0 times infinity is 0 here."""
        corners = np.stack([a[:, self.left] * b[:, self.right] for a in (low, high) for b in (low, high)])
        corners = np.where(np.isnan(corners), 0.0, corners)
        return corners.min(axis=0), corners.max(axis=0)

    def error(
        self, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
    ) -> FloatArray:
        """Each error times the other number, plus one rounding."""
        size = np.maximum(np.abs(low), np.abs(high))
        x, y, e, f = size[:, self.left], size[:, self.right], error[:, self.left], error[:, self.right]
        own = 2.0 * arithmetic.unit * (x + e) * (y + f) + arithmetic.smallest
        return np.asarray(x * f + y * e + e * f + own)

    def write(self, graph: GraphBuilder) -> Expressions:
        """One step of its own."""
        return graph.product(graph.read(self.left), graph.read(self.right))
