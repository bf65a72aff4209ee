"""A template's block over moves: what is left to choose once definitions and predictions are put in.

A block's point is given by its *moves* m, one per coordinate, between `lower` and `upper`; 0 is the quietest
point. A coordinate is a host column, or a pair of columns (up, down) that only one private row reads, with
opposite signs: its move to the right is the one, its move to the left the other, and neither is both.
Columns that a private equation defines by such coordinates (x = w + up - down) are put in. So all that a
block costs, and all that it uses of the coupling rows, is linear in its *parts*

    [max(m, 0), max(-m, 0), y, 1]

with y its outputs; other private rows, and bounds of outputs and of defined columns, are *conditions*
on_moves m + on_outputs y >= least.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.analysis.templates import FIXED, Template
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
class BlockProgram:
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
    """(N, c) values of all local columns at m = 0; outputs at 0."""
    by_parts: FloatArray
    """(c, 2 k) what columns gain by parts of moves."""
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

    def points(self, which: IntArray, moves: FloatArray) -> FloatArray:
        """(n, c) columns of some blocks at (n, k) moves; outputs are left to their predictors."""
        sides = np.concatenate([np.maximum(moves, 0.0), np.maximum(-moves, 0.0)], axis=1)
        return np.asarray(self.rest[which] + sides @ self.by_parts.T)

    def part(self, first: int, last: int) -> BlockProgram:
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
        )


def block_program(template: Template, sides: CouplingSides) -> BlockProgram | None:
    """The program of a template; None where some column has no place in it."""
    return _Reduction(template, sides).program()


class _Reduction:
    """From columns and rows to moves and conditions."""

    def __init__(self, template: Template, sides: CouplingSides) -> None:
        self._template, self._sides = template, sides
        c = template.columns.shape[1]
        self._dense = np.zeros((template.row_lower.shape[1], c))
        """Private rows of the first block: definitions must be the same in all."""
        private = template.private
        self._dense[private.row, private.column] = private.entry[0]
        self._same = np.zeros(self._dense.shape, dtype=bool)
        self._same[private.row, private.column] = np.all(private.entry == private.entry[0], axis=0)
        self._output = np.zeros(c, dtype=bool)
        for network in template.networks:
            self._output[network.outputs] = True
        self._read = np.zeros(c, dtype=bool)
        for network in template.networks:
            self._read[network.inputs[network.inputs != FIXED]] = True

    def program(self) -> BlockProgram | None:
        """All of it."""
        if np.any(self._read & self._output):
            return None  # chained networks: a move goes through two of them
        defined = self._definitions()
        pairs = self._pairs(defined)
        return _Assembly(self._template, self._sides, self._dense, self._output, defined, pairs).program()

    def _definitions(self) -> dict[int, int]:
        """Column -> the row that defines it: an equation over coordinates, with the same numbers in all."""
        template, defined, taken = self._template, dict[int, int](), set[int]()
        equal = np.all(template.row_lower == template.row_upper, axis=0)
        for row in np.flatnonzero(equal).tolist():
            members = np.flatnonzero(self._dense[row]).tolist()
            if not np.all(self._same[row, members]) or np.any(self._output[members]):
                continue
            if any(j in defined for j in members):
                continue
            free = [j for j in members if self._read[j] and not template.integer[j] and j not in taken]
            rest_known = [j for j in free if not (set(members) - {j}) & set(defined)]
            if rest_known:
                defined[rest_known[0]] = row
                taken |= set(members)
        return defined

    def _pairs(self, defined: dict[int, int]) -> dict[int, int]:
        """Column -> its opposite in a definition: both rest at a bound below, and no other row has them."""
        template, pairs = self._template, dict[int, int]()
        alone = np.count_nonzero(self._dense, axis=0) == 1
        for column, row in defined.items():
            others = [j for j in np.flatnonzero(self._dense[row]).tolist() if j != column]
            if len(others) != 2 or template.integer[others].any() or not alone[others].all():
                continue
            if self._read[others].any() or not np.isfinite(template.lower[:, others]).all():
                continue
            one, other = others
            if self._dense[row, one] == -self._dense[row, other]:
                pairs[one] = other
        return pairs


class _Assembly:
    """The arrays of a program, coordinate by coordinate."""

    def __init__(
        self,
        template: Template,
        sides: CouplingSides,
        dense: FloatArray,
        output: BoolArray,
        defined: dict[int, int],
        pairs: dict[int, int],
    ) -> None:
        self._template, self._sides, self._dense = template, sides, dense
        self._defined, self._pairs = defined, pairs
        behind = set(defined) | set(pairs.values())
        self._right = np.array(
            [j for j in range(len(output)) if not output[j] and j not in behind], dtype=np.int64
        )
        self._left = np.array([pairs.get(int(j), NONE) for j in self._right], dtype=np.int64)
        self._outputs = np.flatnonzero(output)
        self._k = len(self._right)
        self._classes = {
            int(j) for network in template.networks if network.classifies for j in network.outputs
        }

    def program(self) -> BlockProgram:
        """Everything."""
        template = self._template
        rest, by_parts = self._columns()
        lower, upper = self._ranges(rest)
        cost, use = self._linear(template.cost, rest, by_parts), self._use(rest, by_parts)
        networks = self._networks(rest, by_parts)
        return BlockProgram(
            lower, upper, template.integer[self._right], self._outputs, cost, *use, self._sides,
            self._conditions(rest, by_parts), networks, rest, by_parts, _scale(lower, upper, networks),
        )  # fmt: skip

    def _columns(self) -> tuple[FloatArray, FloatArray]:
        """Columns at rest, and what they gain by parts of moves."""
        template, k = self._template, self._k
        quiet = np.clip(0.0, template.lower, template.upper)
        paired = self._left != NONE
        for side in (self._right[paired], self._left[paired]):
            quiet[:, side] = template.lower[:, side]
        quiet[:, self._outputs] = 0.0
        quiet[:, list(self._defined)] = 0.0
        by_parts = np.zeros((template.columns.shape[1], 2 * k))
        for number, (right, left) in enumerate(zip(self._right, self._left, strict=True)):
            by_parts[right, number] = 1.0
            by_parts[right if left == NONE else left, k + number] = -1.0 if left == NONE else 1.0
        for column, row in self._defined.items():
            scale = self._dense[row, column]
            others = self._dense[row].copy()
            others[column] = 0.0
            quiet[:, column] = (template.row_lower[:, row] - quiet @ others) / scale
            by_parts[column] = -(others @ by_parts) / scale
        return quiet, by_parts

    def _ranges(self, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
        template, right, left = self._template, self._right, self._left
        upper = template.upper[:, right] - rest[:, right]
        lower = template.lower[:, right] - rest[:, right]
        paired = left != NONE
        lower[:, paired] = -(template.upper[:, left[paired]] - rest[:, left[paired]])
        return lower, upper

    def _linear(self, weights: FloatArray, rest: FloatArray, by_parts: FloatArray) -> FloatArray:
        """(N, parts) of a linear form over all local columns."""
        constant = np.sum(weights * rest, axis=1, keepdims=True)
        return np.concatenate([weights @ by_parts, weights[:, self._outputs], constant], axis=1)

    def _use(self, rest: FloatArray, by_parts: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
        """Entries of sides on parts: (N, m) numbers, (m,) sides, (m,) parts."""
        coupling, columns = self._template.coupling, self._template.columns.shape[1]
        numbers, sides, parts = [], [], []
        for side, (row, sign) in enumerate(zip(self._sides.row, self._sides.sign, strict=True)):
            mine = coupling.row == row
            if not mine.any():
                continue
            weights = np.zeros((self._template.count, columns))
            weights[:, coupling.column[mine]] = coupling.entry[:, mine]
            linear = sign * self._linear(weights, rest, by_parts)
            touched = np.flatnonzero(np.any(linear != 0.0, axis=0))
            numbers.append(linear[:, touched])
            sides.append(np.full(touched.size, side))
            parts.append(touched)
        nothing = np.zeros((self._template.count, 0))
        ints = [np.concatenate([np.zeros(0, dtype=np.int64), *of]) for of in (sides, parts)]
        return np.concatenate([nothing, *numbers], axis=1), ints[0], ints[1]

    def _conditions(self, rest: FloatArray, by_parts: FloatArray) -> Conditions:
        """Private rows that define nothing, and bounds of outputs and defined columns, side by side."""
        template, n, c = self._template, self._template.count, self._template.columns.shape[1]
        forms: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        private = template.private
        for row in range(template.row_lower.shape[1]):
            if row in self._defined.values():
                continue
            mine = private.row == row
            weights = np.zeros((n, c))
            weights[:, private.column[mine]] = private.entry[:, mine]
            forms.append((weights, template.row_lower[:, row], template.row_upper[:, row]))
        for column in (*self._outputs, *self._defined):
            if column in self._classes and self._any_class(column):
                continue
            weights = np.zeros((n, c))
            weights[:, column] = 1.0
            forms.append((weights, template.lower[:, column], template.upper[:, column]))
        k = self._k
        rows: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for weights, lower, upper in forms:
            linear = self._linear(weights, rest, by_parts)
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

    def _networks(self, rest: FloatArray, by_parts: FloatArray) -> tuple[NetworkReading, ...]:
        readings = []
        for network in self._template.networks:
            local = network.inputs
            at_rest = np.where(local == FIXED, network.data, rest[:, local])
            by_moves = np.where(local[:, None] == FIXED, 0.0, by_parts[local, : self._k])
            places = np.searchsorted(self._outputs, network.outputs)
            readings.append(NetworkReading(network.block, at_rest, by_moves, places))
        return tuple(readings)


def _scale(lower: FloatArray, upper: FloatArray, networks: tuple[NetworkReading, ...]) -> FloatArray:
    """Half of what a coordinate can move; where that has no limit, how far inputs differ between blocks."""
    width = np.median(upper - lower, axis=0)
    spread = np.zeros(lower.shape[1])
    for reading in networks:
        spread = np.maximum(spread, np.abs(reading.by_moves).T @ reading.at_rest.std(axis=0))
    free = np.where(spread > 0.0, spread, 1.0)
    return np.asarray(np.where(np.isfinite(width) & (width > 0.0), 0.5 * width, free))
