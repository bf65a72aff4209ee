"""The tree ensembles of a problem during branch and bound: ranges of outputs from the leaves within reach.

The least and the largest leaf value that a box can reach in each tree bound the outputs of the ensemble. The
LP contains no other rows of an ensemble. A box reaches the cells of its two ends and all cells between. A
value at most equal to a split value goes left, and the next larger number goes right. The two parts of a
branching at a split value therefore share no cell, and no solution is lost between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np

from dovetail.branching.divisions import NO_CUTS, Divisions
from dovetail.branching.effort import count_leaves
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.sparse import joined_ranges
from dovetail.structure.trees import InputCells, TreeSample

OPEN = 1e-10
"""Relative to max(1, |value|): above float64 rounding, and irrelevant for proofs."""
CELLS = 2**21
"""Boxes times nodes times scores processed together: two arrays of 16 MB."""
CLOSE = 1e-7
"""Relative to max(1, |value|): an LP's output this close to the trees' own is right."""
FLOOR = 1e-6
"""Smallest weight of a wrong output, relative to the largest, because its price may be 0 by chance."""
SAME = 1e-12
"""Relative: shares of cuts that differ by less are equal."""


class TreeSamples:
    """All samples of tree ensembles in a problem, with the columns that they read and write."""

    def __init__(self, cells: InputCells, samples: Sequence[TreeSample]) -> None:
        self._cells, self.samples = cells, tuple(samples)
        none = np.empty(0, dtype=np.int64)
        self.outputs = np.concatenate([none, *(sample.outputs for sample in samples)])
        """The columns that they write, sample by sample."""
        self.inputs = cells.columns
        """The columns that they read."""
        self._ends = np.cumsum([sample.outputs.size for sample in samples], dtype=np.int64)[:-1]
        self._read_twice = np.flatnonzero(np.isin(cells.columns, self.outputs))
        """Columns that trees write and trees read."""

    @cached_property
    def _blocks(self) -> list[list[TreeSample]]:
        """Samples of the same block together, in order."""
        return [list(same) for _, same in groupby(self.samples, key=lambda sample: sample.block.name)]

    @cached_property
    def _begin(self) -> FloatArray:
        """(cells,) the first number of each."""
        cells, begin = self._cells, self._cells.low.copy()
        later = np.setdiff1d(np.arange(begin.size), cells.first[:-1])
        begin[later] = np.maximum(begin[later], np.nextafter(cells.high[later - 1], np.inf))
        return begin

    @cached_property
    def _cut(self) -> list[FloatArray]:
        """The cuts of each column."""
        first, high = self._cells.first, self._cells.high
        return [high[a : b - 1] for a, b in pairwise(first)]

    def cells_of(self, x: FloatArray, places: IntArray | None = None) -> IntArray:
        """(N, places) the cells of points (N, columns)."""
        places = np.arange(len(self._cut)) if places is None else places
        found = np.empty((len(x), places.size), dtype=np.int64)
        for k, place in enumerate(places):
            found[:, k] = np.searchsorted(self._cut[place], x[:, self._cells.columns[place]])
        return found

    def columns_of(self, sample: TreeSample) -> IntArray:
        """The columns that a sample reads."""
        return self.inputs[np.unique(sample.boxes.place)]

    def cells_between(
        self, column: int, lower: float, upper: float
    ) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """The cells of a column between two bounds: their numbers, and their ends; a column that no tree
        reads is one cell."""
        place = int(np.searchsorted(self.inputs, column))
        if place == self.inputs.size or self.inputs[place] != column:
            return (
                np.zeros(1, dtype=np.int64),
                np.zeros(1, dtype=np.int64),
                np.array([lower]),
                np.array([upper]),
            )
        first, last = np.searchsorted(self._cut[place], [lower, upper])
        numbers = np.arange(first, last + 1)
        at = self._cells.first[place] + numbers
        return (
            numbers, numbers, np.maximum(self._cells.low[at], lower), np.minimum(self._cells.high[at], upper)
        )  # fmt: skip

    def tighten(self, lower: FloatArray, upper: FloatArray) -> None:
        """Tighten the outputs of N boxes by the reachable leaves, in place. Bounds that cross mean an empty
        box. (That bounds of outputs also rule out leaves, and inputs of these, saves a quarter of the boxes
        and no time.)"""
        if not len(lower) or not self.samples:
            return
        count_leaves(len(lower) * len(self.samples))
        low, high = self.cells_of(lower), self.cells_of(upper)
        for sample in self.samples:
            alive = np.flatnonzero(np.all(low <= high, axis=1))
            if alive.size:
                inside = np.ix_(alive, sample.outputs)
                least, most = ranges_in(sample, low[alive], high[alive])
                lower[inside], upper[inside] = (
                    np.maximum(lower[inside], least),
                    np.minimum(upper[inside], most),
                )
            if self._read_twice.size:
                self._again(low, high, lower, upper)

    def _again(self, low: IntArray, high: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Cells of columns that some trees write and others read."""
        places = self._read_twice
        low[:, places] = np.maximum(low[:, places], self.cells_of(lower, places))
        high[:, places] = np.minimum(high[:, places], self.cells_of(upper, places))

    def cuts(
        self, lower: FloatArray, upper: FloatArray, x: FloatArray, prices: FloatArray, most: int
    ) -> list[Divisions]:
        """Candidates for N boxes with the points of their LPs and (N, columns) reduced costs, at most
        `most` for each box: cuts that separate most of the LP's errors."""
        if not self.samples:
            return [NO_CUTS] * len(x)
        x = np.clip(x, lower, upper)
        low, high, cells = self.cells_of(lower), self.cells_of(upper), self.cells_of(x)
        price = np.abs(prices[:, self.outputs])
        price += FLOOR * np.maximum(1.0, np.abs(prices).max(1, initial=0.0))[:, None]
        wrong, leaves = self._wrong(cells, x)
        shares = np.zeros((len(x), self._cells.high.size + 1))
        each = np.split(wrong * price, self._ends, axis=1)
        for number, sample in enumerate(self.samples):
            which = np.flatnonzero(np.any(each[number] != 0.0, axis=1))
            if which.size:
                direction = np.sign(each[number]) * np.split(price, self._ends, axis=1)[number]
                some = low[which], high[which], cells[which], leaves[number][which]
                _share(sample, *some, direction[which], shares, which)
        return [
            self._best(*one, most)
            for one in zip(np.cumsum(shares, axis=1), low, high, np.abs(wrong * price), strict=True)
        ]

    def _wrong(self, cells: IntArray, x: FloatArray) -> tuple[FloatArray, list[IntArray]]:
        """(N, outputs) the trees' values minus the LP's, 0 if close enough; for each sample (N, trees)
        leaves."""
        n, wrong, leaves = len(x), [], []
        for same in self._blocks:
            first, ensemble = same[0], same[0].boxes.ensemble
            place = np.stack([sample.boxes.place for sample in same])
            rows = self._cells.high[self._cells.first[place] + cells[:, place]]
            at = ensemble.leaves(rows.reshape(-1, place.shape[1]))
            said = first.decoded(ensemble.summed(ensemble.value[at])).reshape(n, -1)
            off = said - x[:, np.concatenate([sample.outputs for sample in same])]
            wrong.append(np.where(np.abs(off) > CLOSE * np.maximum(1.0, np.abs(said)), off, 0.0))
            at = at.reshape(n, len(same), -1)
            leaves += [sample.boxes.number_of(at[:, k]) for k, sample in enumerate(same)]
        return np.concatenate(wrong, axis=1), leaves

    def _best(
        self, share: FloatArray, low: IntArray, high: IntArray, wrong: FloatArray, most: int
    ) -> Divisions:
        """The best cut of each of the best columns of one box; the widest column if there is none."""
        cells, flat = self._cells, list[int]()
        top = np.maximum.reduceat(share[:-1], cells.first[:-1]) if low.size else share[:0]
        places = np.argsort(-top, kind="stable")[:most]
        for place in places[top[places] > SAME * top.max(initial=0.0)] if np.any(wrong) else ():
            own = share[cells.first[place] : cells.first[place + 1]]
            same = np.flatnonzero(own >= top[place] * (1.0 - SAME))
            same = same[: np.flatnonzero(np.append(np.diff(same) > 1, True))[0] + 1]  # the first stretch
            flat.append(int(cells.first[place] + same[same.size // 2]))
        if not flat and np.any(wrong) and np.any(high > low):
            place = int(np.argmax(high - low))
            flat.append(int(cells.first[place] + (low[place] + high[place] - 1) // 2))
        at = np.array(flat, dtype=np.int64)
        columns = cells.columns[np.searchsorted(cells.first, at, side="right") - 1]
        return Divisions(columns, cells.high[at], self._begin[at + 1], wrong)


def _share(
    sample: TreeSample,
    low: IntArray,
    high: IntArray,
    cells: IntArray,
    active: IntArray,
    direction: FloatArray,
    steps: FloatArray,
    which: IntArray,
) -> None:
    """Distribute each tree's error over the cuts between the point and its best leaf, as differences along
    the cells: of N boxes, those `which` of `steps`."""
    boxes, trees = sample.boxes, len(sample.boxes.starts)
    if boxes.ensemble.link == "both classes":
        direction = direction[:, 1:] - direction[:, :1]
    every = direction @ boxes.value.T
    worth = np.where(boxes.reachable(low, high), every, np.inf)
    least = np.minimum.reduceat(worth, boxes.starts, axis=1)
    box, best = np.nonzero(worth == least[:, boxes.tree])
    owner = box * trees + boxes.tree[best]
    best = best[np.flatnonzero(np.append(True, np.diff(owner) > 0))]  # the first of equal cuts
    gain = (every[np.arange(len(low))[:, None], active] - least).ravel()
    better = np.flatnonzero(gain > 0.0)  # the point may be at a leaf that no better point has
    first, last = boxes.demands_from(best[better])
    demands, owner = joined_ranges(first, last), np.repeat(better, last - first)
    box, column = owner // trees, boxes.column[demands]
    at, low, high = cells[box, column], boxes.low[demands], boxes.high[demands]
    out = (at < low) | (at > high)
    owner, box, at, low, high = owner[out], box[out], at[out], low[out], high[out]
    share = gain[owner] / np.bincount(owner, minlength=gain.size)[owner]
    begin, end = np.where(at > high, high, at), np.where(at > high, at, low)
    start = boxes.cells.first[column[out]]
    np.add.at(steps, (which[box], start + begin), share)
    np.add.at(steps, (which[box], start + end), -share)


def ranges_in(sample: TreeSample, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
    """(N, outputs) the ranges of output columns in boxes of cells (N, J); a few boxes at a time, since a
    hundred of a million leaves would be a gigabyte."""
    boxes, ensemble = sample.boxes, sample.boxes.ensemble
    few, parts = max(1, CELLS // max(1, ensemble.feature.size * ensemble.value.shape[1])), []
    for begin in range(0, max(len(low), 1), few):
        some = slice(begin, begin + few)
        parts.append(output_range(sample, boxes.reachable(low[some], high[some]), high[some]))
    least, most = (np.concatenate(part) for part in zip(*parts, strict=True))
    return least, most


def output_range(sample: TreeSample, reach: BoolArray, cells: IntArray) -> tuple[FloatArray, FloatArray]:
    """(N, outputs) ranges of output columns in boxes that reach these leaves (N, leaves). `cells` (N, J) are
    some cells of each box. If every tree has one remaining leaf, an output that depends on rounding (a
    class, or a sum or link in float32) is the predictor's own answer there."""
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


NO_TREES = TreeSamples(InputCells(*np.zeros((2, 0), dtype=np.int64), *np.zeros((3, 0))), ())
"""The trees of a problem without any."""
