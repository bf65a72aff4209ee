"""Which columns and rows belong to one block sample alone, and which rows couple several.

Every block sample begins a component; samples that share a column are one. Then, from short rows to long
ones, a row that touches exactly one component gives it the columns nobody owns yet. What touches two
components in the end is a coupling row; columns nobody owns are shared.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem

NOBODY = -1


@dataclass(frozen=True, eq=False)
class Components:
    """The parts of a problem that only coupling rows tie together."""

    count: int
    owner: IntArray
    """Per column: the component it belongs to, or NOBODY."""
    row_owner: IntArray
    """Per row: the one component it touches, or NOBODY."""

    @property
    def shared(self) -> BoolArray:
        """Columns that belong to no component."""
        return np.asarray(self.owner == NOBODY)

    @property
    def private_rows(self) -> BoolArray:
        """Rows that touch one component and nothing else."""
        return np.asarray(self.row_owner != NOBODY)

    def coupling(self, mip: Mip) -> tuple[sp.csr_array, FloatArray]:
        """Rows of a program over these columns that are nobody's, as G z <= h: upper sides, then lower."""
        open_rows = self.row_owner == NOBODY
        above = np.flatnonzero(open_rows & np.isfinite(mip.row_upper))
        below = np.flatnonzero(open_rows & np.isfinite(mip.row_lower))
        G = sp.csr_array(sp.vstack([mip.A[above], -mip.A[below]], format="csr"))
        return G, np.concatenate([mip.row_upper[above], -mip.row_lower[below]])

    @property
    def members(self) -> list[IntArray]:
        """The columns of each component."""
        order = np.argsort(self.owner, kind="stable")
        ends = np.searchsorted(self.owner[order], np.arange(self.count + 1))
        return [order[a:b] for a, b in itertools.pairwise(ends)]


def components(problem: Problem) -> Components:
    """Sort the problem's columns and rows."""
    owner, count = _seeds(problem)
    A = problem.mip.A
    lengths = np.diff(A.indptr)
    waiting = np.argsort(lengths, kind="stable")
    owner = _grown(owner, A.indices, A.indptr, waiting)
    row_owner = np.full(problem.mip.n_rows, NOBODY, dtype=np.int64)
    filled = np.flatnonzero(lengths)
    if filled.size:
        owners, first = owner[A.indices], A.indptr[:-1][filled]
        least, most = np.minimum.reduceat(owners, first), np.maximum.reduceat(owners, first)
        row_owner[filled] = np.where(least == most, least, NOBODY)
    return Components(count, owner, row_owner)


def _grown(owner: IntArray, indices: IntArray, pointer: IntArray, waiting: IntArray) -> IntArray:
    """Owners with what rows of one component add; plain lists, since most rows have two or three entries."""
    owned, columns, ends, rows = owner.tolist(), indices.tolist(), pointer.tolist(), waiting.tolist()
    grown = True
    while grown:
        grown, later = False, []
        for i in rows:
            mine = columns[ends[i] : ends[i + 1]]
            owners = {owned[j] for j in mine}
            touched = owners - {NOBODY}
            if not touched:
                later.append(i)
            elif len(touched) == 1 and len(owners) == 2:
                (only,) = touched
                for j in mine:
                    owned[j] = only
                grown = True
        rows = later
    return np.array(owned, dtype=np.int64)


def _seeds(problem: Problem) -> tuple[IntArray, int]:
    """Block samples as components, joined where they share a column that can move."""
    mip = problem.mip
    movable = mip.lower < mip.upper
    sample, column, first = [], [], 0
    for block in problem.blocks:
        tied = np.concatenate([block.inputs, block.outputs], axis=1)
        sample.append(np.repeat(first + np.arange(block.samples), tied.shape[1]))
        column.append(tied.ravel())
        first += block.samples
    samples, columns = np.concatenate(sample), np.concatenate(column)
    kept = movable[columns]
    kept[np.isin(columns, problem.outputs)] = True  # every output has an owner, even a fixed one
    samples, columns = samples[kept], columns[kept]
    used, component = np.unique(_joined(samples, columns, first, mip.n_columns), return_inverse=True)
    owner = np.full(mip.n_columns, NOBODY, dtype=np.int64)
    owner[columns] = component[samples]
    return owner, int(used.size)


def _joined(samples: IntArray, columns: IntArray, count: int, width: int) -> IntArray:
    """(count,) for each sample the first one that it is tied to, through columns that both touch."""
    label = np.arange(count)
    while True:
        least = np.full(width, count)
        np.minimum.at(least, columns, label[samples])
        new = label.copy()
        np.minimum.at(new, samples, least[columns])
        new = new[new]  # a shortcut, so that a long chain takes few rounds
        if np.array_equal(new, label):
            return label
        label = new
