"""Recognises problems of many equal blocks that share a few rows, and makes their programs.

Some columns of a template are defined by equations, others are the two sides of one coordinate; the rest are
free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray, columns_of_one
from dovetail.core.pieces import piece_of, pieces
from dovetail.core.stated_program import ColumnPart, StatedProgram
from dovetail.decomposition.move_program import (
    NONE,
    MoveProgram,
    NetworkReading,
    PartGain,
    one_row,
)
from dovetail.run.context import SolveContext
from dovetail.structure.components import CouplingSides
from dovetail.structure.structure import Structure, structure_of
from dovetail.structure.templates import FIXED, Strided, TemplateArrays, Templates

MOST_TEMPLATES = 8
"""Largest number of templates, each of which is priced by calls of its own. (24 unlike plants of the zoo's
dispatch: 0.65 after 20 CPU s without such calls, 0.52 with them.)"""
MANY = 100_000
"""Number of blocks that measure how inputs differ; of more, evenly chosen ones."""


@dataclass(frozen=True, eq=False)
class TemplatePlan(Templates):
    """Templates with their programs over common sides, and all other columns."""

    programs: tuple[MoveProgram, ...]
    program: StatedProgram
    """The program, whose columns outside blocks are fixed."""

    @cached_property
    def constant(self) -> float:
        """The constant of the objective, in the user's sense."""
        if not self.uncovered:
            return self.program.offset
        z = np.zeros(self.program.n_columns)
        for part in self.uncovered:
            part.of(z)[...] = part.lower
        for template in self.arrays:
            for j in range(template.places.shape[1]):
                z[template.places.column(j, 0, template.count)] = 0.0
        return self.program.objective(z)

    @cached_property
    def uncovered(self) -> tuple[ColumnPart, ...]:
        """Parts of the program that may have columns outside blocks."""
        return tuple(part for part in self.program.columns if not any(_covers(t, part) for t in self.arrays))


def template_plan(context: SolveContext) -> TemplatePlan | None:
    """The plan of the current problem (see `SolveContext.once`)."""
    return plan_of(context.once(structure_of))


def plan_of(structure: Structure) -> TemplatePlan | None:
    """The plan of a problem; None if no rows are shared, or if a block cannot be priced."""
    found = structure.templates if structure.samples > 1 else None
    if found is None or found.count < 2:
        return None
    if len(found.arrays) > MOST_TEMPLATES or found.sides.count == 0:
        return None
    programs = list[MoveProgram]()
    for template in found.arrays:
        program = move_program(template, found.sides)
        if program is None or program.coordinates == 0:
            return None
        programs.append(program)
    return TemplatePlan(**vars(found), programs=tuple(programs), program=structure.problem.stated)


def _covers(template: TemplateArrays, part: ColumnPart) -> bool:
    """Whether every column of a part belongs to a template's blocks."""
    places = template.places
    if not isinstance(places, Strided) or places.count != part.shape[0]:
        return False
    mine = (places.step == part.shape[1]) & (places.start >= part.first)
    return int(np.count_nonzero(mine & (places.start < part.first + part.shape[1]))) == part.shape[1]


@dataclass(frozen=True, eq=False)
class _AbsoluteValue:
    """value >= corner + rises (x - at), value >= corner + falls (at - x)."""

    value: int
    input: int
    rows: tuple[int, ...]
    at: FloatArray
    corner: FloatArray
    rises: FloatArray
    falls: FloatArray


def move_program(template: TemplateArrays, sides: CouplingSides) -> MoveProgram | None:
    """The program of a template; None for chained networks."""
    written = {int(j) for network in template.networks for j in network.outputs}
    if any(int(j) in written for network in template.networks for j in network.inputs):
        return None
    return _Assembly(template, sides).program()


