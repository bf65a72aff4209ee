"""A template's block over moves: what is left to choose once definitions and predictions are put in.

A block's point is given by its *moves* m, one per coordinate, between `lower` and `upper`; 0 is the quietest
point. A coordinate is a host column, or a pair of columns (up, down) that only one private row reads, with
opposite signs: its move to the right is the one, its move to the left the other, and neither is both.
Columns that a private equation defines by such coordinates (x = w + up - down), or by outputs as well (spend
= price times sold), are put in. So all that a block costs, and all that it uses of the coupling rows, is
linear in its *parts*

    [max(m, 0), max(-m, 0), y, 1]

with y its outputs; other private rows, and bounds of outputs and of defined columns, are *conditions*
on_moves m + on_outputs y >= least.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.analysis.templates import FIXED, TemplateArrays
from dovetail.core.arrays import BoolArray, FloatArray, IntArray

NONE = -1


@dataclass(frozen=True, eq=False)
class Conditions:
    """on_moves m + on_outputs y >= least."""

    on_moves: FloatArray
    """(N, C, k)."""
    on_outputs: FloatArray
    """(N, C, q)."""
    least: FloatArray
    """(N, C)."""


@dataclass(frozen=True, eq=False)
class NetworkReading:
    """What one network of a block reads, u = at_rest + m by `by_moves`, and which outputs it gives."""

    block: int
    at_rest: FloatArray
    """(N, d)."""
    by_moves: FloatArray
    """(d, k)."""
    outputs: IntArray
    """Places in y."""


@dataclass(frozen=True, eq=False)
class Gain:
    """What a local column gains by one unit of a part: (1,) the same in all blocks, or (N,)."""

    column: int
    part: int
    amount: FloatArray

    def of(self, which: IntArray | slice) -> FloatArray:
        """In some blocks."""
        return self.amount if len(self.amount) == 1 else self.amount[which]


@dataclass(frozen=True, eq=False)
class CouplingSides:
    """Rows that blocks share, side by side: sign times the host's row `row` is at most `limit`."""

    row: IntArray
    sign: FloatArray
    limit: FloatArray

    @property
    def count(self) -> int:
        """How many sides."""
        return len(self.row)


@dataclass(frozen=True, eq=False)
class MoveProgram:
    """See above; N blocks, k coordinates, q outputs, 2 k + q + 1 parts."""

    lower: FloatArray
    """(N, k) of moves."""
    upper: FloatArray
    whole: BoolArray
    """(k,) coordinates that are integers."""
    output_columns: IntArray
    """(q,) local."""
    cost: FloatArray
    """(N, 2 k + q + 1) on parts."""
    use: FloatArray
    """(N, m) on parts: entry e is how much of side `use_side[e]` one unit of part `use_part[e]` takes."""
    use_side: IntArray
    use_part: IntArray
    sides: CouplingSides
    conditions: Conditions
    networks: tuple[NetworkReading, ...]
    rest: FloatArray
    """(N, c) values of all local columns where moves and outputs are 0."""
    gains: tuple[Gain, ...]
    scale: FloatArray
    """(k,) what a move of usual size is; of all blocks of the template, whatever part of them is here."""

    @property
    def count(self) -> int:
        """How many blocks."""
        return len(self.lower)

    @property
    def coordinates(self) -> int:
        """How many."""
        return int(self.lower.shape[1])

    def points(self, which: IntArray, moves: FloatArray, outputs: FloatArray) -> FloatArray:
        """(n, c) columns of some blocks at (n, k) moves and (n, q) outputs."""
        parts = np.concatenate([np.maximum(moves, 0.0), np.maximum(-moves, 0.0), outputs], axis=1)
        z = self.rest[which]
        for gain in self.gains:
            z[:, gain.column] += parts[:, gain.part] * gain.of(which)
        return z

    def part(self, first: int, last: int) -> MoveProgram:
        """The program of some blocks: those from `first` to before `last`."""
        some = slice(first, last)
        conditions = self.conditions
        return replace(
            self,
            lower=self.lower[some],
            upper=self.upper[some],
            cost=self.cost[some],
            use=self.use[some],
            conditions=Conditions(
                conditions.on_moves[some], conditions.on_outputs[some], conditions.least[some]
            ),
            networks=tuple(replace(reading, at_rest=reading.at_rest[some]) for reading in self.networks),
            rest=self.rest[some],
            gains=tuple(replace(gain, amount=gain.of(some)) for gain in self.gains),
        )


def move_program(template: TemplateArrays, sides: CouplingSides) -> MoveProgram | None:
    """The program of a template; None where some column has no place in it."""
    return _Reduction(template, sides).program()


