"""Templates: components of a problem that are equal up to their data, found by signature, held as arrays.

Two components belong to one template if their samples belong to the same blocks, their columns have the same
roles, and their private rows and their places in coupling rows have the same pattern: numbers may differ.
Columns are put in one order for all (as networks read and write them, then by their place in the MIP; if that
makes too many templates, by their role, see `colours`), so that row i of every array here is component i.

The search finds equal blocks that the owner did not declare; for a million blocks it takes half a minute.
Declared templates (`Problem.add_template`) are used as they are, if the blocks are complete: every network
reads and writes families of one template, every column and private row of a block is tied to one of its
networks, and columns outside the templates have one value. All other problems are searched for signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray, columns_of_one
from dovetail.core.family_arrays import FamilyArrays, RowArrays
from dovetail.core.problem import Problem
from dovetail.core.stated_program import CouplingRows, HostRows, PrivateRows, column_sums
from dovetail.core.template import FamilyColumns, Place, Template, column_of, entries_of, places_of
from dovetail.structure.colours import colours
from dovetail.structure.components import NOBODY, Components, CouplingSides

FIXED = -1
"""Stands for a local column if an input is a number, which may differ between components."""
FEW = 2
"""Largest number of templates, mostly one."""
Networks = list[tuple[int, tuple[FamilyColumns, FamilyColumns]]]
"""Numbers of blocks, and the families that they read and write."""


@dataclass(frozen=True, eq=False)
class Listed:
    """Columns of blocks, listed one by one."""

    table: IntArray
    """(N, c)."""

    @property
    def shape(self) -> tuple[int, int]:
        """(N, c)."""
        return self.table.shape[0], self.table.shape[1]

    def column(self, j: int, first: int, last: int) -> IntArray:
        """Column `j` of the blocks from `first` to `last` (exclusive)."""
        return self.table[first:last, j]


@dataclass(frozen=True, eq=False)
class Strided:
    """Columns at equal distances: column j of block i is `start[j] + i * step[j]`, as in families of a
    template."""

    count: int
    start: IntArray
    step: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """(N, c)."""
        return self.count, len(self.start)

    @cached_property
    def table(self) -> IntArray:
        """(N, c) all columns, one by one."""
        return np.asarray(self.start + np.arange(self.count)[:, None] * self.step)

    def column(self, j: int, first: int, last: int) -> slice:
        """The values of a column in some blocks: a view of a point."""
        start, step = int(self.start[j]), int(self.step[j])
        return slice(start + first * step, start + (last - 1) * step + 1, step)


Places = Listed | Strided
"""The places of the columns of N blocks, c each, among all columns of a problem."""


@dataclass(frozen=True, eq=False)
class TemplateNetwork:
    """One sample of a block in every component."""

    block: int
    """The sample's number in the problem."""
    inputs: IntArray
    """(d,) local columns; FIXED for fixed inputs."""
    data: FloatArray
    """(N, d) values of fixed inputs, 0 elsewhere."""
    outputs: IntArray
    """(q,) local columns."""
    classifies: bool


@dataclass(frozen=True, eq=False)
class Pattern:
    """Entries of rows at the same places in every component: (e,) rows and local columns, (N, e) numbers."""

    row: IntArray
    column: IntArray
    entry: FloatArray


@dataclass(frozen=True, eq=False)
class TemplateArrays:
    """N components that are equal up to their data; `cost` in minimisation form."""

    component: IntArray
    """(N,) numbers of the components."""
    places: Places
    """Places of the local columns among all columns."""
    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray
    """(c,)."""
    networks: tuple[TemplateNetwork, ...]
    private: Pattern
    row_lower: FloatArray
    """(N, r) limits of the private rows."""
    row_upper: FloatArray
    coupling: Pattern
    """Entries of coupling rows, by row number of the problem."""

    @property
    def count(self) -> int:
        """Number of components."""
        return self.places.shape[0]

    @property
    def columns(self) -> IntArray:
        """(N, c) columns of the problem."""
        return self.places.table


