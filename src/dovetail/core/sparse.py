"""Where the entries of a sparse matrix stand, and products with many points at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray

TILE = 64
"""Columns that are transposed at a time: 64 doubles of a few thousand points stay in the cache."""


def row_of_entries(matrix: sp.csr_array) -> IntArray:
    """The row of each stored entry, in the order of `matrix.data`."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def joined_ranges(first: IntArray, end: IntArray) -> IntArray:
    """All numbers from first[i] up to, and without, end[i], one range after the other."""
    lengths = end - first
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(first - before, lengths))


def entries_of(matrix: sp.csr_array | sp.csc_array, i: int | np.integer[Any]) -> tuple[IntArray, FloatArray]:
    """Indices and values of one row of a csr array, or of one column of a csc array."""
    entries = slice(matrix.indptr[i], matrix.indptr[i + 1])
    return matrix.indices[entries], matrix.data[entries]


def sums_of_others(terms: FloatArray, rows: IntArray, count: int, endless: float = np.inf) -> FloatArray:
    """(entries,) for each entry of a matrix the sum of the `terms` of the others of its row, of `count`.

    It is `endless` where one of the others is not finite.
    """
    infinite = ~np.isfinite(terms)
    finite = np.where(infinite, 0.0, terms)
    others = np.bincount(rows, infinite, count)[rows] - infinite
    return np.where(others > 0, endless, np.bincount(rows, finite, count)[rows] - finite)


def times(matrix: sp.csr_array, X: FloatArray) -> FloatArray:
    """The matrix times a point, or (T, rows) times each row of `X`.

    Transposing `X` is most of the work there: only columns that have entries are, and those in tiles.
    """
    if X.ndim == 1:
        return np.asarray(matrix @ X)
    has_entries = np.zeros(matrix.shape[1], dtype=bool)
    has_entries[matrix.indices] = True
    used = np.flatnonzero(has_entries)
    if 2 * used.size < matrix.shape[1]:
        indices = np.searchsorted(used, matrix.indices)
        matrix = sp.csr_array((matrix.data, indices, matrix.indptr), shape=(matrix.shape[0], used.size))
        X = X[:, used]
    transposed = np.empty((X.shape[1], len(X)))
    for k in range(0, len(transposed), TILE):
        transposed[k : k + TILE] = X[:, k : k + TILE].T
    return np.asarray((matrix @ transposed).T)
