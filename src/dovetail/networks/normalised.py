"""Rows minus their mean, divided by their standard deviation: LayerNorm, GroupNorm, InstanceNorm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dovetail.core.arrays import FloatArray
from dovetail.networks.arithmetic import FLOAT64, MORE, ULPS, Arithmetic
from dovetail.networks.graph import Expressions, GraphBuilder
from dovetail.networks.operation import Between, RowOperation

MOMENTS = 4.0
"""Number of sums that a mean and a variance take, and one more to be safe."""


@dataclass(frozen=True, eq=False)
class Normalised(RowOperation):
    """c / sqrt(mean of c^2 + eps) of each row, where c is the row minus its mean."""

    eps: float

    def values(self, v: FloatArray) -> FloatArray:
        """In float64."""
        centred = v[:, self.read] - v[:, self.read].mean(axis=2, keepdims=True)
        return self.flat(centred * self._inverse_deviation(centred))

    def range(self, low: FloatArray, high: FloatArray) -> Between:
        """From the ranges of c; no result exceeds the root of its row's length."""
        a, b = low[:, self.read], high[:, self.read]
        least, most = self._centred_range(a, b)
        size = np.maximum(np.abs(a), np.abs(b)).max(axis=2, keepdims=True)
        pad = MOMENTS * FLOAT64.gamma(self.read.shape[1] + MORE) * size  # the errors of these sums themselves
        least, most = least - pad, most + pad
        rate = self._inverse_deviation(np.maximum(np.maximum(least, -most), 0.0))
        slowest = self._inverse_deviation(np.maximum(np.abs(least), np.abs(most)))
        root = np.sqrt(self.read.shape[1])
        low_end = np.clip(least * np.where(least < 0.0, rate, slowest), -root, root)
        high_end = np.clip(most * np.where(most > 0.0, rate, slowest), -root, root)
        return self.flat(low_end), self.flat(high_end)

    def error(
        self, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
    ) -> FloatArray:
        """A change of c, as long as d in all, changes the result by at most d / sqrt(mean of c^2 + eps).

        Rounding on the way (in the mean, in c, in the squares) acts like a change of c, in every way of
        computing it: in two passes or in one, with running sums of squares.
        """
        count = self.read.shape[1]
        a, b = low[:, self.read], high[:, self.read]
        e = error[:, self.read].max(axis=2, keepdims=True)
        size = np.maximum(np.abs(a), np.abs(b)).max(axis=2, keepdims=True) + e
        moved = 2.0 * e + MOMENTS * arithmetic.gamma(count + MORE) * size
        least, most = self._centred_range(a, b)
        left = np.maximum(np.maximum(np.maximum(least, -most), 0.0) - moved, 0.0)  # also of changed inputs
        root = np.sqrt(count)
        own = arithmetic.gamma(np.array(count + MORE + ULPS)) * root + arithmetic.smallest  # of the variance
        off = root * moved * self._inverse_deviation(left) * (1.0 + 4.0 * arithmetic.roundoff) + own
        return self.flat(np.where(count * np.square(size) <= 0.5 * arithmetic.largest, off, np.inf))

    def write(self, graph: GraphBuilder) -> Expressions:
        """Written with a square, a mean, rsqrt and a product."""
        rows, count = self.read.shape
        eye, mean = sparse.eye_array(rows), np.full((1, count), 1.0 / count)
        centring = sparse.csr_array(sparse.kron(eye, np.eye(count) - mean))
        centred = graph.read(self.read.ravel()).times(centring)
        means = graph.function("square", centred).times(sparse.csr_array(sparse.kron(eye, mean)), self.eps)
        rate = graph.function("rsqrt", means)
        return graph.product(centred, rate.take(np.repeat(np.arange(rows), count)))

    def _inverse_deviation(self, centred: FloatArray) -> FloatArray:
        return np.asarray(1.0 / np.sqrt(np.square(centred).mean(axis=2, keepdims=True) + self.eps))

    @staticmethod
    def _centred_range(low: FloatArray, high: FloatArray) -> Between:
        count = low.shape[2]
        least = low * (1.0 - 1.0 / count) - (high.sum(axis=2, keepdims=True) - high) / count
        most = high * (1.0 - 1.0 / count) - (low.sum(axis=2, keepdims=True) - low) / count
        return least, most
