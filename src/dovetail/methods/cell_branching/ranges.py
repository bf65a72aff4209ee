"""What outputs can be in boxes of cells: of each tree the least and the largest leaf that a box can reach.

An output is a sum over trees. Where it has to be at least `lower`, and all trees together reach `most`, no
tree can be at a leaf that is more than most - lower below its own best one; from above likewise. What is left
of a tree's leaves covers less of the box: every input lies within the hull of what is left of each tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.methods.cell_branching.node import Node
from dovetail.structure.trees import TreeProblem, TreeSample

OPEN = 1e-10
"""Relative to max(1, |value|): float64 rounds by less, and nobody's proof hangs on that."""
ROUNDING = {"float64": 1e-15, "float32": 1e-6}
"""Relative to the sizes of all leaves that are added, and for each of them: an upper limit of what sums in
this format, in any order, are off by."""


CELLS = 2**21
"""Boxes times nodes of trees times scores that are looked at together: two arrays of 16 MB."""


def some_at_a_time(boxes: int, size: int) -> Iterator[slice]:
    """A few boxes, of so many numbers each, at a time: of a million leaves a hundred would be a gigabyte."""
    some = max(1, CELLS // max(1, size))
    for begin in range(0, boxes, some):
        yield slice(begin, begin + some)


class LeafBounds:
    """Of one sample whose outputs are sums: regression without a link."""

    def __init__(self, sample: TreeSample) -> None:
        self._boxes = boxes = sample.boxes
        ensemble = boxes.ensemble
        self.applies = not sample.block.classifies and ensemble.link == "identity"
        largest = np.maximum.reduceat(np.abs(boxes.value), boxes.starts, axis=0).sum(axis=0)
        few = ensemble.trees + 2
        self._rounding = ROUNDING[ensemble.dtype] * few * (largest + np.abs(ensemble.base))

    def left(
        self, reach: BoolArray, low: IntArray, high: IntArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[BoolArray, IntArray, IntArray]:
        """What is left of the leaves (N, leaves) that boxes of cells (N, J) reach, and of the boxes.

        Outputs lie between bounds (N, outputs). A box of which nothing is left ends before it begins.
        """
        parts = [
            self._left(reach[few], low[few], high[few], lower[few], upper[few])
            for few in some_at_a_time(max(len(reach), 1), self._boxes.leaf.size + self._boxes.value.size)
        ]
        leaves, lows, highs = (np.concatenate(part) for part in zip(*parts, strict=True))
        return leaves, lows, highs

    def _left(
        self, reach: BoolArray, low: IntArray, high: IntArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[BoolArray, IntArray, IntArray]:
        left = self._possible(reach, lower, upper)
        less = np.flatnonzero(np.any(left != reach, axis=1))
        low, high = low.copy(), high.copy()
        if less.size:
            low[less], high[less] = self._hull(left[less], low[less], high[less])
        return left, low, high

    def _possible(self, reach: BoolArray, lower: FloatArray, upper: FloatArray) -> BoolArray:
        boxes = self._boxes
        value, tree, base = boxes.value, boxes.tree, boxes.ensemble.base
        reached = reach[:, :, None]
        low = np.minimum.reduceat(np.where(reached, value, np.inf), boxes.starts, axis=1)
        high = np.maximum.reduceat(np.where(reached, value, -np.inf), boxes.starts, axis=1)
        least, most = base + low.sum(axis=1), base + high.sum(axis=1)
        above = (least - upper)[:, None] + (value - low[:, tree]) <= self._rounding
        below = (lower - most)[:, None] + (high[:, tree] - value) <= self._rounding
        return np.asarray(reach & np.all(above & below, axis=2))

    def _hull(self, left: BoolArray, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        boxes, (order, starts, tree, column) = self._boxes, self._groups
        count = np.add.reduceat(left, boxes.starts, axis=1, dtype=np.int64)
        if order.size:
            asked = left[:, boxes.leaf[order]]
            asking = np.add.reduceat(asked, starts, axis=1, dtype=np.int64)
            whole = asking == count[:, tree]  # all leaves that are left ask something of the column
            least = np.where(asked, boxes.low[order], boxes.cells.high.size)
            begin = np.minimum.reduceat(least, starts, axis=1)
            end = np.maximum.reduceat(np.where(asked, boxes.high[order], -1), starts, axis=1)
            for k, these in enumerate(whole):
                np.maximum.at(low[k], column[these], begin[k, these])
                np.minimum.at(high[k], column[these], end[k, these])
        nowhere = np.any(count == 0, axis=1)
        high[nowhere] = low[nowhere] - 1
        return low, high

    @cached_property
    def _groups(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Demands by tree and column: their order, where each group begins, its tree and its column."""
        boxes = self._boxes
        owner = boxes.tree[boxes.leaf] * boxes.cells.columns.size + boxes.column
        order = np.argsort(owner, kind="stable")
        groups, starts = np.unique(owner[order], return_index=True)
        tree, column = np.divmod(groups, max(1, boxes.cells.columns.size))
        return order, starts, tree, column


class OutputRanges:
    """Of one problem; samples that a split leaves alone are not looked at again."""

    def __init__(self, trees: TreeProblem) -> None:
        self._trees = trees
        self._leaves = [LeafBounds(sample) for sample in trees.samples]
        sums = [s.outputs for s, one in zip(trees.samples, self._leaves, strict=True) if one.applies]
        self.sums = np.concatenate([np.empty(0, dtype=np.int64), *sums])
        """Outputs that are sums of leaves."""
        self._reading: list[list[int]] = [[] for _ in trees.cells.columns]
        for number, sample in enumerate(trees.samples):
            for place in np.unique(sample.boxes.column):
                self._reading[place].append(number)

    def tighten(self, nodes: list[Node], places: Sequence[int | None]) -> None:
        """Bounds of the outputs of samples that read the column a box was split by; None: of all."""
        todo: dict[int, list[Node]] = {}
        for node, place in zip(nodes, places, strict=True):
            for number in range(len(self._trees.samples)) if place is None else self._reading[place]:
                todo.setdefault(number, []).append(node)
        for number, boxes in todo.items():
            self._tighten(number, boxes)

    def _tighten(self, number: int, nodes: list[Node]) -> None:
        nodes = [node for node in nodes if np.all(node.low <= node.high)]  # others are empty: no leaf at all
        if not nodes:
            return
        sample, columns = self._trees.samples[number], self._trees.samples[number].outputs
        low, high = np.array([node.low for node in nodes]), np.array([node.high for node in nodes])
        reach, least, most = ranges_in(sample, low, high)
        if self._leaves[number].applies:
            lower, upper = (
                np.array([getattr(node, side)[columns] for node in nodes]) for side in ("lower", "upper")
            )
            before = reach
            reach, low, high = self._leaves[number].left(before, low, high, lower, upper)
            fewer = np.any(reach != before, axis=1) & np.all(low <= high, axis=1)
            if np.any(fewer):
                least[fewer], most[fewer] = output_range(sample, reach[fewer], high[fewer])
        for k, node in enumerate(nodes):
            node.low, node.high = low[k], high[k]
            node.lower[columns] = np.maximum(node.lower[columns], least[k])
            node.upper[columns] = np.minimum(node.upper[columns], most[k])
            node.reach[number] = reach[k]


def ranges_in(sample: TreeSample, low: IntArray, high: IntArray) -> tuple[BoolArray, FloatArray, FloatArray]:
    """(N, leaves) what boxes of cells (N, J) reach, (N, outputs) their least and largest output columns.

    A few boxes at a time: of a million leaves a hundred boxes would be a gigabyte.
    """
    ensemble = sample.boxes.ensemble
    parts = []
    for few in some_at_a_time(max(len(low), 1), ensemble.feature.size * ensemble.value.shape[1]):
        reach = sample.boxes.reachable(low[few], high[few])
        parts.append((reach, *output_range(sample, reach, high[few])))
    reach, least, most = (np.concatenate(part) for part in zip(*parts, strict=True))
    return reach, least, most


def output_range(sample: TreeSample, reach: BoolArray, cells: IntArray) -> tuple[FloatArray, FloatArray]:
    """(N, outputs) least and largest output columns in boxes that reach these leaves (N, leaves).

    `cells` (N, J) are some of each box. Where every tree is down to one leaf, an output that rounding leaves
    open is what the predictor itself says there: a class, or a sum or link in float32.
    """
    boxes, block = sample.boxes, sample.block
    reach = reach[:, :, None]
    low = np.minimum.reduceat(np.where(reach, boxes.value, np.inf), boxes.starts, axis=1)
    high = np.maximum.reduceat(np.where(reach, boxes.value, -np.inf), boxes.starts, axis=1)
    summed = boxes.ensemble.summed
    least, most = sample.decoded_range(summed(low), summed(high))
    apart = np.any(most - least > OPEN * np.maximum(1.0, np.abs(least)), axis=1)
    unclear = apart & np.all(low == high, axis=(1, 2))
    if np.any(unclear):
        rows = np.array([boxes.row(one) for one in cells[unclear]])
        least[unclear] = most[unclear] = block.decode(block.predictor.predict(rows))
    return least, most
