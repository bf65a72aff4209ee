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
from dovetail.core.sparse import joined_ranges

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
        above, below = self.coupling_sides(mip)
        G = sp.csr_array(sp.vstack([mip.A[above], -mip.A[below]], format="csr"))
        return G, np.concatenate([mip.row_upper[above], -mip.row_lower[below]])

    def coupling_sides(self, mip: Mip) -> tuple[IntArray, IntArray]:
        """Which rows that are nobody's have a limit above, and which below."""
        open_rows = self.row_owner == NOBODY
        above = np.flatnonzero(open_rows & np.isfinite(mip.row_upper))
        return above, np.flatnonzero(open_rows & np.isfinite(mip.row_lower))

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
    filled = np.flatnonzero(lengths)
    order = filled[np.argsort(lengths[filled], kind="stable")]
    groups = np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1) if order.size else []
    _grow(owner, A, groups)
    row_owner = np.full(problem.mip.n_rows, NOBODY, dtype=np.int64)
    if filled.size:
        owners, first = owner[A.indices], A.indptr[:-1][filled]
        least, most = np.minimum.reduceat(owners, first), np.maximum.reduceat(owners, first)
        row_owner[filled] = np.where(least == most, least, NOBODY)
    return Components(count, owner, row_owner)


def _grow(owner: IntArray, A: sp.csr_array, groups: list[IntArray]) -> None:
    """Give owners, in place, the columns that rows of one component add; a group has rows of one length.

    Rows of which nobody owns a column yet wait for the next pass: there is one while something is added.
    """
    claims = np.zeros(owner.size, dtype=np.int64)
    grown = True
    while grown:
        grown, later = False, []
        for rows in groups:
            length = A.indptr[rows[0] + 1] - A.indptr[rows[0]]
            columns = A.indices[joined_ranges(A.indptr[rows], A.indptr[rows + 1])].reshape(-1, length)
            added, untouched = _grow_by(owner, columns, claims)
            grown |= added
            later.append(rows[untouched])
        groups = [rows for rows in later if rows.size]


def _grow_by(owner: IntArray, columns: IntArray, claims: IntArray) -> tuple[bool, BoolArray]:
    """What rows with these (k, length) columns add, as if one came after the other.

    Whether they add anything, and which rows have to wait. Order matters only to rows that would take the
    same column: those are gone through one by one, the others at once. `claims` is room to count in, all 0.
    """
    owners = owner[columns]
    free = owners == NOBODY
    most = owners.max(axis=1)
    untouched = most == NOBODY
    one = free.any(axis=1) & (np.where(free, most[:, None], owners).min(axis=1) == most) & ~untouched
    free[~(one | untouched)] = False
    wanted = columns[free]
    np.add.at(claims, wanted, 1)
    contested = np.zeros(columns.shape, dtype=bool)
    contested[free] = claims[wanted] > 1
    claims[wanted] = 0
    in_turn = contested.any(axis=1)
    at_once = one & ~in_turn
    owner[columns[at_once]] = most[at_once, None]
    added, untouched[in_turn] = _one_by_one(owner, columns[in_turn])
    return added or bool(at_once.any()), untouched


def _one_by_one(owner: IntArray, columns: IntArray) -> tuple[bool, list[bool]]:
    """The same, in the order of the rows; in a plain dictionary: most rows have two or three entries."""
    used = np.unique(columns)
    owned = dict(zip(used.tolist(), owner[used].tolist(), strict=True))
    added, untouched = False, []
    for mine in columns.tolist():
        owners = {owned[j] for j in mine}
        touched = owners - {NOBODY}
        untouched.append(not touched)
        if len(touched) == 1 and len(owners) == 2:
            owned.update(dict.fromkeys(mine, *touched))
            added = True
    owner[used] = [owned[j] for j in used.tolist()]
    return added, untouched


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
    movable[problem.outputs] = True  # every output has an owner, even a fixed one
    kept = movable[columns]
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
