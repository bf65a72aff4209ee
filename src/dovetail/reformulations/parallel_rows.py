"""Rows that limit the same sum, joined into one: an equation written as two inequalities is an equation.

    a'x >= 1,  2 a'x <= 2,  -a'x >= -3      becomes      a'x = 1

The first row of each group keeps its place and its units and takes the tightest sides of all. The others stay
in their places without entries, and limit nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import UNIT
from dovetail.core.amounts import several
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import Mip
from dovetail.core.sparse import row_of_entries
from dovetail.reformulations.reformulated import Reformulated

ROUNDED = 8.0 * UNIT
"""Relative: sides that differ by less are the same number, divided by a factor of its row."""


@dataclass(frozen=True)
class ParallelRows:
    """Every group of rows with proportional entries as one row."""

    name = "parallel rows"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with one row for each group; None where no two rows are parallel."""
        mip = given.problem.mip
        first = _first_of_group(mip.A)
        lower, upper = _sides(mip, first)
        first = np.where(lower[first] > upper[first], np.arange(mip.n_rows), first)  # rows that contradict
        more = np.flatnonzero(first != np.arange(mip.n_rows))
        if more.size == 0:
            return None
        host = _joined(mip, more, *_sides(mip, first))
        written = given.problem.derived(host, given.problem.blocks)
        return Reformulated(written, given, note=f"{several(more.size, 'row')} joined with parallel ones")


def _heads(A: sp.csr_array) -> FloatArray:
    """(rows,) the first entry of each; 1 of an empty row."""
    heads = np.ones(A.shape[0])
    full = np.diff(A.indptr) > 0
    heads[full] = A.data[A.indptr[:-1][full]]
    return heads


def _first_of_group(A: sp.csr_array) -> IntArray:
    """(rows,) for each row the first that is parallel to it, which may be itself."""
    A = A if A.has_sorted_indices else A.sorted_indices()
    sizes, rows = np.diff(A.indptr), row_of_entries(A)
    first = np.arange(A.shape[0])
    heads = _heads(A)
    if np.any(heads == 0.0):
        return first
    scaled = A.data / heads[rows]
    # one number for each row: parallel rows have the same; rows with the same are compared entry by entry
    mark = np.random.default_rng(0).standard_normal(A.shape[1])
    key = np.bincount(rows, scaled * mark[A.indices], minlength=A.shape[0])
    order = np.lexsort((np.arange(key.size), key, sizes))
    order = order[sizes[order] > 1]  # a row of one entry is a bound, which every method reads as one
    same = (key[order[1:]] == key[order[:-1]]) & (sizes[order[1:]] == sizes[order[:-1]])
    for here, there in zip(order[1:][same], order[:-1][same], strict=True):
        one, other = (slice(A.indptr[i], A.indptr[i + 1]) for i in (here, first[there]))
        if np.array_equal(A.indices[one], A.indices[other]) and np.array_equal(scaled[one], scaled[other]):
            first[here] = first[there]
    return first


def _sides(mip: Mip, first: IntArray) -> tuple[FloatArray, FloatArray]:
    """(rows,) lower and upper: of the first row of a group the tightest of all."""
    more = np.flatnonzero(first != np.arange(mip.n_rows))
    heads = _heads(mip.A if mip.A.has_sorted_indices else mip.A.sorted_indices())
    ratio = heads[more] / heads[first[more]]
    ends = np.sort([mip.row_lower[more] / ratio, mip.row_upper[more] / ratio], axis=0)
    lower, upper = mip.row_lower.copy(), mip.row_upper.copy()
    np.maximum.at(lower, first[more], ends[0])
    np.minimum.at(upper, first[more], ends[1])
    meet = np.isfinite(lower) & np.isfinite(upper)
    meet[meet] = np.abs(upper[meet] - lower[meet]) <= ROUNDED * np.maximum(
        np.abs(lower[meet]), np.abs(upper[meet])
    )
    upper[meet] = lower[meet]
    return lower, upper


def _joined(mip: Mip, more: IntArray, lower: FloatArray, upper: FloatArray) -> Mip:
    """The host with these sides, and nothing left in the rows that were joined with others."""
    lower[more], upper[more] = -np.inf, np.inf
    kept = np.ones(mip.n_rows)
    kept[more] = 0.0
    A = sp.csr_array(sp.diags_array(kept) @ mip.A)
    A.eliminate_zeros()
    return replace(mip, A=A, row_lower=lower, row_upper=upper)
