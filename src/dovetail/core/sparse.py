"""Places of the entries of a sparse matrix, and products with many points at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray

COLUMNS_AT_A_TIME = 64
"""Number of columns transposed at a time, so that they stay in the cache."""


def row_of_entries(matrix: sp.csr_array) -> IntArray:
    """The row of each stored entry, in the order of `matrix.data`."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def joined_ranges(first: IntArray, end: IntArray) -> IntArray:
    """The concatenated ranges first[i] to end[i] (exclusive)."""
    lengths = end - first
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(first - before, lengths))


def entries_of(matrix: sp.csr_array | sp.csc_array, i: int | np.integer[Any]) -> tuple[IntArray, FloatArray]:
    """Indices and values of one row of a csr array, or of one column of a csc array."""
    entries = slice(matrix.indptr[i], matrix.indptr[i + 1])
    return matrix.indices[entries], matrix.data[entries]


def sums_of_others(terms: FloatArray, rows: IntArray, count: int, endless: float = np.inf) -> FloatArray:
    """(entries,) for each entry of a matrix the sum of `terms` over the other entries of its row, of which
    there are `count`; infinite if one of the others is infinite (`endless`)."""
    infinite = ~np.isfinite(terms)
    finite = np.where(infinite, 0.0, terms)
    others = np.bincount(rows, infinite, count)[rows] - infinite
    return np.where(others > 0, endless, np.bincount(rows, finite, count)[rows] - finite)


def times(matrix: sp.csr_array, X: FloatArray) -> FloatArray:
    """The matrix times a point, or (T, rows) times each row of `X`. Most of the work is transposing `X`, so
    only columns with entries are transposed, in tiles."""
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
    for k in range(0, len(transposed), COLUMNS_AT_A_TIME):
        transposed[k : k + COLUMNS_AT_A_TIME] = X[:, k : k + COLUMNS_AT_A_TIME].T
    return np.asarray((matrix @ transposed).T)