@dataclass(frozen=True, eq=False)
class Templates:
    """A problem of templates in the form for methods that price blocks."""

    arrays: tuple[TemplateArrays, ...]
    """The templates, the largest first."""
    sides: CouplingSides
    """Limits of the shared rows, less the use of fixed columns."""
    as_components: bool
    """Whether blocks and coupling rows are those that `components` finds in the program."""

    @property
    def count(self) -> int:
        """Number of all blocks."""
        return sum(template.count for template in self.arrays)


def found_templates(problem: Problem, parts: Components) -> Templates | None:
    """The components of a problem as templates; None if a column outside them can move."""
    mip, shared = problem.mip, parts.shared
    if np.any(mip.lower[shared] != mip.upper[shared]):
        return None
    rows = np.flatnonzero(~parts.private_rows)
    used = np.asarray(mip.A @ np.where(shared, mip.lower, 0.0))[rows]
    sides = CouplingSides.of(rows, mip.row_lower[rows] - used, mip.row_upper[rows] - used)
    return Templates(tuple(templates(problem, parts)), sides, as_components=True)


def templates(problem: Problem, parts: Components) -> list[TemplateArrays]:
    """All templates, the largest first; each component is in exactly one."""
    reading = _OrderedArrays(problem, parts, by_colour=False)
    groups = reading.groups()
    if len(groups) > FEW:
        coloured = _OrderedArrays(problem, parts, by_colour=True)
        again = coloured.groups()
        if len(again) < len(groups):
            reading, groups = coloured, again
    return sorted((reading.template(group) for group in groups), key=lambda template: -template.count)


