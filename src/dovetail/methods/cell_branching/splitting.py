"""Where to cut a box: between the point its LP likes and the leaves that its LP counts on.

The LP of a box takes for every tree the best leaf that the box can reach, all at once, and a point that may
be in none of them. What each tree is off by at that point is shared out over the cuts that lie between
the point and the tree's best leaf; the cut with the largest share separates most of what is wrong.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import TOLERANCE
from dovetail.methods.cell_branching.node import Node, Split
from dovetail.structure.trees import TreeProblem, TreeSample

CLOSE = 1e-7
"""Outputs of an LP that are this close to the trees' own, relative to max(1, |value|), are right."""
FLOOR = 1e-6
"""The least weight of an output that is wrong, relative to the largest: its price may be 0 by chance."""


def split_of(trees: TreeProblem, node: Node, x: FloatArray, reduced: FloatArray) -> Split | None:
    """The cut that separates most of what is wrong at the LP's point; None where nothing is."""
    cells = np.clip(trees.cells.of_point(x), node.low, node.high)
    wrong = _wrong(trees, cells, x)
    if np.any(wrong):
        found = _between(trees, node, cells, wrong, reduced) or widest(trees, node)
        if found is not None:
            return found
    return _fractional(trees, node, x)


def widest(trees: TreeProblem, node: Node) -> Split | None:
    """The middle of the column with most cells, where there is no point to go by; then any integer."""
    spread = node.high - node.low
    if spread.size and spread.max() > 0:
        place = int(np.argmax(spread))
        return Split(place, int(node.low[place] + (spread[place] - 1) // 2), by_cells=True)
    free = np.where(trees.host.integer, node.upper - node.lower, 0.0)
    j = int(np.argmax(free))
    if not 0.0 < free[j] < np.inf:
        return None
    return Split(j, int(np.floor(0.5 * (node.lower[j] + node.upper[j]))), by_cells=False)


def _wrong(trees: TreeProblem, cells: IntArray, x: FloatArray) -> FloatArray:
    """(columns,) what the trees say less what the LP says, of outputs; 0 where that is close enough."""
    outputs, said = trees.problem.outputs, trees.outputs_at(cells)
    wrong = np.zeros(x.size)
    wrong[outputs] = said[outputs] - x[outputs]
    return np.where(np.abs(wrong) > CLOSE * np.maximum(1.0, np.abs(said)), wrong, 0.0)


def _between(
    trees: TreeProblem, node: Node, cells: IntArray, wrong: FloatArray, reduced: FloatArray
) -> Split | None:
    price = np.abs(reduced) + FLOOR * max(1.0, float(np.max(np.abs(reduced), initial=0.0)))
    steps = np.zeros(trees.cells.high.size + 1)
    for number, sample in enumerate(trees.samples):
        off = wrong[sample.outputs]
        if np.any(off):
            reach = node.reach.get(number)
            if reach is None:
                reach = sample.boxes.reachable(node.low[None], node.high[None])[0]
            _share(sample, reach, cells, _by_score(sample, np.sign(off) * price[sample.outputs]), steps)
    share = np.cumsum(steps)[:-1]
    k = int(np.argmax(share))
    if share[k] <= 0.0:
        return None
    same = np.flatnonzero(share >= share[k] * (1.0 - 1e-12))
    same = same[: np.flatnonzero(np.append(np.diff(same) > 1, True))[0] + 1]  # the first stretch of these
    k = int(same[same.size // 2])
    place = int(np.searchsorted(trees.cells.first, k, side="right")) - 1
    return Split(place, k - int(trees.cells.first[place]), by_cells=True)


def _by_score(sample: TreeSample, direction: FloatArray) -> FloatArray:
    """(scores,) the same of scores: outputs rise with their own."""
    if sample.boxes.ensemble.link == "both classes":
        return direction[1:] - direction[:1]
    return direction


def _share(
    sample: TreeSample, reach: BoolArray, cells: IntArray, direction: FloatArray, steps: FloatArray
) -> None:
    """Add what each tree is off by to the cuts between the point and its best leaf."""
    boxes = sample.boxes
    every = boxes.value @ direction
    worth = np.where(reach, every, np.inf)
    least = np.minimum.reduceat(worth, boxes.starts)
    best = np.flatnonzero(worth == least[boxes.tree])
    best = best[np.searchsorted(boxes.tree[best], np.arange(least.size))]  # the first of equal ones
    gain = every[boxes.active(cells)] - least  # the point may be at a leaf that nothing better has
    demands = boxes.demands_of(best[gain > 0.0])
    at, low, high = cells[boxes.column[demands]], boxes.low[demands], boxes.high[demands]
    out = (at < low) | (at > high)
    demands, at, low, high = demands[out], at[out], low[out], high[out]
    tree = boxes.tree[boxes.leaf[demands]]
    share = gain[tree] / np.bincount(tree, minlength=least.size)[tree]
    first = boxes.cells.first[boxes.column[demands]]
    begin, end = np.where(at > high, high, at), np.where(at > high, at, low)
    np.add.at(steps, first + begin, share)
    np.add.at(steps, first + end, -share)


def _fractional(trees: TreeProblem, node: Node, x: FloatArray) -> Split | None:
    """The least whole integer column."""
    integer = trees.host.integer & (node.upper > node.lower)
    apart = np.where(integer, np.abs(x - np.round(x)), 0.0)
    j = int(np.argmax(apart))
    if apart[j] <= TOLERANCE:
        return None
    return Split(j, int(np.floor(x[j])), by_cells=False)
