"""Which columns and rows belong to one block sample alone, and which rows couple several.

Every block sample begins a component; samples that share a column are one. Then, from short rows to long
ones, a row that touches exactly one component gives it the columns nobody owns yet. What touches two
components in the end is a coupling row; columns nobody owns are shared.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dovetail.core.arrays import BoolArray, IntArray
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
    grown = True
    while grown:
        grown, later = False, []
        for i in waiting:
            columns = A.indices[A.indptr[i] : A.indptr[i + 1]]
            owners = owner[columns]
            touched = owners[owners != NOBODY]
            if touched.size == 0:
                later.append(i)
            elif np.all(touched == touched[0]) and touched.size < owners.size:
                owner[columns] = touched[0]
                grown = True
        waiting = np.array(later, dtype=np.int64)
    row_owner = np.full(problem.mip.rows, NOBODY, dtype=np.int64)
    for i in np.flatnonzero(lengths):
        owners = owner[A.indices[A.indptr[i] : A.indptr[i + 1]]]
        if owners[0] != NOBODY and np.all(owners == owners[0]):
            row_owner[i] = owners[0]
    return Components(count, owner, row_owner)


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
    size = first + mip.columns
    graph = coo_array((np.ones(samples.size), (samples, first + columns)), shape=(size, size))
    _, label = connected_components(graph, directed=False)
    used, component = np.unique(label[:first], return_inverse=True)
    owner = np.full(mip.columns, NOBODY, dtype=np.int64)
    owner[columns] = component[samples]
    return owner, int(used.size)