class _OrderedArrays:
    """The problem's arrays in the order of components."""

    def __init__(self, problem: Problem, parts: Components, *, by_colour: bool) -> None:
        self._problem, self._parts = problem, parts
        self._samples()
        self._order_columns(np.zeros(problem.mip.n_columns, dtype=np.int64))
        rows = np.zeros(problem.mip.n_rows, dtype=np.int64)
        if by_colour:
            tied = np.concatenate([problem.inputs, problem.outputs])
            seed = np.zeros(problem.mip.n_columns, dtype=np.int64)
            seed[tied] = 1 + self.local[tied]
            columns, rows = colours(problem, parts, seed)
            self._order_columns(columns)
        self._order_rows(rows)

    def groups(self) -> list[IntArray]:
        """Components of one template each."""
        return [members for same in self.alike() for members in self.split(same)]

    def _samples(self) -> None:
        """(component, block, sample) of every sample, by component, in the order of the problem."""
        owner, where = self._parts.owner, []
        for number, block in enumerate(self._problem.blocks):
            mine = owner[block.outputs[:, 0]]
            where.append(np.stack([mine, np.full(block.samples, number), np.arange(block.samples)], axis=1))
        table = np.concatenate(where)
        self.samples = table[np.argsort(table[:, 0], kind="stable")]
        self.first_sample = np.searchsorted(self.samples[:, 0], np.arange(self._parts.count + 1))

    def _order_columns(self, colour: IntArray) -> None:
        """Columns by component; within one in the order of networks, then by index."""
        owner = self._parts.owner
        last = sum(b.inputs.size + b.outputs.size for b in self._problem.blocks)
        place = np.full(len(owner), last)
        tied = [np.concatenate([b.inputs, b.outputs], axis=1).ravel() for b in self._problem.blocks]
        named = np.concatenate(tied)
        np.minimum.at(place, named, np.arange(named.size))
        self.columns = np.lexsort((np.arange(len(owner)), colour, place, owner))
        self.first_column = np.searchsorted(owner[self.columns], np.arange(self._parts.count + 1))
        self.local = np.full(len(owner), FIXED)
        sizes = np.diff(self.first_column)
        owned = self.columns[self.first_column[0] :]
        self.local[owned] = np.arange(len(owned)) - np.repeat(
            self.first_column[:-1] - self.first_column[0], sizes
        )

    def _order_rows(self, colour: IntArray) -> None:
        """Private rows and entries of coupling rows, by component; entries by local column."""
        parts, A = self._parts, self._problem.mip.A
        self.rows = np.lexsort((np.arange(len(colour)), colour, parts.row_owner))
        self.first_row = np.searchsorted(parts.row_owner[self.rows], np.arange(parts.count + 1))
        private = sp.csr_array(A[self.rows[self.first_row[0] :]])
        row = np.repeat(np.arange(private.shape[0]), np.diff(private.indptr))
        order = np.lexsort((self.local[private.indices], row))
        self.private = sp.csr_array(
            (private.data[order], private.indices[order], private.indptr), private.shape
        )
        shared = np.flatnonzero(parts.row_owner == NOBODY)
        open_part = sp.coo_array(A[shared])
        of = parts.owner[open_part.coords[1]]
        order = np.lexsort((shared[open_part.coords[0]], self.local[open_part.coords[1]], of))
        order = order[of[order] != NOBODY]
        self.coupling = (
            shared[open_part.coords[0]][order], self.local[open_part.coords[1]][order], open_part.data[order],
        )  # fmt: skip
        self.first_coupling = np.searchsorted(of[order], np.arange(parts.count + 1))

    def alike(self) -> list[IntArray]:
        """Components with equal numbers of everything."""
        first = self.first_row - self.first_row[0]
        entries = np.diff(self.private.indptr[first])
        sizes = [
            np.diff(a) for a in (self.first_sample, self.first_column, self.first_row, self.first_coupling)
        ]
        return _groups(np.stack([*sizes, entries], axis=1))

    def split(self, members: IntArray) -> list[IntArray]:
        """Groups of components with equal patterns."""
        blocks = self.samples[_spans(self.first_sample, members), 1]
        inputs, outputs = self._network_columns(members) if np.all(blocks == blocks[0]) else (None, None)
        columns = self.columns[_spans(self.first_column, members)]
        rows, where, _ = self._private_entries(members)
        coupled = _spans(self.first_coupling, members)
        marks = [blocks, self._problem.mip.integer[columns], self._row_kinds(members), rows, where]
        marks += [self.coupling[0][coupled], self.coupling[1][coupled]]
        if inputs is not None and outputs is not None:
            return [members[group] for group in _groups(np.concatenate([*marks, *inputs, *outputs], axis=1))]
        different = [members[group] for group in _groups(blocks)]
        return [part for group in different for part in self.split(group)]

    def template(self, members: IntArray) -> TemplateArrays:
        """The template of equal components."""
        mip = self._problem.mip
        columns = self.columns[_spans(self.first_column, members)]
        rows = self.rows[_spans(self.first_row, members)]
        at, where, entry = self._private_entries(members)
        coupled = _spans(self.first_coupling, members)
        coupling = Pattern(
            self.coupling[0][coupled[0]], self.coupling[1][coupled[0]], self.coupling[2][coupled]
        )
        return TemplateArrays(
            members,
            Listed(columns), mip.sign * mip.cost[columns], mip.lower[columns], mip.upper[columns],
            mip.integer[columns[0]], self._networks(members), Pattern(at[0], where[0], entry),
            mip.row_lower[rows], mip.row_upper[rows], coupling,
        )  # fmt: skip

    def _network_columns(self, members: IntArray) -> tuple[list[IntArray], list[IntArray]]:
        """Local inputs (N, d) and outputs (N, q) of each sample of components with the same blocks."""
        samples = self.samples[_spans(self.first_sample, members)]
        inputs, outputs = [], []
        for number in range(samples.shape[1]):
            block = self._problem.blocks[int(samples[0, number, 1])]
            inputs.append(self.local[block.inputs[samples[:, number, 2]]])
            outputs.append(self.local[block.outputs[samples[:, number, 2]]])
        return inputs, outputs

    def _networks(self, members: IntArray) -> tuple[TemplateNetwork, ...]:
        samples = self.samples[_spans(self.first_sample, members)]
        inputs, outputs = self._network_columns(members)
        networks = []
        for number, (reads, writes) in enumerate(zip(inputs, outputs, strict=True)):
            which = int(samples[0, number, 1])
            block = self._problem.blocks[which]
            host = block.inputs[samples[:, number, 2]]
            data = np.where(reads == FIXED, self._problem.mip.lower[host], 0.0)
            networks.append(TemplateNetwork(which, reads[0], data, writes[0], block.classifies))
        return tuple(networks)

    def _private_entries(self, members: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """(N, e) local rows, local columns and numbers."""
        first = self.first_row - self.first_row[0]
        span = _spans(self.private.indptr[first], members)
        row = np.repeat(np.arange(self.private.shape[0]), np.diff(self.private.indptr))
        return (
            row[span] - first[members][:, None],
            self.local[self.private.indices[span]],
            self.private.data[span],
        )

    def _row_kinds(self, members: IntArray) -> IntArray:
        """(N, r) which sides a row has: two that are equal, above, below."""
        rows, mip = self.rows[_spans(self.first_row, members)], self._problem.mip
        below, above = mip.row_lower[rows], mip.row_upper[rows]
        return np.asarray(np.isfinite(below) + 2 * np.isfinite(above) + 4 * (below == above))


def _spans(first: IntArray, members: IntArray) -> IntArray:
    """(N, k) consecutive numbers from first[i] on, for components with equally many."""
    size = int(first[members[0] + 1] - first[members[0]])
    return np.asarray(first[members][:, None] + np.arange(size))


def _groups(marks: IntArray) -> list[IntArray]:
    """Groups of equal rows."""
    if len(marks) == 0 or bool(np.all(marks == marks[0])):
        return [np.arange(len(marks))]  # the most frequent case, a hundred times faster than sorting
    _, kind = np.unique(marks, axis=0, return_inverse=True)
    kind = kind.ravel()
    order = np.argsort(kind, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(kind[order])) + 1)


