"""Colours of columns and rows: equal ones play the same part in components that are built alike.

A refinement of colours as for graphs (Weisfeiler and Leman): a row's colour is made of the colours and signs
of its entries, a column's of the rows it is in; templates need only a few rounds. Sums of mixed 64-bit
words, which do not depend on any order; two that are equal by chance cost a template, not the truth, since
patterns are compared afterwards.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.problem import Problem
from dovetail.structure.components import NOBODY, Components

TURNS = 3
"""Number of rounds: from a network's columns over a definition to moves and on to their own rows."""
ODD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, an odd number without a pattern."""
BITS = 28
"""Number of digits that count for a colour: the same number, found in other units, differs beyond them. With
16, 28 and 44 bits 47, 48 and 50 of 351 pairs of the zoo differ after the presolve."""


def colours(problem: Problem, parts: Components, seed: IntArray) -> tuple[IntArray, IntArray]:
    """(columns,) and (rows,) colours that begin with those of `seed`, (columns,)."""
    A = problem.mip.A
    by_column = sp.csc_array(A)
    column = mixed(seed.astype(np.uint64) + problem.mip.integer.astype(np.uint64) * ODD)
    numbers = np.arange(A.shape[0], dtype=np.uint64)
    mip = problem.mip
    kind = np.isfinite(mip.row_lower) + 2 * np.isfinite(mip.row_upper) + 4 * (mip.row_lower == mip.row_upper)
    start = np.where(parts.row_owner == NOBODY, mixed(numbers + np.uint64(8)), mixed(kind.astype(np.uint64)))
    row = start
    for _ in range(TURNS):
        row = np.where(parts.row_owner == NOBODY, start, start + sums(A, column, A.data > 0.0))
        column = mixed(column) + sums(by_column, mixed(row), by_column.data > 0.0)
    return column.view(np.int64), row.view(np.int64)


def sums(A: sp.csr_array | sp.csc_array, colour: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """For each row (or column of a csc array) the sum of the colours of its entries, distinguished by
    kind."""
    entries = mixed(colour[A.indices] + kind.astype(np.uint64) * ODD)
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(entries, dtype=np.uint64)])
    return np.asarray(total[A.indptr[1:]] - total[A.indptr[:-1]])


def of_numbers(values: FloatArray) -> np.ndarray:
    """Colours of numbers: equal for those that differ by rounding alone."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    rounded = np.ldexp(np.round(np.ldexp(mantissa, BITS)), exponent - BITS) + 0.0  # -0 is 0
    return mixed(np.where(np.isfinite(values), rounded, values).view(np.uint64))


def mixed(word: np.ndarray) -> np.ndarray:
    """Every bit of a word in every bit of the result, or nearly."""
    word = (word ^ (word >> np.uint64(31))) * ODD
    word = (word ^ (word >> np.uint64(29))) * ODD
    return np.asarray(word ^ (word >> np.uint64(32)))
