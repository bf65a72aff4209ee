"""Weighted sums: dense layers, convolutions, means, batch normalisation, and everything else affine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.networks.arithmetic import MORE, Arithmetic
from dovetail.networks.graph import Expressions, GraphBuilder
from dovetail.networks.operation import Between, Operation


@dataclass(frozen=True, eq=False)
class Sums(Operation):
    """weight v + bias."""

    read: IntArray
    """Distinct places, in order."""
    weight: FloatArray | sparse.csr_array
    """(size, numbers read): dense, or sparse if most entries are 0."""
    bias: FloatArray
    bulk: FloatArray
    """Additional absolute terms of each sum, to which rounding is relative, too."""
    exact: bool = False
    """Whether the operation is exact (constants)."""

    @classmethod
    def dense(cls, first: int, weight: FloatArray, bias: FloatArray) -> Sums:
        """A dense layer of the numbers from a place on."""
        read = np.arange(first, first + weight.shape[1])
        return cls(read, weight, bias, np.zeros(len(bias)))

    @property
    def size(self) -> int:
        """Number of results."""
        return len(self.bias)

    def values(self, v: FloatArray) -> FloatArray:
        """In float64."""
        return np.asarray(self._selected(v) @ self.weight.T + self.bias)

    def range(self, low: FloatArray, high: FloatArray) -> Between:
        """From centres and widths."""
        low, high = self._selected(low), self._selected(high)
        centre = 0.5 * (low + high) @ self.weight.T + self.bias
        reach = 0.5 * (high - low) @ abs(self.weight).T
        return centre - reach, centre + reach

    def error(
        self, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
    ) -> FloatArray:
        """The error of a sum in any order, with or without fused operations."""
        error = self._selected(error)
        size = np.maximum(np.abs(self._selected(low)), np.abs(self._selected(high))) + error
        total = self._spread(size) + np.abs(self.bias) + self.bulk
        off = self._spread(error)
        if self.exact:  # constants are cast to the format, and may be numbers that it cannot hold
            off = off + arithmetic.roundoff * np.abs(self.bias)
            return np.where(total <= 0.5 * arithmetic.largest, off, np.inf)
        return off + arithmetic.of_sum(self.terms + MORE, total)

    def write(self, graph: GraphBuilder) -> Expressions:
        """As one affine step."""
        return graph.summed(self.read, self.weight, self.bias)

    @property
    def sources(self) -> IntArray:
        """Numbers with a weight other than 0 in some sum."""
        return self.read[np.asarray(abs(self.weight).sum(axis=0)).ravel() > 0.0]

    @property
    def terms(self) -> IntArray:
        """The terms of each sum; terms with weight 0 are exactly 0."""
        if isinstance(self.weight, np.ndarray):
            return np.asarray(np.count_nonzero(self.weight, axis=1))
        return np.asarray(np.diff(self.weight.indptr))

    def _selected(self, v: FloatArray) -> FloatArray:
        if self.read.size and self.read[-1] - self.read[0] + 1 == self.read.size:
            return v[:, self.read[0] : self.read[-1] + 1]
        return v[:, self.read]

    def _spread(self, size: FloatArray) -> FloatArray:
        weight, endless = abs(self.weight), ~np.isfinite(size)
        if not endless.any():
            return np.asarray(size @ weight.T)
        total = np.where(endless, 0.0, size) @ weight.T
        reached = endless.astype(np.float64) @ (weight > 0.0).T.astype(np.float64)
        return np.where(reached > 0.0, np.inf, total)
