"""Which columns and rows belong to one block sample alone, and which rows couple several.

Every block sample begins a component; samples that share a column are one. Then, from short rows to long
ones, the columns without an owner in a row that touches exactly one component are assigned to this component.
Rows that touch two components in the end are coupling rows; columns without an owner are shared.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.core.sparse import joined_ranges

NOBODY = -1


@dataclass(frozen=True, eq=False)
class CouplingSides:
    """Rows that components share, side by side: sign times the host's row `row` is at most `limit`."""

    row: IntArray
    sign: FloatArray
    limit: FloatArray

    @classmethod
    def of(cls, rows: IntArray, lower: FloatArray, upper: FloatArray) -> CouplingSides:
        """The finite limits of constraints: all upper limits, then all lower limits."""
        above, below = np.isfinite(upper), np.isfinite(lower)
        sign = np.repeat([1.0, -1.0], [np.count_nonzero(above), np.count_nonzero(below)])
        limit = np.concatenate([upper[above], -lower[below]])
        return cls(np.concatenate([rows[above], rows[below]]), sign, limit)

    @property
    def count(self) -> int:
        """The number of sides."""
        return len(self.row)

    def matrix(self, mip: Mip) -> sp.csr_array:
        """G of G z <= limit."""
        rows = sp.csr_array(mip.A[self.row])
        rows.data = np.repeat(self.sign, np.diff(rows.indptr)) * rows.data
        return rows

    def row_prices(self, prices: FloatArray, rows: int) -> FloatArray:
        """(rows,) multipliers of all rows, for prices of the sides: negative on sides above."""
        found = np.zeros(rows)
        np.subtract.at(found, self.row, self.sign * prices)
        return found

    def apart(self, prices: FloatArray) -> FloatArray:
        """Prices with a zero on one of the two sides of each row: equal prices on both sides cancel."""
        above, below = np.flatnonzero(self.sign > 0.0), np.flatnonzero(self.sign < 0.0)
        _, one, other = np.intersect1d(self.row[above], self.row[below], return_indices=True)
        one, other, found = above[one], below[other], prices.copy()
        found[one] -= np.minimum(prices[one], prices[other])
        found[other] -= np.minimum(prices[one], prices[other])
        return found

    def side_prices(self, row_prices: FloatArray) -> FloatArray:
        """(sides,) the signs reversed."""
        return np.maximum(-self.sign * row_prices[self.row], 0.0)


@dataclass(frozen=True, eq=False)
class SampleComponent:
    """A component with one block sample in it."""

    number: int
    block: Block
    sample: int
    members: IntArray
    """Its columns."""
    rows: IntArray
    """The rows that touch no other component."""


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
        """Rows that touch one component and no other column."""
        return np.asarray(self.row_owner != NOBODY)

    @property
    def coupled(self) -> bool:
        """Whether there are several components, and rows that belong to none of them."""
        return self.count > 1 and not np.all(self.private_rows)

    @cached_property
    def members(self) -> list[IntArray]:
        """The columns of each component."""
        return _by_owner(self.owner, self.count)

    @cached_property
    def rows(self) -> list[IntArray]:
        """The private rows of each component."""
        return _by_owner(self.row_owner, self.count)

    def sides(self, mip: Mip) -> CouplingSides:
        """The sides of the rows of a program over these columns that belong to no component."""
        rows = np.flatnonzero(~self.private_rows)
        return CouplingSides.of(rows, mip.row_lower[rows], mip.row_upper[rows])

    def coupling(self, mip: Mip) -> tuple[sp.csr_array, FloatArray]:
        """The sides as G z <= h."""
        sides = self.sides(mip)
        return sides.matrix(mip), sides.limit

    def columns(self, problem: Problem) -> list[IntArray]:
        """Each component's columns: its own, and those at which its samples' inputs are fixed."""
        blocks = problem.blocks
        owners = [np.repeat(self.owner[block.outputs[:, 0]], block.inputs.shape[1]) for block in blocks]
        read = np.concatenate([block.inputs.ravel() for block in blocks])
        mine = _by_owner(np.concatenate(owners), self.count)
        return [np.union1d(own, read[which]) for own, which in zip(self.members, mine, strict=True)]

    def of_one_sample(self, problem: Problem) -> list[SampleComponent] | None:
        """All components, if each has exactly one sample of one block; otherwise None."""
        samples = [(block, i) for block in problem.blocks for i in range(block.samples)]
        owners = [int(self.owner[block.outputs[i][0]]) for block, i in samples]
        if sorted(owners) != list(range(self.count)):
            return None
        return [
            SampleComponent(number, block, i, self.members[number], self.rows[number])
            for (block, i), number in zip(samples, owners, strict=True)
        ]


