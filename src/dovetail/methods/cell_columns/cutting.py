"""Where to cut boxes of a component, many at once: at the leaves that their least use counts on.

A box is looked at where it is nearest to a point that uses little. If the outputs there are those that its
least use counts on, there is nothing to cut. If not, some trees have better leaves elsewhere in the box. It
is cut in the column that most of what is missing lies behind, at the edge of the leaf that brings most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.sparse import joined_ranges
from dovetail.structure.trees import TreeProblem, TreeSample

CLOSE, FLOOR = 1e-7, 1e-6
"""As in cell branching: outputs that are this close are right; the least weight of one that is not."""


class Cuts(NamedTuple):
    """Of N boxes."""

    cells: IntArray
    """(N, J) where each was looked at."""
    place: IntArray
    """(N,) the column of the cut, among those of the cells; -1 where outputs are as counted on."""
    after: IntArray
    """(N,) its cell."""


class _Missed(NamedTuple):
    """What better leaves ask of columns, and the point looked at does not have."""

    box: IntArray
    column: IntArray
    after: IntArray
    gain: FloatArray


def cuts_of(trees: TreeProblem, low: IntArray, high: IntArray, x: FloatArray, price: FloatArray) -> Cuts:
    """Of boxes (N, J), looked at in points (N, columns) whose outputs are as their least use has them."""
    cells = np.clip(_cells_of(trees, x), low, high)
    wrong, found = np.zeros(len(low), dtype=bool), []
    for sample in trees.samples:
        off, leaves = _off(trees, sample, cells, x)
        boxes = np.flatnonzero(np.any(off != 0.0, axis=1))
        wrong[boxes] = True
        if boxes.size:
            found.append(_missed(sample, boxes, low, high, cells, leaves, off, price))
    place, after = widest(low, high)
    place[~wrong] = -1
    if found:
        _chosen(
            _Missed(*(np.concatenate(parts) for parts in zip(*found, strict=True))),
            place,
            after,
            low.shape[1],
        )
    return Cuts(cells, place, after)


def _cells_of(trees: TreeProblem, x: FloatArray) -> IntArray:
    """(N, J) of points (N, columns)."""
    cells = trees.cells
    return np.stack(
        [
            np.searchsorted(cells.high[cells.first[k] : cells.first[k + 1] - 1], x[:, j], side="left")
            for k, j in enumerate(cells.columns)
        ],
        axis=1,
    )


def widest(low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """(N,) the columns with most cells of boxes (N, J), and their middles; column -1 where each has one."""
    place, each = np.argmax(high - low, axis=1), np.arange(len(low))
    begin = low[each, place]
    spread = high[each, place] - begin
    return np.where(spread > 0, place, -1), begin + (spread - 1) // 2


def _off(
    trees: TreeProblem, sample: TreeSample, cells: IntArray, x: FloatArray
) -> tuple[FloatArray, IntArray]:
    """(N, outputs) what the trees say less what was counted on, 0 where that is close; (N, trees) by which
    leaves."""
    boxes = sample.boxes
    rows = trees.cells.high[trees.cells.first[boxes.place] + cells[:, boxes.place]]
    leaves = boxes.ensemble.leaves(rows)
    said = sample.decoded(boxes.ensemble.summed(boxes.ensemble.value[leaves]))
    off = said - x[:, sample.outputs]
    return np.where(np.abs(off) > CLOSE * np.maximum(1.0, np.abs(said)), off, 0.0), leaves


def _missed(
    sample: TreeSample,
    which: IntArray,
    low: IntArray,
    high: IntArray,
    cells: IntArray,
    leaves: IntArray,
    off: FloatArray,
    price: FloatArray,
) -> _Missed:
    """By the best leaf of every tree that each box can reach."""
    boxes, least_price = sample.boxes, FLOOR * max(1.0, float(np.max(np.abs(price), initial=0.0)))
    direction = np.sign(off[which]) * (np.abs(price[sample.outputs]) + least_price)
    if boxes.ensemble.link == "both classes":
        direction = direction[:, 1:] - direction[:, :1]
    worth = np.where(boxes.reachable(low[which], high[which]), direction @ boxes.value.T, np.inf)
    active = boxes.number_of(leaves[which])
    ends = [*boxes.starts[1:], boxes.leaves]
    best = np.stack(
        [a + np.argmin(worth[:, a:b], axis=1) for a, b in zip(boxes.starts, ends, strict=True)], axis=1
    )
    each = np.arange(which.size)[:, None]
    gain = (worth[each, active] - worth[each, best]).ravel()
    better = np.flatnonzero(gain > 0.0)
    leaf = best.ravel()[better]
    first, last = boxes.demands_from(leaf)
    demand, owner = joined_ranges(first, last), np.repeat(better, last - first)
    box = which[owner // best.shape[1]]
    at, column = cells[box, boxes.column[demand]], boxes.column[demand]
    below, above = at < boxes.low[demand], at > boxes.high[demand]
    out = below | above
    after = np.where(above, boxes.high[demand], boxes.low[demand] - 1)[out]
    share = gain[owner][out] / np.maximum(np.bincount(owner[out], minlength=gain.size), 1)[owner[out]]
    return _Missed(box[out], column[out], after, share)


def _chosen(missed: _Missed, place: IntArray, after: IntArray, columns: int) -> None:
    """The column with most to gain and there the cut of the one that brings most; in place."""
    total = np.bincount(missed.box * columns + missed.column, missed.gain, place.size * columns)
    total = total.reshape(-1, columns)
    there = np.any(total > 0.0, axis=1)
    place[there] = np.argmax(total[there], axis=1)
    own = np.flatnonzero(missed.column == place[missed.box])
    own = own[np.lexsort((missed.gain[own], missed.box[own]))]
    after[missed.box[own]] = missed.after[own]  # the last one stays
