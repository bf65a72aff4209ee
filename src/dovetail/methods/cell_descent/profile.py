"""The exact profile: what one sample's trees say after every move of a single input, in one pass.

A move of one column changes the leaf of a tree only where the new leaf was missed by that column alone. So

    leaves missed by one demand      add their values on the cells that meet it
    leaves missed by none            take theirs away on the cells that do not

as differences along the cells, summed up once. It costs as much as there are demands, whatever the number of
cells: 37,000 moves of 300 trees take 5 ms, where evaluating them takes three seconds.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.structure.trees import InputCells, LeafBoxes


class MoveProfile:
    """Of one sample; made once, asked about many points."""

    def __init__(self, boxes: LeafBoxes, cells: InputCells) -> None:
        self._boxes = boxes
        self.columns = np.unique(boxes.column)
        """Those that change anything, by their place among the cells' columns."""
        counts = cells.counts[self.columns]
        self._first = np.concatenate([[0], np.cumsum(counts + 1)])
        """One more slot than a column has cells takes back what lasts to its last one."""
        place = np.searchsorted(self.columns, boxes.column)
        self._place, self._begin = place, self._first[place] + boxes.low
        self._end = self._first[place] + boxes.high + 1
        slots = np.arange(self._first[-1])
        self._kept = np.setdiff1d(slots, self._first[1:] - 1)
        self._owner = np.repeat(np.arange(self.columns.size), counts)
        self.flat = np.concatenate(
            [
                np.empty(0, dtype=np.int64),
                *(np.arange(cells.first[j], cells.first[j + 1]) for j in self.columns),
            ]
        )
        """(moves,) the cell that each move leads to, among all cells."""

    def scores(self, cells: IntArray) -> FloatArray:
        """(moves, scores) after each move from a point in these cells (J,)."""
        boxes = self._boxes
        out = boxes.missed(cells)
        misses = np.bincount(boxes.leaf[out], minlength=boxes.leaves)
        gained = np.flatnonzero(out & (misses[boxes.leaf] == 1))
        held = np.flatnonzero(misses[boxes.leaf] == 0)
        total = boxes.ensemble.base + boxes.value[misses == 0].sum(axis=0)
        both = np.concatenate([gained, held])
        found = np.empty((self.flat.size, total.size))
        for o in range(total.size):
            weight = boxes.value[boxes.leaf[both], o]
            steps = np.bincount(self._begin[both], weight, self._first[-1])
            steps -= np.bincount(self._end[both], weight, self._first[-1])
            lost = np.bincount(self._place[held], boxes.value[boxes.leaf[held], o], self.columns.size)
            found[:, o] = total[o] + np.cumsum(steps)[self._kept] - lost[self._owner]
        return found