def stated_templates(problem: Problem) -> Templates | None:
    """Templates as the user stated them; None if blocks have to be found."""
    program = problem.stated
    host = program.host
    if not program.waiting or (host is not None and np.any(host.lower != host.upper)):
        return None
    first = 0 if host is None else host.n_columns
    if any(column >= first for t in program.waiting for row in t.coupling for column in row.host):
        return None  # a column of another template
    networks = _networks(problem)
    if networks is None or len(networks) < len(program.waiting):
        return None
    bodies = [_TemplateBody(problem, template, networks[id(template)]) for template in program.waiting]
    if not all(body.connected for body in bodies):
        return None
    order = sorted(bodies, key=lambda body: body.networks[0][0])  # in the numbering of `components`
    begin = np.cumsum([0, *(body.template.count for body in order)])
    numbers = {id(body): int(at) for body, at in zip(order, begin[:-1], strict=True)}
    arrays = [body.arrays(numbers[id(body)]) for body in bodies]
    sides = _coupling(problem, {id(body.template): body for body in bodies})
    by_size = tuple(sorted(arrays, key=lambda one: -one.count))
    return Templates(by_size, sides, all(body.one_component for body in bodies))


def _networks(problem: Problem) -> dict[int, Networks] | None:
    """The networks of each template, by its identity; None if a network has other columns than whole
    families."""
    found: dict[int, Networks] = {}
    for number, block in enumerate(problem.blocks):
        families = problem.families_of(block)
        if families is None or families[0].template not in problem.stated.waiting:
            return None
        found.setdefault(id(families[0].template), []).append((number, families))
    return found


def _coupling(problem: Problem, bodies: dict[int, _TemplateBody]) -> CouplingSides:
    """Coupling rows, less the use of fixed columns."""
    program, first = problem.stated, 0
    numbers, lower, upper = [np.empty(0, dtype=np.int64)], [np.empty(0)], [np.empty(0)]
    own = np.empty(0) if program.host is None else program.host.lower
    for part in program.rows:
        begin, first = first, first + part.size
        if isinstance(part, PrivateRows):
            continue
        mine = np.arange(begin, first)
        used = part.activity(own) if isinstance(part, HostRows) else np.zeros(part.size)
        if isinstance(part, CouplingRows):
            used = bodies[id(part.template)].fixed_use(part.row, own)
        numbers.append(mine)
        lower.append(np.broadcast_to(part.sides[0], (1, part.size)).ravel() - used)
        upper.append(np.broadcast_to(part.sides[1], (1, part.size)).ravel() - used)
    return CouplingSides.of(np.concatenate(numbers), np.concatenate(lower), np.concatenate(upper))


