"""Outputs of trees with few inputs, and products of outputs with inputs, cell by cell: rows for all of them.

    x   the inputs, each between the ends of a cell
    y   what the trees give: a number on each cell
    e   what later steps make of x and y: linear in x where y is a number (price times demand)

The smallest value of a linear function of (x, y, e) on each cell has a closed form, over all cells at once.
So any slopes give a valid row, and the right-hand side of a row in a box is its least value over the cells in
this box. Slopes come from an LP: those that cut off a point by most, given the vertices of some cells; cells
that the row violates add their vertices, until no cell does.

If there are too many cells of all inputs together, neighbours are merged, and y is an interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dovetail.bounds.planes.domain import gamma
from dovetail.branching.effort import count_cuts, count_tables
from dovetail.branching.model import Model
from dovetail.branching.network_cells import Separation, few_inputs
from dovetail.branching.networks import NetworkSamples
from dovetail.branching.tree_ensembles import TreeSamples
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.deadline import require_time
from dovetail.networks.graph import Affine, Product
from dovetail.run.budget import Budget
from dovetail.structure.trees import TreeSample

MOST_CELLS = 2**17
"""Largest number of cells of one table: a megabyte for every row."""
MOST_LOOKS = 2**24
"""Cells times trees: a tenth of a second."""
REMEMBERED = 1000
"""Number of boxes of a row."""
NEARLY = 0.1
"""Fraction of a row's violation: slopes this close to the best are accepted."""
ROUNDS, FRESH, SAMPLED = 30, 32, 4
"""Number of LPs for one row, of vertices that each adds, and of cells along each input in the first one."""


@dataclass(frozen=True, eq=False)
class Forms:
    """Quadratic functions of some columns: constant + linear z + z' square z, one after the other."""

    constant: FloatArray
    linear: FloatArray
    square: FloatArray


def forms_of(one: NetworkSamples) -> Forms | None:
    """The outputs of a network as functions of its inputs, where they are sums of products of these."""
    d = one.graph.inputs
    found = [Forms(np.zeros(d), np.eye(d), np.zeros((d, d, d)))]
    for step in one.graph.steps:
        read = [found[source] for source in step.sources]
        if isinstance(step.operation, Affine):
            weights = step.operation.weights
            found.append(
                Forms(
                    sum((w @ f.constant for w, f in zip(weights, read, strict=True)), step.operation.bias),
                    np.sum([w @ f.linear for w, f in zip(weights, read, strict=True)], axis=0),
                    np.sum(
                        [np.tensordot(w, f.square, 1) for w, f in zip(weights, read, strict=True)], axis=0
                    ),
                )
            )
        elif isinstance(step.operation, Product) and not any(np.any(f.square) for f in read):
            a, b = read
            both = np.einsum("ki,kj->kij", a.linear, b.linear)
            linear = a.constant[:, None] * b.linear + b.constant[:, None] * a.linear
            found.append(Forms(a.constant * b.constant, linear, 0.5 * (both + both.transpose(0, 2, 1))))
        else:
            return None
    return found[-1]