class _Assembly:
    """The columns of a template that are defined, or two sides of one coordinate, and its program."""

    def __init__(self, template: TemplateArrays, sides: CouplingSides) -> None:
        self._template, self._sides = template, sides
        rows, c = template.row_lower.shape[1], template.places.shape[1]
        private = template.private
        self._entry = {
            (int(row), int(column)): one_row(private.entry[:, number])
            for number, (row, column) in enumerate(zip(private.row, private.column, strict=True))
        }
        self._members, self._rows_of = [list[int]() for _ in range(rows)], [list[int]() for _ in range(c)]
        for row, j in self._entry:
            self._members[row].append(j)
            self._rows_of[j].append(row)
        self._output, self._read = np.zeros(c, dtype=bool), np.zeros(c, dtype=bool)
        for network in template.networks:
            self._output[network.outputs] = True
            self._read[network.inputs[network.inputs != FIXED]] = True
        self._defined = self._definitions()
        pairs = self._pairs(self._defined)
        self._vs = {v.value: v for v in self._absolute_values()}
        behind = set(self._defined) | set(pairs.values()) | set(self._vs)
        right = [j for j in range(c) if not self._output[j] and j not in behind]
        self._right = np.array(right, dtype=np.int64)
        self._left = np.array([pairs.get(j, NONE) for j in right], dtype=np.int64)
        self._outputs = np.flatnonzero(self._output)
        self._k = len(right)
        self._classes = {
            int(j) for network in template.networks if network.classifies for j in network.outputs
        }
        self._rest_size = np.zeros(c)
        self._gains: list[list[PartGain]] = [[] for _ in range(c)]
        """The changes of each column by parts."""
        self._rest = self._columns()

    def _definitions(self) -> dict[int, int]:
        """The defining equation of each defined column; no defined column occurs in the equation of
        another."""
        template, defined, spoken_for = self._template, dict[int, int](), set[int]()
        lower, upper = template.row_lower, template.row_upper
        equal = np.ones(lower.shape[1], bool) if lower is upper else np.all(lower == upper, axis=0)
        for row in np.flatnonzero(equal).tolist():
            members = self._members[row]
            if any(j in defined for j in members):
                continue
            found = next(
                (j for j in sorted(members, key=self._rank) if self._may_be(j, row, spoken_for)), None
            )
            if found is not None:
                defined[found] = row
                spoken_for |= set(members)
        return defined

    def _rank(self, column: int) -> int:
        """Inputs of networks are defined first."""
        return 0 if self._read[column] else 1

    def _may_be(self, column: int, row: int, spoken_for: set[int]) -> bool:
        """Whether an equation may define a column: a network's input must follow from moves by equal
        coefficients in every block."""
        if self._output[column] or self._template.integer[column] or column in spoken_for:
            return False
        if not np.all(self._entry[row, column]):
            return False
        if not self._read[column]:
            return True
        return all(not self._output[j] and same(self._entry[row, j]) for j in self._members[row])

    def _pairs(self, defined: dict[int, int]) -> dict[int, int]:
        """Column -> its opposite in a definition: both have a lower bound as their rest, and no other row
        contains them."""
        template, pairs = self._template, dict[int, int]()
        for column, row in defined.items():
            others = [j for j in self._members[row] if j != column]
            if (
                len(others) != 2
                or template.integer[others].any()
                or any(len(self._rows_of[j]) != 1 for j in others)
            ):
                continue
            if (self._read | self._output)[others].any() or not np.isfinite(
                one_row(template.lower)[:, others]
            ).all():
                continue
            one, other = sorted(others)
            if np.array_equal(self._entry[row, one], -self._entry[row, other]):
                pairs[one] = other
        return pairs

    def _absolute_values(self) -> Iterator[_AbsoluteValue]:
        """Columns that two rows keep above an absolute value of a coordinate, and that are never better
        larger."""
        template, taken = self._template, set[int]()
        whole = template.integer | self._output | self._read
        coupled = template.coupling
        for value in np.flatnonzero(~whole).tolist():
            rows = self._rows_of[value]
            others = {j for i in rows for j in self._members[i] if j != value}
            x = next(iter(others), NONE)
            if len(rows) != 2 or len(others) != 1 or {value, x} & {*self._defined, *taken}:
                continue
            if self._output[x] or template.integer[x] or np.any(one_row(template.cost)[:, value] < 0.0):
                continue
            mine = coupled.column == value
            uses = [
                sign * one_row(coupled.entry)[:, mine & (coupled.row == row)]
                for row, sign in zip(self._sides.row, self._sides.sign, strict=True)
            ]
            lines = [self._line(row, value, x) for row in rows]
            if any(np.any(use < 0.0) for use in uses) or any(line is None for line in lines):
                continue
            (one, rises), (other, falls) = sorted(
                (line for line in lines if line is not None), key=lambda line: -float(line[1][0])
            )
            if not (np.all(rises > 0.0) and np.all(falls < 0.0)):
                continue
            at = (other - one) / (rises - falls)
            corner = one + rises * at
            lower, upper = (one_row(limit[:, x]) for limit in (template.lower, template.upper))
            inside = (lower <= at) & (at <= upper)
            least, most = (one_row(limit[:, value]) for limit in (template.lower, template.upper))
            if np.all(inside) and np.all((least <= corner) & (corner <= most)):
                taken |= {value, x}
                yield _AbsoluteValue(value, x, tuple(rows), one_row(at), one_row(corner), rises, -falls)

    def _line(self, row: int, value: int, x: int) -> tuple[FloatArray, FloatArray] | None:
        """The (constant, slope) of value >= constant + slope x, if a row has exactly this form."""
        scale = self._entry[row, value]
        lower, upper = (
            one_row(side[:, row]) for side in (self._template.row_lower, self._template.row_upper)
        )
        side, other = (lower, upper) if np.all(scale > 0.0) else (upper, lower)
        if not (np.all(scale > 0.0) or np.all(scale < 0.0)):
            return None
        if np.any(np.isfinite(other)) or not np.all(np.isfinite(side)):
            return None
        return side / scale, -self._entry[row, x] / scale

    def program(self) -> MoveProgram:
        """The program."""
        template = self._template
        lower, upper = self._ranges()
        networks = self._networks()
        cost, cost_size = self._cost()
        use, side, part, use_size = self._use()
        return MoveProgram(
            lower, upper, template.integer[self._right], self._right, self._left, self._outputs, cost, use,
            side, part, self._sides,
            *self._conditions(), networks, tuple(self._rest), tuple(chain(*self._gains)), cost_size, use_size,
            _scale(lower, upper, networks),
        )  # fmt: skip

    def _columns(self) -> list[FloatArray]:
        """Columns at rest, (1,) or (N,) each; their changes by parts become known."""
        template, k, one = self._template, self._k, np.ones(1)
        limits = [(one_row(template.lower[:, j]), one_row(template.upper[:, j])) for j in self._all]
        quiet = [np.clip(0.0, lower, upper) for lower, upper in limits]
        for right, left in zip(self._right.tolist(), self._left.tolist(), strict=True):
            if left != NONE:
                quiet[right], quiet[left] = limits[right][0], limits[left][0]
        for v in self._vs.values():
            quiet[v.input], quiet[v.value] = v.at, v.corner
        for j in (*self._outputs.tolist(), *self._defined):
            quiet[j] = np.zeros(1)
        self._rest_size = np.array([_size(values) for values in quiet])

        def gain(column: int, part: int, amount: FloatArray) -> None:
            self._gains[column].append(PartGain(column, part, amount))

        places = self._right.tolist()
        for number, (right, left) in enumerate(zip(places, self._left.tolist(), strict=True)):
            gain(right, number, one)
            gain(right if left == NONE else left, k + number, -one if left == NONE else one)
        for number, j in enumerate(self._outputs.tolist()):
            gain(j, 2 * k + number, one)
        for v in self._vs.values():
            number = places.index(v.input)
            gain(v.value, number, v.rises)
            gain(v.value, k + number, v.falls)
        for column, row in self._defined.items():
            scale = self._entry[row, column]
            others = {j: self._entry[row, j] for j in self._members[row] if j != column}
            taken = sum((quiet[j] * entry for j, entry in others.items()), start=np.zeros(1))
            side = template.row_lower[:, row]
            quiet[column] = one_row(_shifted(side, one_row(taken), one_row(scale)))
            added = sum(self._rest_size[j] * _size(entry) for j, entry in others.items())
            self._rest_size[column] = (_size(side) + added) / float(np.abs(scale).min())
            for j, entry in others.items():
                for of in tuple(self._gains[j]):
                    amount = -of.amount * entry / scale
                    gain(column, of.part, amount[:1] if same(amount) else amount)
        return quiet

    @property
    def _all(self) -> range:
        """The numbers of all local columns."""
        return range(self._template.places.shape[1])

    def _ranges(self) -> tuple[FloatArray, FloatArray]:
        template, rest = self._template, self._rest
        lower, upper = [], []
        for right, left in zip(self._right.tolist(), self._left.tolist(), strict=True):
            upper.append(one_row(template.upper[:, right]) - rest[right])
            lower.append(
                one_row(template.lower[:, right]) - rest[right]
                if left == NONE
                else rest[left] - one_row(template.upper[:, left])
            )
        places = self._right.tolist()
        for v in self._vs.values():
            number, room = places.index(v.input), one_row(template.upper[:, v.value]) - v.corner
            lower[number] = np.maximum(lower[number], -room / v.falls)
            upper[number] = np.minimum(upper[number], room / v.rises)
        return self._everywhere(_beside(lower)), self._everywhere(_beside(upper))

    def _linear(self, columns: IntArray, entry: FloatArray) -> FloatArray:
        """(N or 1, parts) of a linear form with (N or 1, m) coefficients of local columns."""
        entry = one_row(entry)
        terms = [
            (gain.part, entry[:, number] * gain.amount)
            for number, column in enumerate(columns.tolist())
            for gain in self._gains[column]
        ]
        at_rest = np.zeros(1)
        for number, column in enumerate(columns.tolist()):
            at_rest = at_rest + entry[:, number] * self._rest[column]
        at_rest = one_row(at_rest)
        count = max([len(at_rest), *(len(amount) for _, amount in terms)])
        linear = np.zeros((count, 2 * self._k + len(self._outputs) + 1))
        for part, amount in terms:
            linear[:, part] += amount
        linear[:, -1] = at_rest
        return linear

    def _linear_size(self, columns: IntArray, entry: FloatArray) -> FloatArray:
        """(parts,) the absolute terms of such a form, the largest of all blocks."""
        size = np.zeros(2 * self._k + len(self._outputs) + 1)
        most = dict(zip(columns.tolist(), np.abs(entry).max(axis=0, initial=0.0).tolist(), strict=True))
        for column, amount in most.items():
            for gain in self._gains[column]:
                size[gain.part] += amount * _size(gain.amount)
        size[-1] = sum(self._rest_size[column] * amount for column, amount in most.items())
        return size

    def _cost(self) -> tuple[FloatArray, FloatArray]:
        cost = one_row(self._template.cost)
        columns = np.flatnonzero(np.any(cost != 0.0, axis=0))
        form = columns, cost[:, columns]
        return self._everywhere(self._linear(*form)), self._linear_size(*form)

    def _everywhere(self, array: FloatArray) -> FloatArray:
        """One row for all blocks, broadcast."""
        count = self._template.count
        return array if len(array) == count else np.broadcast_to(array, (count, *array.shape[1:]))

    def _use(self) -> tuple[FloatArray, IntArray, IntArray, FloatArray]:
        """Use of sides by parts: (N, m) numbers, (m,) sides, (m,) parts, (m,) absolute terms."""
        coupling = self._template.coupling
        entries = one_row(coupling.entry)
        numbers, sides, parts, sizes = [np.zeros((1, 0))], [], [], [np.zeros(0)]
        for side, (row, sign) in enumerate(zip(self._sides.row, self._sides.sign, strict=True)):
            mine = np.flatnonzero(coupling.row == row)
            if not mine.size:
                continue
            form = coupling.column[mine], entries[:, mine]
            linear, size = sign * self._linear(*form), self._linear_size(*form)
            touched = np.flatnonzero(np.any(linear != 0.0, axis=0))
            numbers.append(linear[:, touched])
            sides.append(np.full(touched.size, side))
            parts.append(touched)
            sizes.append(size[touched])
        ints = [np.concatenate([np.zeros(0, dtype=np.int64), *of]) for of in (sides, parts)]
        return self._everywhere(_joined(numbers)), ints[0], ints[1], np.concatenate(sizes)

    def _forms(self) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Private rows that are not definitions, and bounds of outputs and defined columns: linear forms with
        their limits."""
        template = self._template
        defining = {*self._defined.values(), *chain(*(v.rows for v in self._vs.values()))}
        for row in range(template.row_lower.shape[1]):
            if row in defining:
                continue
            columns = np.array(self._members[row], dtype=np.int64)
            entry = np.stack(np.broadcast_arrays(*(self._entry[row, j] for j in self._members[row])), axis=1)
            yield self._linear(columns, entry), template.row_lower[:, row], template.row_upper[:, row]
        for column in (*self._outputs.tolist(), *self._defined):
            lower, upper = one_row(template.lower)[:, column], one_row(template.upper)[:, column]
            limited = np.any(np.isfinite(lower)) or np.any(np.isfinite(upper))
            if limited and not (column in self._classes and self._any_class(column)):
                yield self._linear(np.array([column]), np.ones((1, 1))), lower, upper

    def _conditions(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The forms side by side: coefficients of moves and outputs, and least values."""
        k, q = self._k, len(self._outputs)
        moves, outputs, least = [np.zeros((1, 0, k))], [np.zeros((1, 0, q))], [np.zeros((1, 0))]
        for linear, lower, upper in self._forms():
            for sign, side in ((1.0, lower), (-1.0, -upper)):
                if np.any(np.isfinite(side)):
                    moves.append(sign * linear[:, None, :k])
                    outputs.append(sign * linear[:, None, 2 * k : -1])
                    asked = np.where(np.isfinite(side), side, -np.inf) - sign * linear[:, -1]
                    least.append(one_row(asked)[:, None])
        return (
            self._everywhere(_joined(moves)),
            self._everywhere(_joined(outputs)),
            self._everywhere(_joined(least)),
        )

    def _any_class(self, column: int) -> bool:
        lower, upper = one_row(self._template.lower)[:, column], one_row(self._template.upper)[:, column]
        return bool(np.all((lower <= 0.0) & (upper >= 1.0)))

    def _networks(self) -> tuple[NetworkReading, ...]:
        readings = []
        for network in self._template.networks:
            local = network.inputs
            at_rest = self._side_by_side(
                [network.data[:, k] if j == FIXED else self._rest[j] for k, j in enumerate(local.tolist())]
            )
            by_moves = np.zeros((len(local), self._k))
            for number, j in enumerate(local.tolist()):
                for gain in self._gains[j] if j != FIXED else ():
                    if gain.part < self._k:
                        by_moves[number, gain.part] += gain.amount[0]
            places = np.searchsorted(self._outputs, network.outputs)
            size = [
                _size(network.data[:, k]) if j == FIXED else self._rest_size[j]
                for k, j in enumerate(local.tolist())
            ]
            readings.append(NetworkReading(network.block, at_rest, by_moves, places, np.array(size)))
        return tuple(readings)

    def _side_by_side(self, columns: list[FloatArray]) -> FloatArray:
        """(N, d) in the order of a network's inputs; the owner's array if possible."""
        one = columns_of_one(columns)
        if one is not None and len(one) == self._template.count:
            return one
        beside = np.empty((self._template.count, len(columns)))
        for some in pieces(*beside.shape):
            for k, column in enumerate(columns):
                beside[some, k] = piece_of(column, some)
        return beside


