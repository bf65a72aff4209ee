"""What the inputs of a block are when nothing is done: the values that the rows give them.

A treatment is mostly stated as ``x - up + down = w``: with all else at 0 the input x is w. So is a distance,
``x - d <= w`` and ``x + d >= w``. The rows of an input that hold no other input and no output, and whose
other columns may be 0, limit it to an interval there; where that is a single value, it is known.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.problem import Problem
from dovetail.core.sparse import row_of_entries

NEAR = 1e-9
"""Relative: the two ends of an interval came by two divisions, and are then the same value."""


def untouched_inputs(problem: Problem, block: Block) -> FloatArray:
    """(n, d) values of a block's inputs when all other columns of their rows are 0; NaN where unknown."""
    mip = problem.mip
    tied = np.zeros(mip.n_columns, dtype=bool)
    tied[problem.inputs] = tied[problem.outputs] = True
    row, column, entry = row_of_entries(mip.A), mip.A.indices, mip.A.data
    in_the_way = tied[column] | (mip.lower[column] > 0.0) | (mip.upper[column] < 0.0)
    alone = np.bincount(row, in_the_way, mip.n_rows)[row] == 1.0
    mine = np.zeros(mip.n_columns, dtype=bool)
    mine[block.inputs] = True
    where = np.flatnonzero(alone & mine[column])
    low, high = _intervals(mip.row_lower[row[where]], mip.row_upper[row[where]], entry[where])
    least, most = np.full(mip.n_columns, -np.inf), np.full(mip.n_columns, np.inf)
    np.maximum.at(least, column[where], low)
    np.minimum.at(most, column[where], high)
    fixed = mip.lower == mip.upper
    least[fixed] = most[fixed] = mip.lower[fixed]
    known = np.isfinite(least) & (np.abs(most - least) <= NEAR * np.maximum(1.0, np.abs(least)))
    return np.where(known, least, np.nan)[block.inputs]


def _intervals(lower: FloatArray, upper: FloatArray, entry: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What rows with nothing else in them allow their one column."""
    ends = lower / entry, upper / entry
    return np.minimum(*ends), np.maximum(*ends)
