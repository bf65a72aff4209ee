"""Tree ensembles in cells: the intervals of an input between two neighbouring cuts, in which all trees are
constant.

Cell k of a column holds the numbers above its (k-1)-th cut and up to its k-th one; the first begins at the
lower end of the host's box and the last ends at the upper. A whole number above a cut is at least the next
whole number, so that cells of integers are closed on both sides, and no margin is needed.

A *bound* is proved for closed cells: they overlap in their common cut, which keeps the bound valid. A *point*
is searched a margin above the cut, where the tolerances of engines do not matter. The leaves of a sample's
trees are boxes of cells: each leaf requires certain cells of some columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dovetail.bounds.box import Box
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.structure.boxes import limits_within

MARGIN = 1e-7
"""Distance of points above a cut, relative to max(1, |cut|), at most half a cell: a hundred times the
tolerance of engines, a tenth of that of the check."""
MOST_LEAVES = 1_000_000
"""Largest number of leaves of all samples (a quarter of a gigabyte). With more, trees are treated as
functions."""
FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class InputCells:
    """Cells of some columns, one column after the other."""

    columns: IntArray
    """(J,) the columns of the problem."""
    first: IntArray
    """(J + 1,) where the cells of each column begin in the lists below."""
    low: FloatArray
    """(cells,) the lower end of each cell, closed."""
    inner: FloatArray
    """(cells,) the lower end for points."""
    high: FloatArray
    """(cells,)."""

    @classmethod
    def of(
        cls,
        columns: IntArray,
        cuts: list[FloatArray],
        lower: FloatArray,
        upper: FloatArray,
        whole: np.ndarray,
    ) -> InputCells:
        """Cells of columns with these cuts, between these bounds; `whole` marks integers."""
        lows, inners, highs = [], [], []
        for k in range(columns.size):
            cut = np.unique(np.floor(cuts[k])) if whole[k] else np.unique(cuts[k])
            cut = cut[(cut >= lower[k]) & (cut < upper[k])]
            above = cut + 1.0 if whole[k] else cut
            low, high = np.concatenate([[lower[k]], above]), np.concatenate([cut, [upper[k]]])
            lows.append(low)
            highs.append(high)
            inners.append(low if whole[k] else np.concatenate([low[:1], _inside(cut, high[1:])]))
        first = np.cumsum([0, *(part.size for part in lows)])
        empty = np.empty(0)
        joined = (np.concatenate([empty, *parts]) for parts in (lows, inners, highs))
        return cls(columns, first, *joined)

    @property
    def counts(self) -> IntArray:
        """(J,) number of cells of each column."""
        return np.diff(self.first)

    @property
    def cuts(self) -> int:
        """Number of all cuts: the binaries of a program that distinguishes cells."""
        return int(self.high.size - self.columns.size)

    def of_point(self, x: FloatArray) -> IntArray:
        """(J,) the cell of each column at a point of the problem."""
        return np.minimum(self.first_up_to(x[self.columns]), self.counts - 1)

    def first_up_to(self, values: FloatArray) -> IntArray:
        """(J,) the first cell of each column that does not end below a value."""
        return self._count(self.high < values[self._owner])

    def _count(self, which: BoolArray) -> IntArray:
        if self.columns.size == 0:
            return np.zeros(0, dtype=np.int64)
        return np.add.reduceat(which, self.first[:-1], dtype=np.int64)

    @cached_property
    def _owner(self) -> IntArray:
        """(cells,) the place of the column of each cell."""
        return np.repeat(np.arange(self.columns.size), self.counts)

    def moved_into(self, x: FloatArray, cells: IntArray) -> FloatArray:
        """A point of the problem moved into these cells, with the margin."""
        flat, moved = self.flat(cells), x.copy()
        moved[self.columns] = np.clip(x[self.columns], self.inner[flat], self.high[flat])
        return moved

    def flat(self, cells: IntArray) -> IntArray:
        """(J,) the places of cells in the lists."""
        return np.asarray(self.first[:-1] + cells)


def _inside(cut: FloatArray, high: FloatArray) -> FloatArray:
    """Points a little above each cut."""
    return np.minimum(np.maximum(cut + margin(cut, high), np.nextafter(cut, np.inf)), high)


def margin(cut: FloatArray | float, high: FloatArray | float) -> FloatArray:
    """The margin of points above each cut."""
    return np.minimum(MARGIN * np.maximum(1.0, np.abs(cut)), 0.5 * (high - cut))


class Level(NamedTuple):
    """Splits of all trees at equal depth."""

    node: IntArray
    left: IntArray
    right: IntArray
    column: IntArray
    cut: IntArray
    """The last cell of the column that goes left."""


@dataclass(frozen=True, eq=False)
class LeafBoxes:
    """Leaves in the order of their trees, with *demands*: a leaf demands that a column's cell is between two
    others. Only reachable leaves, and only demands that some cell violates."""

    ensemble: TreeEnsemble
    cells: InputCells
    place: IntArray
    """(features,) the place of the column of each feature."""
    node: IntArray
    """(leaves,) the node of each leaf in the ensemble."""
    leaf: IntArray
    """(demands,) the leaf of each demand."""
    column: IntArray
    """(demands,) a place among the columns of the cells."""
    low: IntArray
    high: IntArray
    cut: IntArray
    """(nodes,) the last cell of a split's column that goes left; -1 if none does."""
    levels: tuple[Level, ...]

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return len(self.node)

    @cached_property
    def value(self) -> FloatArray:
        """(leaves, scores)."""
        return self.ensemble.value[self.node]

    @cached_property
    def tree(self) -> IntArray:
        """(leaves,) the number of the tree."""
        return self.ensemble.tree_of[self.node]

    @cached_property
    def starts(self) -> IntArray:
        """(trees,) the first leaf of each."""
        return np.searchsorted(self.tree, np.arange(self.ensemble.trees))

    @cached_property
    def _number(self) -> IntArray:
        number = np.full(self.ensemble.feature.size, -1)
        number[self.node] = np.arange(self.leaves)
        return number

    @cached_property
    def _first_demand(self) -> IntArray:
        return np.searchsorted(self.leaf, np.arange(self.leaves + 1))

    def missed(self, cells: IntArray) -> BoolArray:
        """(demands,) whether each demand is violated by the cells (J,) of a point."""
        cell = cells[self.column]
        return np.asarray((cell < self.low) | (cell > self.high))

    def demands_from(self, leaves: IntArray) -> tuple[IntArray, IntArray]:
        """The first and the last demand of each of some leaves."""
        return self._first_demand[leaves], self._first_demand[leaves + 1]

    def number_of(self, nodes: IntArray) -> IntArray:
        """The numbers of leaves of the ensemble in this list."""
        return np.asarray(self._number[nodes])

    def row(self, cells: IntArray) -> FloatArray:
        """(features,) the inputs of the sample at the upper ends of cells (J,)."""
        return np.asarray(self.cells.high[self.cells.first[self.place] + cells[self.place]])

    def active(self, cells: IntArray) -> IntArray:
        """(trees,) the leaf of each tree for a point in cells (J,)."""
        return self.number_of(self.ensemble.leaves(self.row(cells)[None])[0])

    def scores(self, cells: IntArray) -> FloatArray:
        """(scores,) at a point in these cells."""
        return self.ensemble.summed(self.value[self.active(cells)])

    def reachable(self, low: IntArray, high: IntArray) -> BoolArray:
        """(N, leaves) the leaves that boxes of cells (N, J) can reach, from the roots down."""
        reach = np.zeros((len(low), self.ensemble.feature.size), dtype=bool)
        reach[:, self.ensemble.roots] = True
        column, cut = self._splits
        left, right, first = low[:, column] <= cut, high[:, column] > cut, 0
        for level in self.levels:
            here, last = reach[:, level.node], first + level.node.size
            reach[:, level.left] = here & left[:, first:last]
            reach[:, level.right] = here & right[:, first:last]
            first = last
        return reach[:, self.node]

    @cached_property
    def _splits(self) -> tuple[IntArray, IntArray]:
        """The columns and cuts of all levels, one after the other."""
        none = np.empty(0, dtype=np.int64)
        return (
            np.concatenate([none, *(level.column for level in self.levels)]),
            np.concatenate([none, *(level.cut for level in self.levels)]),
        )


