"""Sides of rows that other rows imply: the sum of two constraints says nothing new.

    a'x <= 1,  b'x <= 2,  (a + b)'x <= 4        the last row is left out

A side is left out where it is a sum of other sides with weights of at least 0; non-negative least squares
finds the weights. Only rows whose columns all stand in other rows within them are looked at. A side that is
left out is not used to leave out another one.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import HAIR
from dovetail.core.sparse import row_of_entries

MOST_PAIRS = 1_000_000
"""Pairs of entries in one column: beyond that, comparing rows takes longer than the first descent (0.1 s)."""
SAME = 1e-12
"""Relative: a sum that misses a row by less is the row, for rounding."""


def implied_sides(A: sp.csr_array, lower: FloatArray, upper: FloatArray) -> tuple[BoolArray, BoolArray]:
    """(rows,) which lower and which upper sides other rows imply; of an equation both or none."""
    ends = np.stack([-lower, upper])  # -a'x <= -lower, a'x <= upper
    gone = np.zeros(ends.shape, dtype=bool)
    for i, within in _candidates(A):
        columns = A.indices[A.indptr[i] : A.indptr[i + 1]]
        rows = A[within][:, columns].toarray()
        others = np.concatenate([-rows, rows]), ends[:, within].ravel()
        entries = A.data[A.indptr[i] : A.indptr[i + 1]]
        implied = [_implied(others, row, ends[k, i]) for k, row in enumerate((-entries, entries))]
        if ends[0, i] == -ends[1, i] and not all(implied):
            continue
        gone[:, i] = implied
        ends[implied, i] = math.inf
    return gone[0], gone[1]


def _implied(others: tuple[FloatArray, FloatArray], row: FloatArray, end: float) -> bool:
    """Whether `row` @ x <= `end` is a sum of rows with finite ends."""
    finite = np.isfinite(others[1])
    if not math.isfinite(end) or not finite.any():
        return False
    rows, ends = others[0][finite], others[1][finite]
    try:
        weights, missed = nnls(rows.T, row)
    except RuntimeError:  # no end within its iterations
        return False
    return bool(missed <= SAME * np.linalg.norm(row) and weights @ ends <= end + HAIR * max(1.0, abs(end)))


def _candidates(A: sp.csr_array) -> list[tuple[int, IntArray]]:
    """Rows, the longest first, each with the other rows that have no column outside it and that together
    have all of its columns."""
    if (np.bincount(A.indices, minlength=A.shape[1]).astype(float) ** 2).sum() > MOST_PAIRS:
        return []
    sizes = np.diff(A.indptr)
    pattern = sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    common = sp.csr_array(pattern @ pattern.T)
    outer, inner = row_of_entries(common), common.indices
    within = (common.data == sizes[inner]) & (inner != outer)
    outer, inner = outer[within], inner[within]
    covered = (sp.csr_array((np.ones(outer.size), (outer, inner)), shape=common.shape) @ pattern).sign()
    whole = np.asarray(covered.sum(axis=1)).ravel() == sizes
    found = np.flatnonzero(whole & (np.bincount(outer, minlength=A.shape[0]) > 1))
    return [(int(i), inner[outer == i]) for i in found[np.argsort(-sizes[found], kind="stable")]]