class _TemplateBody:
    """One template: its local columns, its private rows, and their connections."""

    def __init__(self, problem: Problem, template: Template, networks: Networks) -> None:
        self._problem, self.template, self.networks = problem, template, networks
        self._private = [
            (row, number, entries_of(template, row, number))
            for row in template.rows
            for number in range(row.width)
        ]
        in_rows = {place for _, _, entries in self._private for place in entries}
        outputs = {place for _, (_, out) in networks for place in places_of(out)}
        self._data = {
            (name, k)
            for name, family in template.families.items()
            for k in range(family.width)
            if (name, k) not in in_rows | outputs and _fixed(family, k)
        }
        """Columns with one value in each block that only networks and coupling rows use."""
        self._local = {place: number for number, place in enumerate(self._columns())}

    def _columns(self) -> Iterator[Place]:
        """Local columns: in the order of networks, then family by family."""
        seen = dict.fromkeys(
            place for _, (into, out) in self.networks for place in (*places_of(into), *places_of(out))
        )
        everything = (
            (name, k) for name, family in self.template.families.items() for k in range(family.width)
        )
        yield from (place for place in dict.fromkeys((*seen, *everything)) if place not in self._data)

    def _seeds(self) -> list[set[Place]]:
        """Groups of network columns; networks that share a column that can move are one group."""
        seeds: list[set[Place]] = []
        outputs = {place for _, (_, out) in self.networks for place in places_of(out)}
        for _, (into, out) in self.networks:
            mine = {place for place in (*places_of(into), *places_of(out)) if place in self._local}
            firm = {p for p in mine if p in outputs or not _fixed(self.template.families[p[0]], p[1], np.any)}
            for other in [seed for seed in seeds if seed & firm]:
                mine |= other
                seeds.remove(other)
            seeds.append(mine)
        return seeds

    @property
    def one_component(self) -> bool:
        """Whether the networks of a block are connected by columns alone, by the same columns in all blocks,
        and no coupling row belongs to one block only."""
        entries = [numbers for _, _, mine in self._private for numbers in mine.values()]
        if len(self._seeds()) > 1 or not all(np.all(numbers) for numbers in entries):
            return False
        for _, mine in self._coupling_rows():
            if self.template.count > 1 and any(n.size == 1 and n[0] != 0.0 for n in mine.values()):
                continue  # the number belongs to all blocks
            touched = np.zeros(self.template.count, dtype=bool)
            for numbers in mine.values():
                touched |= numbers != 0.0
            if np.count_nonzero(touched) == 1:
                return False
        return True

    @property
    def connected(self) -> bool:
        """Whether rows connect all columns and networks of a block, and each row is of one kind."""
        known, *apart = self._seeds()
        waiting = [set(entries) for _, _, entries in self._private]
        if not all(waiting) or not all(_one_kind(row, k) for row, k, _ in self._private):
            return False
        grown = True
        while grown:
            touched = [row for row in waiting if row & known]
            joined = [seed for seed in apart if any(row & seed for row in touched)]
            for more in (*touched, *joined):
                known |= more
            waiting = [row for row in waiting if row not in touched]
            apart = [seed for seed in apart if seed not in joined]
            grown = bool(touched)
        return not waiting and not apart and set(self._local) <= known

    def fixed_use(self, row: RowArrays, own: FloatArray) -> FloatArray:
        """(width,) the use of a coupling row by fixed columns and by data."""
        used = np.zeros(row.width)
        for column, entry in row.host.items():
            used += entry.ravel() * own[column]
        for number in range(row.width):
            for (name, k), entry in entries_of(self.template, row, number).items():
                if (name, k) in self._data:
                    values = entry * column_of(self.template.families[name].lower, k)
                    used[number] += column_sums(np.broadcast_to(values, self.template.count)[:, None])[0]
        return used

    def arrays(self, first_component: int) -> TemplateArrays:
        """The arrays of the template."""
        template, places = self.template, list(self._local)
        families = [template.families[name] for name, _ in places]
        return TemplateArrays(
            first_component + np.arange(template.count),
            self._places(places),
            self._spread(places, "cost", self._problem.stated.sign),
            self._spread(places, "lower"),
            self._spread(places, "upper"),
            np.array([family.integer for family in families]),
            tuple(self._network(number, *families) for number, families in self.networks),
            self._pattern([(i, entries) for i, (_, _, entries) in enumerate(self._private)]),
            *self._row_sides(),
            self._pattern(list(self._coupling_rows())),
        )

    def _row_sides(self) -> tuple[FloatArray, FloatArray]:
        """Limits of private rows; one array for equations given as one."""
        lower = self._side_by_side([column_of(row.lower, k) for row, k, _ in self._private])
        if all(_one_array(row.lower, row.upper) for row, _, _ in self._private):
            return lower, lower
        return lower, self._side_by_side([column_of(row.upper, k) for row, k, _ in self._private])

    def _places(self, places: list[Place]) -> Strided:
        """Places of local columns among all columns."""
        template = self.template
        width = np.array([template.families[name].width for name, _ in places])
        first = np.array([template.first_column + template.families[name].first + k for name, k in places])
        return Strided(template.count, first, width)

    def _spread(self, places: list[Place], part: str, sign: float = 1.0) -> FloatArray:
        families = self.template.families
        return self._side_by_side([sign * column_of(getattr(families[name], part), k) for name, k in places])

    def _network(self, number: int, into: FamilyColumns, out: FamilyColumns) -> TemplateNetwork:
        reads = places_of(into)
        local = np.array([self._local.get(place, FIXED) for place in reads])
        data = self._side_by_side(
            [
                column_of(self.template.families[name].lower, k) if (name, k) in self._data else np.zeros(1)
                for name, k in reads
            ]
        )
        outputs = np.array([self._local[place] for place in places_of(out)])
        return TemplateNetwork(number, local, data, outputs, self._problem.blocks[number].classifies)

    def _coupling_rows(self) -> Iterator[tuple[int, dict[Place, FloatArray]]]:
        """Row numbers and entries of coupling rows for columns that can move."""
        first = 0
        for part in self._problem.stated.rows:
            if isinstance(part, CouplingRows) and part.template is self.template:
                for number in range(part.row.width):
                    entries = entries_of(self.template, part.row, number)
                    yield first + number, {p: e for p, e in entries.items() if p not in self._data}
            first += part.size

    def _pattern(self, rows: list[tuple[int, dict[Place, FloatArray]]]) -> Pattern:
        """Entries sorted by row, then by local column."""
        entries = [
            (row, self._local[place], numbers)
            for row, mine in rows
            for place, numbers in sorted(mine.items(), key=lambda item: self._local[item[0]])
        ]
        row, column = (np.array([entry[k] for entry in entries], dtype=np.int64) for k in (0, 1))
        return Pattern(row, column, self._side_by_side([numbers for _, _, numbers in entries]))

    def _side_by_side(self, columns: list[FloatArray]) -> FloatArray:
        """(N, k) numbers of columns side by side, the same for all blocks or one for each; a view if
        possible."""
        shape = (self.template.count, len(columns))
        if all(len(column) == 1 for column in columns):
            return np.broadcast_to(np.array([float(column[0]) for column in columns]), shape)
        one = columns_of_one(columns)
        if one is not None and one.shape == shape:
            return one
        beside = np.empty(shape, order="F")  # all other methods work with columns
        for k, column in enumerate(columns):
            beside[:, k] = column
        return beside


def _fixed(family: FamilyArrays, k: int, where: Callable[[BoolArray], object] = np.all) -> bool:
    """Whether a column has a single value in each block, or with `np.any` in one of them."""
    return bool(where(column_of(family.lower, k) == column_of(family.upper, k)))


def _one_kind(row: RowArrays, k: int) -> bool:
    """Whether a row is an equation in all blocks, or in none."""
    if _one_array(row.lower, row.upper):
        return True
    equal = column_of(row.lower, k) == column_of(row.upper, k)
    return bool(np.all(equal)) or not np.any(equal)


def _one_array(one: FloatArray, other: FloatArray) -> bool:
    """Whether both are the same array, so that its numbers need no comparison."""
    return bool(one.__array_interface__ == other.__array_interface__)