def _size(numbers: FloatArray) -> float:
    """The largest over all blocks."""
    return float(np.abs(one_row(numbers)).max(initial=0.0))


def _shifted(side: FloatArray, taken: FloatArray, scale: FloatArray) -> FloatArray:
    """(side - taken) / scale; the side itself if unchanged."""
    plain = len(taken) == len(scale) == 1 and taken[0] == 0.0 and scale[0] == 1.0
    return side if plain else (side - taken) / scale


def _joined(arrays: list[FloatArray]) -> FloatArray:
    """Arrays joined along the second axis; (1, ...) if none has more rows."""
    count = max(len(array) for array in arrays)
    return np.concatenate([np.broadcast_to(a, (count, *a.shape[1:])) for a in arrays], axis=1)


def _beside(columns: list[FloatArray]) -> FloatArray:
    """(1, k) of columns with one number for all blocks, otherwise (N, k)."""
    shape = (max((len(column) for column in columns), default=1), len(columns))
    beside = np.empty(shape, order="F")  # all other methods work with columns
    for k, column in enumerate(columns):
        beside[:, k] = column
    return beside


def same(numbers: FloatArray) -> bool:
    """Whether all blocks have the same."""
    return bool(np.all(numbers == numbers[0]))


def _scale(lower: FloatArray, upper: FloatArray, networks: tuple[NetworkReading, ...]) -> FloatArray:
    """Half of the range of a coordinate; for unbounded ones the spread of inputs between blocks."""
    width = np.median(one_row(upper) - one_row(lower), axis=0)
    spread = np.zeros(lower.shape[1])
    for reading in networks:
        some = reading.at_rest[:: max(1, len(reading.at_rest) // MANY)]
        spread = np.maximum(spread, np.abs(reading.by_moves).T @ some.std(axis=0))
    free = np.where(spread > 0.0, spread, 1.0)
    return np.asarray(np.where(np.isfinite(width) & (width > 0.0), 0.5 * width, free))
