"""softmax, and its logarithm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dovetail.core.arrays import FloatArray
from dovetail.networks.arithmetic import OURS, ULPS, Arithmetic
from dovetail.networks.graph import Expressions, GraphBuilder
from dovetail.networks.operation import Between, RowOperation


@dataclass(frozen=True, eq=False)
class Softmax(RowOperation):
    """softmax of each row, or its logarithm."""

    logarithm: bool = False

    @property
    def kind(self) -> str:
        """Its name."""
        return "log_softmax" if self.logarithm else "softmax"

    def values(self, v: FloatArray) -> FloatArray:
        """In float64."""
        logits = v[:, self.read] - v[:, self.read].max(axis=2, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
        return self.flat(logs if self.logarithm else np.exp(logs))

    def range(self, low: FloatArray, high: FloatArray) -> Between:
        """Each share is increasing in its own number and decreasing in the others."""
        a, b = low[:, self.read], high[:, self.read]
        width, count = _width(a, b), self.read.shape[1]
        near = (ULPS + count + width) * OURS  # the errors of these sums themselves
        least = np.fmax(a - np.logaddexp.reduce(b, axis=2, keepdims=True) - near, -width - np.log(count))
        most = np.fmin(b - np.logaddexp.reduce(a, axis=2, keepdims=True) + near, 0.0)
        if not self.logarithm:
            least, most = np.exp(least) - near, np.minimum(np.exp(most) + near, 1.0)
        return self.flat(least), self.flat(most)

    def error(
        self, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
    ) -> FloatArray:
        """A share changes by at most half of the largest change of its row, its logarithm by twice that.
        Differences to the largest number are rounded before they become exponents."""
        e = error[:, self.read].max(axis=2, keepdims=True)
        width = _width(low[:, self.read], high[:, self.read]) + 2.0 * e
        own = (ULPS + self.read.shape[1] + width) * arithmetic.unit + arithmetic.smallest
        if self.logarithm:
            return self.flat(2.0 * e + 2.0 * own + ULPS * arithmetic.unit * (1.0 + width))
        return self.flat(0.5 * e + own)

    def write(self, graph: GraphBuilder) -> Expressions:
        """A share is 1 / (1 + sum of exp(z_j - z_i)); of two numbers a sigmoid."""
        rows, count = self.read.shape
        if count == 1:
            return graph.constants(np.full(rows, 0.0 if self.logarithm else 1.0))
        own, others = np.nonzero(~np.eye(count, dtype=bool))
        mine, theirs = graph.read(self.read[:, own].ravel()), graph.read(self.read[:, others].ravel())
        if count == 2 and not self.logarithm:
            return graph.function("sigmoid", graph.added(mine, theirs, -1.0))
        powers = graph.function("exp", graph.added(theirs, mine, -1.0))
        places = np.repeat(np.arange(self.size), count - 1)
        adding = sparse.csr_array((np.ones(len(places)), (places, np.arange(len(places)))))
        total = powers.times(adding, 1.0)
        if self.logarithm:
            logs = graph.function("log", total)
            return Expressions(-logs.matrix, -logs.constant)
        return graph.function("reciprocal", total)


def _width(low: FloatArray, high: FloatArray) -> FloatArray:
    """The largest difference between two numbers of a row."""
    return np.asarray(high.max(axis=2, keepdims=True) - low.min(axis=2, keepdims=True))
