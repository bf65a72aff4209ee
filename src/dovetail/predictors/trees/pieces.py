"""Splits that are no single threshold, written out as several: by a set of categories, or with a number that
counts as missing and has a way of its own.

All of them cut the line of one feature into pieces, each of which goes left or right. A binary search over
the pieces takes the place of the split; what is below is written once for each piece, less the parts that
cannot be reached from it. (A way on which three features are asked for five pieces each is 125 ways then:
beyond `MOST_NODES` a model is refused.)

Between two categories nothing is defined: they are told apart half way, and their columns must be integer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.errors import UnsupportedError

MOST_NODES = 2**20
"""Of one tree, once it is written out: some hundred megabytes; those of real models have thousands."""
Box = dict[int, tuple[float, float]]
"""By feature what is known of it on the way to a node: above the first, and at most the second."""


class LinePieces(NamedTuple):
    """(cuts[i - 1], cuts[i]] goes left where goes_left[i]; the first and the last piece have no end."""

    cuts: FloatArray
    goes_left: BoolArray
    are_categories: bool = False
    """Whether only whole numbers mean something."""

    def but(self, low: float, high: float, goes_left: bool) -> LinePieces:
        """The same, except that (low, high] goes to one side."""
        cuts = np.unique(np.concatenate([self.cuts, [low, high]]))
        ends = np.append(cuts, np.inf)
        before = self.goes_left[np.searchsorted(self.cuts, ends)]
        return self._replace(cuts=cuts, goes_left=np.where((ends > low) & (ends <= high), goes_left, before))

    def turned(self, other_way: bool) -> LinePieces:
        """With left for right, if so."""
        return self._replace(goes_left=self.goes_left != other_way)

    def within(self, low: float, high: float) -> LinePieces:
        """Only what lies in (low, high]; neighbours that go the same way are one piece."""
        inside = np.flatnonzero((self.cuts > low) & (self.cuts < high))
        first = int(np.searchsorted(self.cuts, low, side="right"))
        cuts, sides = self.cuts[inside], self.goes_left[first : first + inside.size + 1]
        turns = np.flatnonzero(sides[1:] != sides[:-1])
        return LinePieces(cuts[turns], sides[np.append(turns, sides.size - 1)])


def threshold_piece(cut: float) -> LinePieces:
    """An ordinary split."""
    return LinePieces(np.array([cut]), np.array([True, False]))


def category_pieces(categories: Iterable[int], *, goes_left: bool) -> LinePieces:
    """A set of whole numbers goes to one side, all others to the other."""
    numbers = np.unique(np.fromiter(categories, dtype=np.float64))
    first = numbers[np.append(True, np.diff(numbers) > 1.0)] if numbers.size else numbers
    last = numbers[np.append(np.diff(numbers) > 1.0, True)] if numbers.size else numbers
    cuts = np.stack([first - 0.5, last + 0.5], axis=1).ravel()
    inside = np.arange(cuts.size + 1) % 2 == 1
    return LinePieces(cuts, np.where(inside, goes_left, not goes_left), are_categories=True)


class WrittenTree(NamedTuple):
    """A tree written out: children by number, below 0 at leaves; `source`: the node that each stands for."""

    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    source: list[int]


def written_out(
    feature: np.ndarray, left: np.ndarray, right: np.ndarray, pieces: dict[int, LinePieces]
) -> WrittenTree:
    """The tree whose splits ask for `pieces`, with thresholds alone; several may lead to the same node."""
    found = WrittenTree([], [], [], [], [])
    _new(found)
    waiting: list[tuple[int, int, Box]] = [(0, 0, {})]
    while waiting:
        place, node, box = waiting.pop()
        found.source[place] = node
        if left[node] < 0:
            continue
        j = int(feature[node])
        ends = box.get(j, (-np.inf, np.inf))
        asked = pieces[node].within(*ends)
        limits = [ends[0], *asked.cuts.tolist(), ends[1]]
        ways = [(0, len(asked.goes_left), place)]
        while ways:
            first, end, at = ways.pop()
            if end - first == 1:
                below = int((left if asked.goes_left[first] else right)[node])
                waiting.append((at, below, box | {j: (limits[first], limits[end])}))
            else:
                middle = (first + end) // 2
                found.feature[at], found.threshold[at], found.source[at] = j, limits[middle], node
                found.left[at], found.right[at] = _new(found), _new(found)
                ways += [(first, middle, found.left[at]), (middle, end, found.right[at])]
    return found


def _new(found: WrittenTree) -> int:
    if len(found.source) >= MOST_NODES:
        raise UnsupportedError(
            f"a tree takes more than {MOST_NODES} nodes once all its splits are thresholds; it could be "
            "trained with fewer categories, or less deep, or have fewer rules."
        )
    found.feature.append(0)
    found.threshold.append(0.0)
    found.left.append(-1)
    found.right.append(-1)
    found.source.append(0)
    return len(found.source) - 1
