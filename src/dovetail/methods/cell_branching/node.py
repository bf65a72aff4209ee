"""A box of cells on its way through the search: what is left of it, and where it is cut.

The LP of a box takes for every tree the best leaf that the box can reach, all at once, and a point that may
be in none of them. What each tree is off by at that point is shared out over the cuts that lie between
the point and the tree's best leaf; the cut with the largest share separates most of what is wrong.

The multipliers that prove a box's bound prove more for the parts of it that are far from where its LP puts an
input or an output: bound + |reduced cost| times the distance. Cells and outputs for which that is beyond the
best point are left out. Then fewer leaves can be reached in the box's halves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import TOLERANCE
from dovetail.structure.trees import InputCells, TreeProblem, TreeSample

CLOSE = 1e-7
"""Outputs of an LP that are this close to the trees' own, relative to max(1, |value|), are right."""
FLOOR = 1e-6
"""The least weight of an output that is wrong, relative to the largest: its price may be 0 by chance."""
SAFE = 1e-9
"""Relative: what is left for the rounding of reduced costs and products, a million times as much as they are
off by."""


@dataclass(frozen=True)
class Split:
    """Where a box is cut in two: after a cell of a column, or after a whole number of an integer column."""

    place: int
    """Of a column among those of the cells (`by_cells`), or its number in the host."""
    after: int
    by_cells: bool


@dataclass(order=True)
class Node:
    """Cells from `low` to `high`, what is known of the outputs there, and where to split."""

    bound: float
    number: int
    low: IntArray = field(compare=False)
    high: IntArray = field(compare=False)
    lower: FloatArray = field(compare=False)
    """(columns,) bounds of the host: integers as they were split, outputs as the trees have them."""
    upper: FloatArray = field(compare=False)
    split: Split | None = field(default=None, compare=False)
    reach: dict[int, BoolArray] = field(default_factory=dict, compare=False)
    """Leaves that can be reached, by the number of the sample: while the box is being looked at."""

    def halves(self) -> list[Node]:
        """Both sides of the split, outputs not looked at yet."""
        assert self.split is not None
        place, after = self.split.place, self.split.after
        left = Node(self.bound, self.number, self.low, self.high.copy(), self.lower.copy(), self.upper.copy())
        right = Node(
            self.bound, self.number, self.low.copy(), self.high, self.lower.copy(), self.upper.copy()
        )
        if self.split.by_cells:
            left.high[place], right.low[place] = after, after + 1
        else:
            left.upper[place], right.lower[place] = after, after + 1
        return [left, right]

    @property
    def empty(self) -> bool:
        """Whether some column has nothing left."""
        return bool(np.any(self.low > self.high) or np.any(self.lower > self.upper))


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


class Prices(NamedTuple):
    """What an LP says of all columns (columns,)."""

    reduced: FloatArray
    noise: FloatArray
    """The sizes of what reduced costs are the sums of."""
    room: float
    """How much more than the bound may be paid."""

    def limits(
        self, columns: IntArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Between which some columns stay for that, where the LP has them between these bounds."""
        price = self.reduced[columns]
        sure = np.abs(price) - SAFE * self.noise[columns]
        far = np.full(columns.size, np.inf)
        np.divide(self.room, sure, out=far, where=sure > 0.0)
        with np.errstate(invalid="ignore"):  # no end, times or less something
            far = far * (1.0 + SAFE) + SAFE * (1.0 + np.abs(lower) + np.abs(upper))
            least = np.where((price < 0.0) & np.isfinite(upper), upper - far, -np.inf)
            most = np.where((price > 0.0) & np.isfinite(lower), lower + far, np.inf)
        return least, most


def tighten(cells: InputCells, outputs: IntArray, node: Node, prices: Prices) -> bool:
    """Leave out cells and outputs for which more has to be paid, in place; whether cells were.

    Of outputs `outputs` alone: those that are sums, not classes.
    """
    if not np.isfinite(prices.room) or prices.room < 0.0:
        return False
    own, before = cells.columns, (node.low, node.high)
    lower = np.maximum(node.lower[own], cells.low[cells.flat(node.low)])
    upper = np.minimum(node.upper[own], cells.high[cells.flat(node.high)])
    least, most = prices.limits(own, lower, upper)
    node.low = np.maximum(node.low, cells.first_up_to(least))
    node.high = np.minimum(node.high, cells.last_from(most))
    least, most = prices.limits(outputs, node.lower[outputs], node.upper[outputs])
    node.lower[outputs] = np.maximum(node.lower[outputs], least)
    node.upper[outputs] = np.minimum(node.upper[outputs], most)
    return bool(np.any(node.low > before[0]) or np.any(node.high < before[1]))
