"""Rows that limit the same sum, joined into one: an equation written as two inequalities is an equation.

    a'x >= 1,  2 a'x <= 2,  -a'x >= -3      becomes      a'x = 1

Of each group the row with the largest entries stays, since a tolerance forgives least in its units. It takes
the tightest sides of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import UNIT
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.sparse import row_of_entries

ROUNDED = 8.0 * UNIT
"""Relative: numbers that differ by less are the same number, multiplied and divided by a factor."""


def snapped(values: FloatArray) -> FloatArray:
    """Whole numbers that came out of a division by the unit of a row, as the whole numbers that they are."""
    whole = np.round(values)
    return np.where(np.abs(values - whole) <= ROUNDED * np.abs(whole), whole, values)


@dataclass(frozen=True, eq=False)
class JoinedRows:
    """The sides of all rows after joining, and which rows are part of another one now."""

    lower: FloatArray
    upper: FloatArray
    joined: BoolArray


def parallel_rows(A: sp.csr_array, lower: FloatArray, upper: FloatArray) -> JoinedRows | None:
    """Join rows of proportional entries; None where no two rows are parallel.

    Rows that contradict each other are left as they are: a solve says so of the rows themselves.
    """
    A = A if A.has_sorted_indices else A.sorted_indices()
    own = np.arange(A.shape[0])
    first = staying(A, shortest=2)  # rows with one entry are bounds
    low, high = _sides(A, lower, upper, first)
    first = np.where(low[first] > high[first], own, first)
    if np.array_equal(first, own):
        return None
    low, high = _sides(A, lower, upper, first)
    return JoinedRows(low, high, first != own)


def first_entries(A: sp.csr_array) -> FloatArray:
    """(rows,) the first entry of each; 1 of an empty row."""
    heads = np.ones(A.shape[0])
    full = np.diff(A.indptr) > 0
    heads[full] = A.data[A.indptr[:-1][full]]
    return heads


def staying(A: sp.csr_array, *, shortest: int) -> IntArray:
    """(rows,) for each row the one of its group that stays, which may be itself; shorter rows are alone."""
    sizes, rows = np.diff(A.indptr), row_of_entries(A)
    first = np.arange(A.shape[0])
    heads = first_entries(A)
    if np.any(heads == 0.0):
        return first
    scaled = A.data / heads[rows]
    # one number for each row: parallel rows have nearly the same; neighbours are compared entry by entry
    mark = np.random.default_rng(0).standard_normal(A.shape[1])
    key = np.bincount(rows, scaled * mark[A.indices], minlength=A.shape[0])
    size = np.bincount(rows, np.abs(scaled * mark[A.indices]), minlength=A.shape[0])
    order = np.lexsort((np.arange(key.size), key, sizes))
    order = order[sizes[order] >= shortest]
    near = np.abs(key[order[1:]] - key[order[:-1]]) <= ROUNDED * sizes[order[1:]] * size[order[1:]]
    near &= sizes[order[1:]] == sizes[order[:-1]]
    for here, there in zip(order[1:][near], order[:-1][near], strict=True):
        one, other = (slice(A.indptr[i], A.indptr[i + 1]) for i in (here, first[there]))
        if np.array_equal(A.indices[one], A.indices[other]) and np.all(
            np.abs(scaled[one] - scaled[other]) <= ROUNDED * np.abs(scaled[other])
        ):
            first[here] = first[there]
    largest = np.lexsort((-np.abs(heads), first))
    _, start = np.unique(first[largest], return_index=True)
    return largest[start][np.unique(first, return_inverse=True)[1]]


def _sides(
    A: sp.csr_array, lower: FloatArray, upper: FloatArray, first: IntArray
) -> tuple[FloatArray, FloatArray]:
    """(rows,) lower and upper: of the row that stays the tightest of its group."""
    more = np.flatnonzero(first != np.arange(A.shape[0]))
    heads = first_entries(A)
    ratio = heads[more] / heads[first[more]]
    ends = np.sort([lower[more] / ratio, upper[more] / ratio], axis=0)
    lower, upper = lower.copy(), upper.copy()
    np.maximum.at(lower, first[more], ends[0])
    np.minimum.at(upper, first[more], ends[1])
    meet = np.isfinite(lower) & np.isfinite(upper)
    meet[meet] = np.abs(upper[meet] - lower[meet]) <= ROUNDED * np.maximum(
        np.abs(lower[meet]), np.abs(upper[meet])
    )
    upper[meet] = lower[meet]
    return lower, upper