class TreeTable:
    """Some samples of trees that read few inputs together, and the functions of their outputs."""

    def __init__(
        self,
        samples: Sequence[TreeSample],
        trees: TreeSamples,
        made: Sequence[tuple[IntArray, IntArray, Forms, FloatArray]],
        box: tuple[FloatArray, FloatArray],
    ) -> None:
        """`made`: the columns that are read, those that are given, their functions, and the errors of the
        given ones; `box`: where the table holds."""
        given = np.concatenate([sample.outputs for sample in samples])
        read = [trees.columns_of(sample) for sample in samples]
        read += [np.setdiff1d(columns, given) for columns, *_ in made]
        self.inputs = np.unique(np.concatenate(read))
        self.outputs = np.concatenate([given, *(columns for _, columns, *_ in made)])
        self.given = given.size
        self._edges(samples, trees, *box)
        ends = [sample.decoded_range(*self._scores(sample, trees)) for sample in samples]
        least, most = (np.concatenate(side, axis=-1) for side in zip(*ends, strict=True))
        self.middle, self.half = 0.5 * (least + most), 0.5 * (most - least)
        self._forms(made, np.append(self.inputs, given))

    def _edges(
        self, samples: Sequence[TreeSample], trees: TreeSamples, lower: FloatArray, upper: FloatArray
    ) -> None:
        """The cells along each input; neighbours are merged if there would be too many."""
        most = min(MOST_CELLS, MOST_LOOKS // sum(sample.boxes.ensemble.trees for sample in samples))
        ends = [trees.cells_between(int(j), float(lower[j]), float(upper[j])) for j in self.inputs]
        while np.prod([one[0].size for one in ends], dtype=float) > most:
            widest = max(range(len(ends)), key=lambda k: ends[k][0].size)
            first, last, low, high = ends[widest]
            at = np.append(np.arange(1, first.size - 1, 2), first.size - 1)
            ends[widest] = first[::2], last[at], low[::2], high[at]
        self._first, self._last, self.low, self.high = zip(*ends, strict=True)
        self.shape = tuple(low.size for low in self.low)

    def _scores(self, sample: TreeSample, trees: TreeSamples) -> tuple[FloatArray, FloatArray]:
        """(..., scores) least and largest, added up tree after tree, as libraries do."""
        boxes, ensemble = sample.boxes, sample.boxes.ensemble
        count_tables(boxes.leaves, ensemble.trees * math.prod(self.shape))
        begin = np.zeros((boxes.leaves, len(self.shape)), dtype=np.int64)
        end = begin + np.array(self.shape)
        axis = np.searchsorted(self.inputs, trees.inputs[boxes.column])
        for k, (first, last) in enumerate(zip(self._first, self._last, strict=True)):
            own = axis == k
            begin[boxes.leaf[own], k] = np.searchsorted(last, boxes.low[own])
            end[boxes.leaf[own], k] = np.searchsorted(first, boxes.high[own], side="right")
        form = ensemble.dtype if ensemble.in_order else "float64"
        value, base = boxes.value.astype(form), ensemble.base.astype(form)
        whole = all(np.array_equal(*ends) for ends in zip(self._first, self._last, strict=True))
        total = [np.full((*self.shape, base.size), base, dtype=form) for _ in range(1 if whole else 2)]
        for leaves in np.split(np.arange(boxes.leaves), boxes.starts[1:]):
            read = ((begin[leaves] > 0) | (end[leaves] < self.shape)).any(axis=0)
            least = np.full((*np.where(read, self.shape, 1), base.size), np.inf, dtype=form)
            sides = [(least, np.minimum), (-least, np.maximum)][: len(total)]
            ends = begin[leaves].tolist(), np.where(read, end[leaves], 1).tolist()
            for leaf, first, last in zip(leaves.tolist(), *ends, strict=True):
                part = tuple(map(slice, first, last))
                for side, better in sides:
                    better(side[part], value[leaf], out=side[part])
            for sums, (side, _) in zip(total, sides, strict=True):
                sums += side
        return total[0].astype(np.float64), total[-1].astype(np.float64)

    def _forms(self, made: Sequence[tuple[IntArray, IntArray, Forms, FloatArray]], columns: IntArray) -> None:
        """Set up all functions over (x, y)."""
        place = {int(column): k for k, column in enumerate(columns)}
        count, d = sum(given.size for _, given, *_ in made), columns.size
        self._constant, self._linear = np.zeros(count), np.zeros((count, d))
        self._square, self._slack, first = np.zeros((count, d, d)), np.zeros(count), 0
        for read, given, forms, slack in made:
            at, rows = np.array([place[int(column)] for column in read]), np.arange(first, first + given.size)
            self._constant[rows], self._slack[rows] = forms.constant, slack
            np.add.at(self._linear, (rows[:, None], at[None]), forms.linear)
            np.add.at(self._square, (rows[:, None, None], at[None, :, None], at[None, None]), forms.square)
            first += given.size

    def met(self, lower: FloatArray, upper: FloatArray) -> tuple[IntArray, IntArray]:
        """(N, inputs) the first and the last cell of N boxes (N, inputs) along each."""
        ends = (
            np.stack([np.searchsorted(high, end[:, k]) for k, high in enumerate(self.high)], 1)
            for end in (lower, upper)
        )
        first, last = (np.minimum(end, np.array(self.shape) - 1) for end in ends)
        return first, last

    def slopes(self, entries: FloatArray) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """Entries (x, y, e) as a function of x and y: constant, linear in both, x times y, y times y."""
        d = self.inputs.size
        w = entries[d + self.given :]
        square = np.tensordot(w, self._square, 1)
        linear = entries[: d + self.given] + w @ self._linear
        return float(w @ self._constant), linear, square[:d, d:] + square[d:, :d].T, square[d:, d:]

    def least(self, entries: FloatArray, part: tuple[slice, ...]) -> FloatArray:
        """The least value of entries (x, y, e) on each cell of a part of the grid."""
        constant, linear, both, own = self.slopes(entries)
        d, y = self.inputs.size, self.middle[part]
        value = constant + y @ linear[d:]
        if np.any(own):
            value += ((y @ own) * y).sum(-1)
        half = self.half[part]
        largest = np.abs(y).reshape(-1, self.given).max(0) + half.reshape(-1, self.given).max(0)
        steep, far = np.abs(linear[d:]) + 2.0 * np.abs(own) @ largest, np.zeros(d)
        for k in range(d):
            low, high = (self._along(ends[k][part[k]], k) for ends in (self.low, self.high))
            slope = linear[k] + y @ both[k] if np.any(both[k]) else linear[k]
            value = value + np.minimum(slope * low, slope * high)
            far[k] = max(abs(low.min()), abs(high.max()))
        steep += far @ np.abs(both)
        value -= half @ steep
        w = np.abs(entries[d + self.given :])
        z = np.append(far, largest)
        size = w @ (np.abs(self._constant) + self._slack + np.abs(self._linear) @ z)
        size += w @ np.einsum("i,kij,j->k", z, np.abs(self._square), z) + np.abs(entries[: z.size]) @ z
        value -= w @ self._slack + gamma(16 * (z.size + entries.size)) * size
        return np.where(np.isnan(value), -np.inf, value)

    def _along(self, ends: FloatArray, axis: int) -> FloatArray:
        """Numbers of the cells along an axis, in the shape of the grid."""
        return ends.reshape(-1, *[1] * (len(self.shape) - axis - 1))

    def vertices(self, cells: IntArray, entries: FloatArray) -> FloatArray:
        """(N, columns) the points at which entries are least on (N, inputs) cells."""
        _, linear, both, own = self.slopes(entries)
        d, at = self.inputs.size, tuple(cells.T)
        low, high = (
            np.stack([end[k] for end, k in zip(ends, at, strict=True)], 1) for ends in (self.low, self.high)
        )
        y, half = self.middle[at], self.half[at]
        x = np.where(linear[:d] + y @ both.T >= 0.0, low, high)
        y = y - half * np.sign(linear[d:] + 2.0 * y @ own + x @ both)
        return self.completed(np.concatenate([x, y], 1))

    def completed(self, z: FloatArray) -> FloatArray:
        """(N, columns) with the functions of (N, inputs and outputs of trees)."""
        made = self._constant + z @ self._linear.T + np.einsum("ni,kij,nj->nk", z, self._square, z)
        return np.concatenate([z, made], 1)

    def least_in(self, rows: Sequence[CellValues], lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, rows) least values of rows over N boxes (N, inputs)."""
        boxes, which = np.unique(np.hstack(self.met(lower, upper)), axis=0, return_inverse=True)
        found, d = np.full((len(boxes), len(rows)), -np.inf), len(self.shape)
        begin, end = np.stack([row.begin for row in rows]), np.stack([row.end for row in rows])
        known = np.all(begin <= boxes[:, None, :d], axis=2) & np.all(end > boxes[:, None, d:], axis=2)
        some = boxes.tolist()
        for k, r in zip(*np.nonzero(known), strict=True):
            found[k, r] = rows[r].least(some[k][:d], some[k][d:])
        return found[which.ravel()]

    def known(
        self, rows: Sequence[CellValues], weights: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, IntArray]:
        """The least value of a weighted sum of rows on each cell of a box, and the box's first cell."""
        first, last = (end[0] for end in self.met(lower[None], upper[None]))
        used = np.flatnonzero(weights > 0.0)
        found = np.zeros(last - first + 1)
        for k in used.tolist():
            found = found + weights[k] * rows[k].within(first.tolist(), last.tolist())
        return found, first

    def within(self, first: IntArray, kept: BoolArray) -> tuple[FloatArray, FloatArray]:
        """(inputs,) bounds of the cells that are kept, of a part of the grid that begins there."""
        lower, upper = np.empty(len(self.shape)), np.empty(len(self.shape))
        for k in range(len(self.shape)):
            own = first[k] + np.flatnonzero(kept.any(tuple(i for i in range(kept.ndim) if i != k)))
            lower[k], upper[k] = self.low[k][own[0]], self.high[k][own[-1]]
            if own[0] > 0:
                lower[k] = max(lower[k], np.nextafter(self.high[k][own[0] - 1], np.inf))
        return lower, upper


class TablePart:
    """A table in a box, with the rows that cut points off there."""

    def __init__(self, table: TreeTable, lower: FloatArray, upper: FloatArray) -> None:
        self._table = table
        self._begin, last = (end[0] for end in table.met(lower[None], upper[None]))
        self._part = tuple(slice(a, b + 1) for a, b in zip(self._begin, last, strict=True))
        self._shape = tuple((last - self._begin + 1).tolist())

    def cut_off(self, x: FloatArray, y: FloatArray, budget: Budget) -> tuple[FloatArray, CellValues] | None:
        """A row that a point violates, if one is found: its entries for inputs and outputs, and its least
        value in every box within this one."""
        table, point, separation = self._table, np.append(x, y), self._separation
        count_cuts(math.prod(self._shape) * x.size)
        for _ in range(ROUNDS):
            found = separation.found(x, y, budget)
            if found is None:
                return None
            entries, limit, missed = found
            known = table.least(entries, self._part)
            left = float(entries @ point - known.min())
            if left < (1.0 - NEARLY) * missed:
                return entries, CellValues(known, self._begin)
            vertices = table.vertices(self._worst(known, limit), entries)
            separation.tell(vertices[:, : x.size], vertices[:, x.size :])
        return None

    def _worst(self, known: FloatArray, limit: float) -> IntArray:
        """(N, inputs) cells that are below a limit: of each slab along an input the lowest, and of these the
        lowest."""
        found = [int(np.argmin(known))]
        numbers = np.arange(known.size).reshape(known.shape)
        for axis, count in enumerate(known.shape):
            if count > 1:
                slabs = np.moveaxis(known, axis, 0).reshape(count, -1)
                at = np.moveaxis(numbers, axis, 0).reshape(count, -1)
                found += at[np.arange(count), slabs.argmin(1)].tolist()
        cells, flat = np.unique(found), known.ravel()
        cells = cells[flat[cells] < limit]
        cells = cells[np.argsort(flat[cells], kind="stable")[:FRESH]]
        return np.asarray(np.stack(np.unravel_index(cells, known.shape), 1) + self._begin)

    @cached_property
    def _separation(self) -> Separation:
        """The LP knows vertices of cells all over the box, at either end."""
        each = [np.unique(np.linspace(0, count - 1, SAMPLED).astype(np.int64)) for count in self._shape]
        cells = np.stack(np.meshgrid(*each, indexing="ij"), -1).reshape(-1, len(each)) + self._begin
        d, q = self._table.inputs.size, self._table.outputs.size
        ends = np.append(np.ones(d), np.zeros(q))
        some = np.concatenate([self._table.vertices(cells, sign * ends) for sign in (1.0, -1.0)])
        return Separation(some[:, :d], some[:, d:], some[:, d:])


class CellValues:
    """Numbers on a part of a grid."""

    def __init__(self, values: FloatArray, begin: IntArray) -> None:
        self._values, self.begin, self.end = values, begin, begin + np.array(values.shape)
        self._first = begin.tolist()
        self._seen: dict[tuple[int, ...], float] = {}

    def within(self, first: Sequence[int], last: Sequence[int]) -> FloatArray:
        """The numbers from one place of the grid to another."""
        ends = zip(first, last, self._first, strict=True)
        return self._values[tuple(slice(a - o, b - o + 1) for a, b, o in ends)]

    def least(self, first: Sequence[int], last: Sequence[int]) -> float:
        """The least of these values."""
        key = (*first, *last)
        if key not in self._seen:
            if len(self._seen) > REMEMBERED:
                self._seen.clear()
            self._seen[key] = float(self.within(first, last).min())
        return self._seen[key]


def tree_tables(made: Model, lower: FloatArray, upper: FloatArray, budget: Budget) -> list[TreeTable] | None:
    """The tables of trees that read few inputs, in a box; trees whose outputs are multiplied by each other
    share a table. None if the time is over before all are made."""
    trees, networks = made.trees, made.networks
    owner = {int(column): k for k, sample in enumerate(trees.samples) for column in sample.outputs}
    group = list(range(len(trees.samples)))
    later: list[tuple[int, tuple[IntArray, IntArray, Forms, FloatArray]]] = []
    for one in networks:
        forms = forms_of(one)
        for k in range(one.samples) if forms is not None else ():
            read = {owner[int(j)] for j in one.inputs[k] if int(j) in owner}
            if read and forms is not None:
                first = min(group[k] for k in read)
                together = {group[k] for k in read}
                group = [first if g in together else g for g in group]
                later.append((min(read), (one.inputs[k], one.outputs[k], forms, one.slack[k])))
    found = []
    for number in sorted(set(group)):
        samples = [sample for g, sample in zip(group, trees.samples, strict=True) if g == number]
        forms_here = [part for at, part in later if group[at] == number]
        inputs = np.unique(np.concatenate([trees.columns_of(sample) for sample in samples]))
        if few_inputs(lower[inputs][None], upper[inputs][None])[0]:
            if budget.over:
                return None
            require_time()
            found.append(TreeTable(samples, trees, forms_here, (lower, upper)))
    return found
