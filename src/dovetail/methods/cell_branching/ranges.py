"""What outputs can be in boxes of cells: of each tree the least and the largest leaf that a box can reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.methods.cell_branching.leaf_bounds import LeafBounds, some_at_a_time
from dovetail.methods.cell_branching.node import Node
from dovetail.structure.trees import TreeProblem, TreeSample

OPEN = 1e-10
"""Relative to max(1, |value|): float64 rounds by less, and nobody's proof hangs on that."""


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
