"""Templates that were stated as such, straight from the users' arrays: nothing is written out or looked for.

`templates.py` finds in a program what its owner knew and did not say; of a million blocks that takes half a
minute. Who has said it is taken at his word here, where the blocks are whole: every network goes through
families of one template, every column and private row of a block is tied to one of its networks, and columns
outside the templates have one value. Everything else is left to the search for signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, columns_of_one
from dovetail.core.block_rows import Place, column_of, entries_of, places_of
from dovetail.core.family_arrays import FamilyArrays, RowArrays
from dovetail.core.problem import Problem
from dovetail.core.row_part import CouplingRows, HostRows, PrivateRows, column_sums
from dovetail.core.template import FamilyColumns, Template
from dovetail.structure.components import CouplingSides
from dovetail.structure.templates import FIXED, Pattern, Strided, TemplateArrays, TemplateNetwork, Templates

Networks = list[tuple[int, tuple[FamilyColumns, FamilyColumns]]]
"""Numbers of blocks of the problem, and the families that they read and write."""


def stated_templates(problem: Problem) -> Templates | None:
    """None where the blocks have to be looked for."""
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
    bodies = [_Body(problem, template, networks[id(template)]) for template in program.waiting]
    if not all(body.connected for body in bodies):
        return None
    order = sorted(bodies, key=lambda body: body.networks[0][0])  # as `components` counts
    begin = np.cumsum([0, *(body.template.count for body in order)])
    numbers = {id(body): int(at) for body, at in zip(order, begin[:-1], strict=True)}
    arrays = [body.arrays(numbers[id(body)]) for body in bodies]
    sides = _coupling(problem, {id(body.template): body for body in bodies})
    by_size = tuple(sorted(arrays, key=lambda one: -one.count))
    return Templates(by_size, sides, all(body.one_component for body in bodies))


def _networks(problem: Problem) -> dict[int, Networks] | None:
    """Of each template, by its identity; None where some network has other columns than whole families."""
    found: dict[int, Networks] = {}
    for number, block in enumerate(problem.blocks):
        families = problem.families_of(block)
        if families is None or families[0].template not in problem.stated.waiting:
            return None
        found.setdefault(id(families[0].template), []).append((number, families))
    return found


def _coupling(problem: Problem, bodies: dict[int, _Body]) -> CouplingSides:
    """Rows that no block has for itself, less what fixed columns use."""
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


class _Body:
    """One template: its local columns, its private rows, and how they hang together."""

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
        """Columns that have one value in each block, and that only networks and coupling rows know."""
        self._local = {place: number for number, place in enumerate(self._columns())}

    def _columns(self) -> Iterator[Place]:
        """Local columns: as networks read and write them, then family by family."""
        seen = dict.fromkeys(
            place for _, (into, out) in self.networks for place in (*places_of(into), *places_of(out))
        )
        everything = (
            (name, k) for name, family in self.template.families.items() for k in range(family.width)
        )
        yield from (place for place in dict.fromkeys((*seen, *everything)) if place not in self._data)

    def _seeds(self) -> list[set[Place]]:
        """Columns of networks; those that share one which can move in every block are one."""
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
        """Whether the networks of a block hang together by columns alone, and by the same ones in all blocks;
        and no coupling row is of one block only."""
        entries = [numbers for _, _, mine in self._private for numbers in mine.values()]
        if len(self._seeds()) > 1 or not all(np.all(numbers) for numbers in entries):
            return False
        for _, mine in self._coupling_rows():
            if self.template.count > 1 and any(n.size == 1 and n[0] != 0.0 for n in mine.values()):
                continue  # all blocks have it
            touched = np.zeros(self.template.count, dtype=bool)
            for numbers in mine.values():
                touched |= numbers != 0.0
            if np.count_nonzero(touched) == 1:
                return False
        return True

    @property
    def connected(self) -> bool:
        """Whether rows tie all columns and all networks of a block together, and each row is of one kind."""
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
        """(width,) of a coupling row, by the host's columns and by data."""
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
        """All of it."""
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
        """Of private rows; one array where they were given as equations."""
        lower = self._beside([column_of(row.lower, k) for row, k, _ in self._private])
        if all(_one_array(row.lower, row.upper) for row, _, _ in self._private):
            return lower, lower
        return lower, self._beside([column_of(row.upper, k) for row, k, _ in self._private])

    def _places(self, places: list[Place]) -> Strided:
        """Where local columns are among all."""
        template = self.template
        width = np.array([template.families[name].width for name, _ in places])
        first = np.array([template.first_column + template.families[name].first + k for name, k in places])
        return Strided(template.count, first, width)

    def _spread(self, places: list[Place], part: str, sign: float = 1.0) -> FloatArray:
        families = self.template.families
        return self._beside([sign * column_of(getattr(families[name], part), k) for name, k in places])

    def _network(self, number: int, into: FamilyColumns, out: FamilyColumns) -> TemplateNetwork:
        reads = places_of(into)
        local = np.array([self._local.get(place, FIXED) for place in reads])
        data = self._beside(
            [
                column_of(self.template.families[name].lower, k) if (name, k) in self._data else np.zeros(1)
                for name, k in reads
            ]
        )
        outputs = np.array([self._local[place] for place in places_of(out)])
        return TemplateNetwork(number, local, data, outputs, self._problem.blocks[number].classifies)

    def _coupling_rows(self) -> Iterator[tuple[int, dict[Place, FloatArray]]]:
        """Numbers of rows, and entries of what can move."""
        first = 0
        for part in self._problem.stated.rows:
            if isinstance(part, CouplingRows) and part.template is self.template:
                for number in range(part.row.width):
                    entries = entries_of(self.template, part.row, number)
                    yield first + number, {p: e for p, e in entries.items() if p not in self._data}
            first += part.size

    def _pattern(self, rows: list[tuple[int, dict[Place, FloatArray]]]) -> Pattern:
        """Entries by row, then by local column."""
        entries = [
            (row, self._local[place], numbers)
            for row, mine in rows
            for place, numbers in sorted(mine.items(), key=lambda item: self._local[item[0]])
        ]
        row, column = (np.array([entry[k] for entry in entries], dtype=np.int64) for k in (0, 1))
        return Pattern(row, column, self._beside([numbers for _, _, numbers in entries]))

    def _beside(self, columns: list[FloatArray]) -> FloatArray:
        """(N, k) of columns that have one number for all blocks, or one for each; a view where none has, or
        where they are those of an array."""
        shape = (self.template.count, len(columns))
        if all(len(column) == 1 for column in columns):
            return np.broadcast_to(np.array([float(column[0]) for column in columns]), shape)
        one = columns_of_one(columns)
        if one is not None and one.shape == shape:
            return one
        beside = np.empty(shape, order="F")  # columns are what everybody works with
        for k, column in enumerate(columns):
            beside[:, k] = column
        return beside


def _fixed(family: FamilyArrays, k: int, where: Callable[[BoolArray], object] = np.all) -> bool:
    """Whether a column has one value in each block, or with `np.any` in one of them."""
    return bool(where(column_of(family.lower, k) == column_of(family.upper, k)))


def _one_kind(row: RowArrays, k: int) -> bool:
    """Whether a row is an equation in all blocks, or in none."""
    if _one_array(row.lower, row.upper):
        return True
    equal = column_of(row.lower, k) == column_of(row.upper, k)
    return bool(np.all(equal)) or not np.any(equal)


def _one_array(one: FloatArray, other: FloatArray) -> bool:
    """Whether both were given as the same array: nobody needs to compare its numbers."""
    return bool(one.__array_interface__ == other.__array_interface__)