def _by_owner(owner: IntArray, count: int) -> list[IntArray]:
    """The items of each of this number of owners."""
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.searchsorted(owner[order], np.arange(count + 1)))[1:-1]


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
    """Assign, in place, the columns that rows of one component add; a group has rows of one length.

    Rows whose columns all have no owner yet wait for the next pass; passes continue while columns are
    assigned.
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
    """The columns that rows with these (k, length) columns add, in sequence.

    Whether they add any column, and which rows have to wait. Order matters only to rows that would take the
    same column: those are processed one by one, the others at once. `claims` is a work array, all 0.
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
    """The same assignment, in the order of the rows, with a plain dictionary: most rows have two or three
    entries."""
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
    movable[problem.outputs] = True  # every output has an owner, even a fixed output
    kept = movable[columns]
    samples, columns = samples[kept], columns[kept]
    used, component = np.unique(
        _first_tied_sample(samples, columns, first, mip.n_columns), return_inverse=True
    )
    owner = np.full(mip.n_columns, NOBODY, dtype=np.int64)
    owner[columns] = component[samples]
    return owner, int(used.size)


def _first_tied_sample(samples: IntArray, columns: IntArray, count: int, width: int) -> IntArray:
    """(count,) for each sample the first sample that it is tied to, through columns that both touch."""
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


def component_problem(problem: Problem, columns: IntArray, rows: IntArray) -> Problem:
    """Some columns and rows, and the samples whose outputs are among them, in minimisation form."""
    mip = problem.mip.minimised()
    place = np.full(mip.n_columns, -1)
    place[columns] = np.arange(columns.size)
    own = replace(
        mip,
        cost=mip.cost[columns],
        A=mip.A[rows][:, columns],
        row_lower=mip.row_lower[rows],
        row_upper=mip.row_upper[rows],
        lower=mip.lower[columns],
        upper=mip.upper[columns],
        integer=mip.integer[columns],
        offset=0.0,
        names=None,
        row_names=None,
    )
    blocks = tuple(
        replace(block, inputs=place[block.inputs[mine]], outputs=place[block.outputs[mine]])
        for block in problem.blocks
        for mine in [np.flatnonzero(place[block.outputs[:, 0]] >= 0)]
        if mine.size
    )
    return problem.derived(own, blocks)


def alike(problem: Problem, parts: Components, most: int) -> list[tuple[IntArray, IntArray]] | None:
    """(members, columns) of each kind of component, and the rows of its first member; None: over `most`
    kinds.

    Columns are matched by their order in the problem: components that were written in different orders count
    as different, which only costs time.
    """
    kinds: dict[bytes, tuple[list[IntArray], IntArray]] = {}
    coupling = sp.csc_array(problem.mip.A[~parts.private_rows])
    networks = {block.name: map_of(block) for block in problem.blocks}
    for columns, rows in zip(parts.columns(problem), parts.rows, strict=True):
        own = component_problem(problem, columns, rows)
        key = _key(own, coupling[:, columns], networks)
        kinds.setdefault(key, ([], rows))[0].append(columns)
        if len(kinds) > most:
            return None
    return [(np.array(columns), rows) for columns, rows in kinds.values()]


def _key(own: Problem, coupling: sp.csc_array, networks: dict[str, bytes]) -> bytes:
    """All data that distinguish components: their problems, and their entries in coupling rows."""
    mip = own.mip
    parts = [array for matrix in (mip.A, coupling) for array in (matrix.indptr, matrix.indices, matrix.data)]
    parts += [mip.cost, mip.lower, mip.upper, mip.integer, mip.row_lower, mip.row_upper]
    parts += [array for block in own.blocks for array in (block.inputs, block.outputs)]
    return b"|".join([*(part.tobytes() for part in parts), *(networks[block.name] for block in own.blocks)])


def map_of(block: Block) -> bytes:
    """A key for the function that a predictor computes; for one that cannot be read, its identity."""
    about = block.description
    known = about.program_if_known(block.inputs.shape[1])
    kind = f"{block.classifies} {block.threshold}"
    if known is not None and known.arithmetic is not None:
        parts = (part for operation in known.operations for part in operation.parts())
        read = [p.encode() if isinstance(p, str) else f"{p.shape}".encode() + p.tobytes() for p in parts]
        return b"|".join([f"{kind} {known.arithmetic}".encode(), known.outputs.tobytes(), *read])
    trees = about.trees_if_known()
    return pickle.dumps((kind, id(block.predictor) if trees is None else trees))
