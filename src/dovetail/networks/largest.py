"""Weighted sums of the largest of several numbers: maxima, as in pooling, and means of the worst few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.networks.arithmetic import MORE, Arithmetic
from dovetail.networks.graph import Expressions, GraphBuilder
from dovetail.networks.operation import Between, Operation

MAXIMUM = np.ones(1)
"""The shares of a maximum."""


@dataclass(frozen=True, eq=False)
class Largest(Operation):
    """The sum of shares[k] times the k-th largest number of each row: convex, and rising in each number."""

    read: IntArray
    """(size, numbers in each row)."""
    shares: FloatArray
    """At least 0, in falling order; at most as many as numbers in a row."""

    @property
    def size(self) -> int:
        """Number of results."""
        return len(self.read)

    def values(self, v: FloatArray) -> FloatArray:
        """In float64."""
        if len(self.shares) == 1:
            return np.asarray(self.shares[0] * v[:, self.read].max(axis=2))
        return np.asarray(-np.sort(-v[:, self.read], axis=2)[:, :, : len(self.shares)] @ self.shares)

    def range(self, low: FloatArray, high: FloatArray) -> Between:
        """Rising in each number."""
        return self.values(low), self.values(high)

    def error(
        self, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
    ) -> FloatArray:
        """At most the same sum of the errors, plus the rounding of the sum; a maximum has none."""
        if np.array_equal(self.shares, MAXIMUM):
            return self.values(error)
        total = self.values(np.maximum(np.abs(low), np.abs(high)) + error)
        return self.values(error) + arithmetic.of_sum(len(self.shares) + MORE, total)

    def write(self, graph: GraphBuilder) -> Expressions:
        """A sorting network as far as it matters: max(a, b) = a + relu(b - a), min(a, b) = b - relu(b - a),
        all pairs of a round at once."""
        rows, count = self.read.shape
        every = np.arange(rows)
        numbers = graph.read(self.read.T.ravel())  # number k of row r is at k rows + r
        for first, second in _rounds(count, len(self.shares)):
            larger, smaller = (np.add.outer(side * rows, every).ravel() for side in (first, second))
            rival = graph.function("relu", graph.added(numbers.take(smaller), numbers.take(larger), -1.0))
            pairs, places = np.arange(larger.size), np.concatenate([larger, smaller])
            signs = np.repeat([1.0, -1.0], larger.size)
            into = sparse.csr_array((signs, (places, np.tile(pairs, 2))), shape=(count * rows, larger.size))
            numbers = graph.added(numbers, rival.times(into))
        weights = sparse.csr_array(np.kron(self.shares, np.eye(rows)))
        return numbers.take(np.arange(weights.shape[1])).times(weights)


def _rounds(count: int, wanted: int) -> Iterator[tuple[IntArray, IntArray]]:
    """The rounds of Batcher's sorting network, without pairs that do not change the first `wanted` places.
    Each pair leaves the larger number in its first place; the pairs of a round are disjoint."""
    rounds, size = [], 1
    while size < count:
        step = size
        while step:
            starts = (begin + i for begin in range(step % size, count - step, 2 * step) for i in range(step))
            rounds.append(
                [
                    (k, k + step)
                    for k in starts
                    if k + step < count and k // (2 * size) == (k + step) // (2 * size)
                ]
            )
            step //= 2
        size *= 2
    needed, kept = {*range(wanted)}, []
    for pairs in reversed(rounds):
        mine = [pair for pair in pairs if needed & {*pair}]
        needed.update(place for pair in mine for place in pair)
        kept += [np.array(mine, dtype=np.int64).T] if mine else []
    return ((first, second) for first, second in reversed(kept))