class _Reduction:
    """Which columns are defined, and which are two sides of one coordinate."""

    def __init__(self, template: TemplateArrays, sides: CouplingSides) -> None:
        self._template, self._sides = template, sides
        rows, c = template.row_lower.shape[1], template.columns.shape[1]
        private = template.private
        self._entry = {
            (int(row), int(column)): private.entry[:, number]
            for number, (row, column) in enumerate(zip(private.row, private.column, strict=True))
        }
        self._members = [[j for i, j in self._entry if i == row] for row in range(rows)]
        self._output, self._read = np.zeros(c, dtype=bool), np.zeros(c, dtype=bool)
        for network in template.networks:
            self._output[network.outputs] = True
            self._read[network.inputs[network.inputs != FIXED]] = True

    def program(self) -> MoveProgram | None:
        """All of it."""
        if np.any(self._read & self._output):
            return None  # chained networks: a move goes through two of them
        defined = self._definitions()
        pairs = self._pairs(defined)
        return _Assembly(self._template, self._sides, self._entry, self._output, defined, pairs).program()

    def _definitions(self) -> dict[int, int]:
        """Column -> the equation that defines it; no defined column is in another's."""
        template, defined, spoken_for = self._template, dict[int, int](), set[int]()
        equal = np.all(template.row_lower == template.row_upper, axis=0)
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
        """What a network reads is defined before what nobody reads."""
        return 0 if self._read[column] else 1

    def _may_be(self, column: int, row: int, spoken_for: set[int]) -> bool:
        """A network's input must follow from moves alone, by the same numbers in every block."""
        if self._output[column] or self._template.integer[column] or column in spoken_for:
            return False
        if not np.all(self._entry[row, column]):
            return False
        if not self._read[column]:
            return True
        return all(not self._output[j] and _same(self._entry[row, j]) for j in self._members[row])

    def _pairs(self, defined: dict[int, int]) -> dict[int, int]:
        """Column -> its opposite in a definition: both rest at a bound below, and no other row has them."""
        template, pairs = self._template, dict[int, int]()
        rows_of = np.zeros(len(self._output), dtype=int)
        for _, j in self._entry:
            rows_of[j] += 1
        for column, row in defined.items():
            others = [j for j in self._members[row] if j != column]
            if len(others) != 2 or template.integer[others].any() or np.any(rows_of[others] != 1):
                continue
            if (self._read | self._output)[others].any() or not np.isfinite(template.lower[:, others]).all():
                continue
            one, other = sorted(others)
            if np.array_equal(self._entry[row, one], -self._entry[row, other]):
                pairs[one] = other
        return pairs