def leaf_boxes(ensemble: TreeEnsemble, inputs: IntArray, cells: InputCells) -> LeafBoxes:
    """The leaves of a sample that reads these columns; a column may be read twice."""
    place = np.searchsorted(cells.columns, inputs)
    cut = _last_left(ensemble, place, cells)
    leaves = np.flatnonzero(ensemble.is_leaf)
    leaves = leaves[np.argsort(ensemble.tree_of[leaves], kind="stable")]
    leaf, column, low, high = _demands(ensemble, leaves, place, cut, cells.columns.size)
    high = np.minimum(high, cells.counts[column] - 1)
    kept = np.bincount(leaf[low > high], minlength=leaves.size) == 0
    asks = kept[leaf] & ((low > 0) | (high < cells.counts[column] - 1))
    number = np.cumsum(kept) - 1
    return LeafBoxes(
        ensemble,
        cells,
        place,
        leaves[kept],
        number[leaf[asks]],
        column[asks],
        low[asks],
        high[asks],
        cut,
        tuple(_levels(ensemble, place, cut)),
    )


def _last_left(ensemble: TreeEnsemble, place: IntArray, cells: InputCells) -> IntArray:
    """(nodes,) the last cell of a split's column that goes left; -1 where none does."""
    cut = np.zeros(ensemble.feature.size, dtype=np.int64)
    splits = np.flatnonzero(~ensemble.is_leaf)
    for j in range(ensemble.features):
        own = splits[ensemble.feature[splits] == j]
        ends = cells.high[cells.first[place[j]] : cells.first[place[j] + 1]]
        cut[own] = np.searchsorted(ends, ensemble.threshold[own], side="right") - 1
    return cut


