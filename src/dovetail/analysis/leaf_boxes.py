"""The leaves of one sample's trees as boxes of cells: which cells of which columns each of them asks for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dovetail.analysis.input_cells import InputCells
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.sparse import joined_ranges
from dovetail.core.tree_ensemble import TreeEnsemble

FOREVER = np.iinfo(np.int64).max


class Level(NamedTuple):
    """Splits of all trees that are as far from their roots."""

    node: IntArray
    left: IntArray
    right: IntArray
    column: IntArray
    cut: IntArray
    """The last cell of the column that goes left."""


@dataclass(frozen=True, eq=False)
class LeafBoxes:
    """Leaves in the order of their trees, and *demands*: a leaf wants a column's cell between two others.

    Only leaves that the box of the cells can reach, and only demands that not every cell meets.
    """

    ensemble: TreeEnsemble
    cells: InputCells
    place: IntArray
    """(features,) the place of each one's column among those of the cells."""
    node: IntArray
    """(leaves,) in the ensemble."""
    leaf: IntArray
    """(demands,) in the order of the leaves."""
    column: IntArray
    """(demands,) a place among the columns of the cells."""
    low: IntArray
    high: IntArray
    cut: IntArray
    """(nodes,) the last cell of a split's column that goes left; -1 where none does."""
    levels: tuple[Level, ...]

    @property
    def leaves(self) -> int:
        """How many."""
        return len(self.node)

    @cached_property
    def value(self) -> FloatArray:
        """(leaves, scores)."""
        return self.ensemble.value[self.node]

    @cached_property
    def tree(self) -> IntArray:
        """(leaves,) its number."""
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
        """(demands,) which are not met by the cells (J,) of a point."""
        cell = cells[self.column]
        return np.asarray((cell < self.low) | (cell > self.high))

    def demands_of(self, leaves: IntArray) -> IntArray:
        """All demands of some leaves."""
        return joined_ranges(*self.demands_from(leaves))

    def demands_from(self, leaves: IntArray) -> tuple[IntArray, IntArray]:
        """Where the demands of each of some leaves begin, and where they end."""
        return self._first_demand[leaves], self._first_demand[leaves + 1]

    def number_of(self, nodes: IntArray) -> IntArray:
        """The numbers here of leaves of the ensemble."""
        return np.asarray(self._number[nodes])

    def row(self, cells: IntArray) -> FloatArray:
        """(features,) what the sample reads at a point in these cells (J,): the upper end of each."""
        return np.asarray(self.cells.high[self.cells.first[self.place] + cells[self.place]])

    def active(self, cells: IntArray) -> IntArray:
        """(trees,) the leaf of each tree that a point in these cells (J,) falls into."""
        return self.number_of(self.ensemble.leaves(self.row(cells)[None])[0])

    def scores(self, cells: IntArray) -> FloatArray:
        """(scores,) of a point in these cells."""
        return self.ensemble.summed(self.value[self.active(cells)])

    def reachable(self, low: IntArray, high: IntArray) -> BoolArray:
        """(N, leaves) which leaves boxes of cells (N, J) can reach, from the roots down."""
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
    """(leaf, column, least cell, largest cell): one for all that a leaf wants of a column."""
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