class _Assembly:
    """The arrays of a program, coordinate by coordinate."""

    def __init__(
        self,
        template: TemplateArrays,
        sides: CouplingSides,
        entry: dict[tuple[int, int], FloatArray],
        output: BoolArray,
        defined: dict[int, int],
        pairs: dict[int, int],
    ) -> None:
        self._template, self._sides, self._entry = template, sides, entry
        self._defined, self._pairs = defined, pairs
        behind = set(defined) | set(pairs.values())
        right = [j for j in range(len(output)) if not output[j] and j not in behind]
        self._right = np.array(right, dtype=np.int64)
        self._left = np.array([pairs.get(j, NONE) for j in right], dtype=np.int64)
        self._outputs = np.flatnonzero(output)
        self._k = len(right)
        self._classes = {
            int(j) for network in template.networks if network.classifies for j in network.outputs
        }
        self._rest, self._gains = self._columns()

    def program(self) -> MoveProgram:
        """Everything."""
        template = self._template
        lower, upper = self._ranges()
        networks = self._networks()
        return MoveProgram(
            lower, upper, template.integer[self._right], self._outputs, self._linear(template.cost),
            *self._use(), self._sides, self._conditions(), networks, self._rest, tuple(self._gains),
            _scale(lower, upper, networks),
        )  # fmt: skip

    def _columns(self) -> tuple[FloatArray, list[Gain]]:
        """Columns at rest, and what they gain by parts."""
        template, k, one = self._template, self._k, np.ones(1)
        quiet = np.clip(0.0, template.lower, template.upper)
        paired = self._left != NONE
        for side in (self._right[paired], self._left[paired]):
            quiet[:, side] = template.lower[:, side]
        quiet[:, self._outputs] = 0.0
        quiet[:, list(self._defined)] = 0.0
        gains = []
        for number, (right, left) in enumerate(zip(self._right.tolist(), self._left.tolist(), strict=True)):
            gains.append(Gain(right, number, one))
            gains.append(Gain(right, k + number, -one) if left == NONE else Gain(left, k + number, one))
        gains += [Gain(int(j), 2 * k + number, one) for number, j in enumerate(self._outputs)]
        for column, row in self._defined.items():
            scale = self._entry[row, column]
            others = {j: entry for (i, j), entry in self._entry.items() if i == row and j != column}
            taken = sum((quiet[:, j] * entry for j, entry in others.items()), start=np.zeros(template.count))
            quiet[:, column] = (template.row_lower[:, row] - taken) / scale
            for gain in [gain for gain in gains if gain.column in others]:
                amount = -gain.amount * others[gain.column] / scale
                gains.append(Gain(column, gain.part, amount[:1] if _same(amount) else amount))
        return quiet, gains

    def _ranges(self) -> tuple[FloatArray, FloatArray]:
        template, right, left, rest = self._template, self._right, self._left, self._rest
        upper = template.upper[:, right] - rest[:, right]
        lower = template.lower[:, right] - rest[:, right]
        paired = left != NONE
        lower[:, paired] = -(template.upper[:, left[paired]] - rest[:, left[paired]])
        return lower, upper

    def _linear(self, weights: FloatArray) -> FloatArray:
        """(N, parts) of a linear form over all local columns."""
        linear = np.zeros((self._template.count, 2 * self._k + len(self._outputs) + 1))
        for gain in self._gains:
            linear[:, gain.part] += weights[:, gain.column] * gain.amount
        linear[:, -1] = np.sum(weights * self._rest, axis=1)
        return linear

    def _use(self) -> tuple[FloatArray, IntArray, IntArray]:
        """Entries of sides on parts: (N, m) numbers, (m,) sides, (m,) parts."""
        coupling, columns = self._template.coupling, self._template.columns.shape[1]
        numbers, sides, parts = [], [], []
        for side, (row, sign) in enumerate(zip(self._sides.row, self._sides.sign, strict=True)):
            mine = coupling.row == row
            if not mine.any():
                continue
            weights = np.zeros((self._template.count, columns))
            weights[:, coupling.column[mine]] = coupling.entry[:, mine]
            linear = sign * self._linear(weights)
            touched = np.flatnonzero(np.any(linear != 0.0, axis=0))
            numbers.append(linear[:, touched])
            sides.append(np.full(touched.size, side))
            parts.append(touched)
        nothing = np.zeros((self._template.count, 0))
        ints = [np.concatenate([np.zeros(0, dtype=np.int64), *of]) for of in (sides, parts)]
        return np.concatenate([nothing, *numbers], axis=1), ints[0], ints[1]

    def _conditions(self) -> Conditions:
        """Private rows that define nothing, and bounds of outputs and defined columns, side by side."""
        template, n, c = self._template, self._template.count, self._template.columns.shape[1]
        forms: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for row in range(template.row_lower.shape[1]):
            if row in self._defined.values():
                continue
            weights = np.zeros((n, c))
            for (i, j), entry in self._entry.items():
                if i == row:
                    weights[:, j] = entry
            forms.append((weights, template.row_lower[:, row], template.row_upper[:, row]))
        for column in (*self._outputs.tolist(), *self._defined):
            if column in self._classes and self._any_class(column):
                continue
            weights = np.zeros((n, c))
            weights[:, column] = 1.0
            forms.append((weights, template.lower[:, column], template.upper[:, column]))
        k = self._k
        rows: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for weights, lower, upper in forms:
            linear = self._linear(weights)
            for sign, side in ((1.0, lower), (-1.0, -upper)):
                if np.any(np.isfinite(side)):
                    least = np.where(np.isfinite(side), side, -np.inf) - sign * linear[:, -1]
                    rows.append((sign * linear[:, :k], sign * linear[:, 2 * k : -1], least))
        if not rows:
            return Conditions(np.zeros((n, 0, k)), np.zeros((n, 0, len(self._outputs))), np.zeros((n, 0)))
        moves, outputs, least = (np.stack(of, axis=1) for of in zip(*rows, strict=True))
        return Conditions(moves, outputs, least)

    def _any_class(self, column: int) -> bool:
        return bool(
            np.all((self._template.lower[:, column] <= 0.0) & (self._template.upper[:, column] >= 1.0))
        )

    def _networks(self) -> tuple[NetworkReading, ...]:
        readings = []
        for network in self._template.networks:
            local = network.inputs
            at_rest = np.where(local == FIXED, network.data, self._rest[:, local])
            by_moves = np.zeros((len(local), self._k))
            for gain in self._gains:
                if gain.part < self._k:
                    by_moves[local == gain.column, gain.part] += gain.amount[0]
            places = np.searchsorted(self._outputs, network.outputs)
            readings.append(NetworkReading(network.block, at_rest, by_moves, places))
        return tuple(readings)


def _same(numbers: FloatArray) -> bool:
    return bool(np.all(numbers == numbers[0]))


def _scale(lower: FloatArray, upper: FloatArray, networks: tuple[NetworkReading, ...]) -> FloatArray:
    """Half of what a coordinate can move; where that has no limit, how far inputs differ between blocks."""
    width = np.median(upper - lower, axis=0)
    spread = np.zeros(lower.shape[1])
    for reading in networks:
        spread = np.maximum(spread, np.abs(reading.by_moves).T @ reading.at_rest.std(axis=0))
    free = np.where(spread > 0.0, spread, 1.0)
    return np.asarray(np.where(np.isfinite(width) & (width > 0.0), 0.5 * width, free))