def _levels(ensemble: TreeEnsemble, place: IntArray, cut: IntArray) -> list[Level]:
    levels: list[Level] = []
    nodes = ensemble.roots
    while True:
        nodes = nodes[~ensemble.is_leaf[nodes]]
        if nodes.size == 0:
            return levels
        left, right = ensemble.left[nodes], ensemble.right[nodes]
        levels.append(Level(nodes, left, right, place[ensemble.feature[nodes]], cut[nodes]))
        nodes = np.concatenate([left, right])


def _demands(
    ensemble: TreeEnsemble, leaves: IntArray, place: IntArray, cut: IntArray, columns: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The demands of leaves (leaf, column, least cell, largest cell), one for each leaf and column."""
    parent = ensemble.parent
    parts: list[tuple[IntArray, ...]] = [(np.empty(0, dtype=np.int64),) * 3]
    number, node = np.arange(leaves.size), leaves
    while number.size:
        inner = parent[node] != node
        number, node = number[inner], node[inner]
        up = parent[node]
        is_left, k = ensemble.left[up] == node, cut[up]
        key = number * columns + place[ensemble.feature[up]]
        parts.append((key, np.where(is_left, 0, k + 1), np.where(is_left, k, FOREVER)))
        node = up
    key, low, high = (np.concatenate(part) for part in zip(*parts, strict=True))
    keys, which = np.unique(key, return_inverse=True)
    least, most = np.zeros(keys.size, dtype=np.int64), np.full(keys.size, FOREVER)
    np.maximum.at(least, which, low)
    np.minimum.at(most, which, high)
    return keys // columns, keys % columns, least, most


@dataclass(frozen=True, eq=False)
class TreeSample:
    """One sample of a block."""

    block: Block
    outputs: IntArray
    """Its output columns."""
    boxes: LeafBoxes

    def decoded(self, scores: FloatArray) -> FloatArray:
        """(..., outputs) the output columns for (..., scores)."""
        values = self.boxes.ensemble.linked(scores)
        if not self.block.classifies:
            return values
        return self.block.decode(values.reshape(-1, values.shape[-1])).reshape(values.shape)

    def decoded_range(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(..., outputs) proved ranges of the output columns for (..., scores) between two bounds. A class
        that rounding may change gets the range from 0 to 1."""
        least, most = self.boxes.ensemble.output_range(low, high)
        block = self.block
        if not block.classifies:
            return least, most
        if least.shape[-1] == 1:
            return (least >= block.threshold).astype(float), (most >= block.threshold).astype(float)
        ahead = np.max(least, axis=-1, keepdims=True)
        may_win = most >= ahead
        alone = may_win & (may_win.sum(axis=-1, keepdims=True) == 1)
        return alone.astype(float), may_win.astype(float)


@dataclass(frozen=True, eq=False)
class TreeProblem:
    """The program in minimisation form within its box, the cells of its inputs, and all samples."""

    problem: Problem
    host: Mip
    cells: InputCells
    samples: tuple[TreeSample, ...]

    @property
    def whole(self) -> BoolArray:
        """(J,) whether each of the columns is integer."""
        return np.asarray(self.host.integer[self.cells.columns])

    def outputs_at(self, cells: IntArray) -> FloatArray:
        """(columns,) all outputs for inputs in these cells; 0 elsewhere."""
        found = np.zeros(self.host.n_columns)
        for sample in self.samples:
            found[sample.outputs] = sample.decoded(sample.boxes.scores(cells))
        return found

    def bounds_in(self, cells: IntArray, outputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(columns,) bounds for points in these cells, with fixed outputs."""
        lower, upper, flat = self.host.lower.copy(), self.host.upper.copy(), self.cells.flat(cells)
        lower[self.cells.columns], upper[self.cells.columns] = self.cells.inner[flat], self.cells.high[flat]
        held = self.problem.outputs
        lower[held] = upper[held] = outputs[held]
        return lower, upper


def ensembles_of(problem: Problem) -> dict[str, TreeEnsemble] | None:
    """The ensembles of all tree blocks, by name; None if one cannot be read or there are too many leaves."""
    found, leaves = dict[str, TreeEnsemble](), 0
    for block in problem.blocks:
        if block.description.trees is not None:
            ensemble = block.description.trees_if_known()
            if ensemble is None:
                return None
            found[block.name] = ensemble
            leaves += int(ensemble.is_leaf.sum()) * block.samples
    return found if found and leaves <= MOST_LEAVES else None


def in_cells(problem: Problem, ensembles: Mapping[str, TreeEnsemble], box: Box) -> TreeProblem:
    """A problem of tree ensembles in cells, given the ensembles by block name and a box that is finite on
    its inputs."""
    low, high, integer = limits_within(problem, box.lower, box.upper)
    cells = input_cells(problem.blocks, ensembles, problem.inputs, low, high, integer)
    mip = problem.mip.minimised()
    host = replace(mip, lower=low, upper=high, integer=integer)
    return TreeProblem(problem, host, cells, tree_samples(problem.blocks, ensembles, cells))


def input_cells(
    blocks: Sequence[Block],
    ensembles: Mapping[str, TreeEnsemble],
    columns: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    integer: BoolArray,
) -> InputCells:
    """Cells of the columns that tree blocks read, between (columns of the problem,) bounds."""
    cuts: list[list[FloatArray]] = [[np.empty(0)] for _ in columns]
    for block in blocks:
        for j, cut in enumerate(ensembles[block.name].cuts):
            for place in np.unique(np.searchsorted(columns, block.inputs[:, j])):
                cuts[place].append(cut)
    joined = [np.concatenate(parts) for parts in cuts]
    return InputCells.of(columns, joined, lower[columns], upper[columns], integer[columns])


def tree_samples(
    blocks: Sequence[Block], ensembles: Mapping[str, TreeEnsemble], cells: InputCells
) -> tuple[TreeSample, ...]:
    """All samples of tree blocks."""
    return tuple(
        TreeSample(block, block.outputs[i], leaf_boxes(ensembles[block.name], block.inputs[i], cells))
        for block in blocks
        for i in range(block.samples)
    )
