"""Parts of boxes that need no looking at: a row excludes them, or a box's multipliers reach the bound there.

    row z >= side           with all other columns at their best a column cannot be beyond some number
    value + reduced_j (z_j - lower_j) >= target        beyond some z_j, for the multipliers the box has

What is cut off is a leaf of its own, with the row's multiplier or those of the box, and the box goes on
smaller. It is what input branching does to its boxes; there they just get smaller, here somebody else has to
see why. Nothing has to be exact: a piece that does not close after all is a box like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from dovetail.branching.planes.shrinking import row_limits
from dovetail.certificates.checker.boxes import Boxes
from dovetail.certificates.checker.leaf_values import take
from dovetail.certificates.proof import Leaves
from dovetail.certifying.leaf_multipliers import LeafPrograms
from dovetail.certifying.open_boxes import GrownTree, Hook, OpenBoxes
from dovetail.core.arrays import BoolArray, FloatArray, IntArray

WORTH = 0.2
"""Of a column's width: less is not cut off, since every piece is a leaf to be kept and looked at."""
INSIDE = 1e-6
"""Of a column's width: so far beyond what is excluded a piece begins, lest rounding keeps it open."""
WHOLE = 1e-6
"""How far above a whole number an integer's limit may be and still be it."""
NARROW = 1e-9
"""A column this narrow, relative to its size, is not cut."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A split of a box of which one side is done."""

    column: int
    """Its place in the part."""
    at: float
    above: bool
    """Whether what is above is cut off, or what is below."""
    leaf: Leaves
    """One: the multipliers that close the piece."""


@dataclass(frozen=True, eq=False)
class _Limits:
    """(N, columns) where columns can be, and which row says so."""

    below: FloatArray
    above: FloatArray
    below_row: IntArray
    above_row: IntArray


def cuts_by_rows(programs: LeafPrograms, integer: BoolArray, target: float) -> list[list[Cut]]:
    """Of every box: by single rows and planes, and by the cost alone."""
    n = integer.size
    limits = _row_limits(programs, n, target)
    box = Boxes(programs.lower[:, :n], programs.upper[:, :n], np.zeros((len(programs.lower), 0)))
    found: list[list[Cut]] = [[] for _ in box.lower]
    for k, column, at, above in _worthwhile(box, limits.below, limits.above, integer):
        row = int((limits.above_row if above else limits.below_row)[k, column])
        found[k].append(Cut(column, at, above, _single(programs, k, row, column, above)))
    return found


def cuts_by_multipliers(
    boxes: Boxes, columns: IntArray, reduced: FloatArray, value: FloatArray, leaves: Leaves,
    integer: BoolArray, target: float,
) -> list[list[Cut]]:  # fmt: skip
    """Of every box: by a linear function over `columns`, of which `value` is the least."""
    lower, upper = boxes.lower[:, columns], boxes.upper[:, columns]
    room = (target - value)[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step = np.where(reduced != 0.0, room / np.abs(reduced), np.inf)
        below = np.where(reduced < 0.0, upper - step, -np.inf)
        above = np.where(reduced > 0.0, lower + step, np.inf)
    below, above = np.nan_to_num(below, nan=-np.inf), np.nan_to_num(above, nan=np.inf)
    found: list[list[Cut]] = [[] for _ in value]
    box = Boxes(lower, upper, boxes.signs)
    for k, j, at, side in _worthwhile(box, below, above, integer[columns]):
        found[k].append(Cut(int(columns[j]), at, side, take(leaves, np.array([k]))))
    return found


def _row_limits(programs: LeafPrograms, n: int, target: float) -> _Limits:
    with torch.inference_mode():
        every_below, every_above = row_limits(programs.linear_programs(), target)
        below, below_row = every_below[:, :, :n].max(dim=1)
        above, above_row = every_above[:, :, :n].min(dim=1)
    return _Limits(below.numpy(), above.numpy(), below_row.numpy(), above_row.numpy())


def _single(programs: LeafPrograms, k: int, row: int, column: int, above: bool) -> Leaves:
    """One row's multiplier, or none but the cost's: it is missed where the column is beyond its limit."""
    one = programs.take(np.array([k]))
    y = np.zeros((1, one.rows.shape[1]))
    if row == y.size:
        return one.leaves(np.ones(1), y)
    upward = (one.rows[0, row, column] > 0.0) == above  # the row's own upper side is the one missed
    y[0, row] = -1.0 if upward else 1.0
    return one.leaves(np.zeros(1), y)


def _worthwhile(
    boxes: Boxes, below: FloatArray, above: FloatArray, integer: BoolArray
) -> Sequence[tuple[int, int, float, bool]]:
    """Box, column, where, and which side: of limits that take enough of a column."""
    width = boxes.upper - boxes.lower
    size = 1.0 + np.maximum(np.abs(boxes.lower), np.abs(boxes.upper))
    wide = np.isfinite(width) & (width > NARROW * size)
    pad = INSIDE * np.where(wide, width, 0.0)
    at_above = np.where(integer, np.floor(above + WHOLE) + 0.5, above + pad)
    at_below = np.where(integer, np.ceil(below - WHOLE) - 0.5, below - pad)
    found = []
    for at, side in ((at_above, True), (at_below, False)):
        taken = boxes.upper - at if side else at - boxes.lower
        for k, j in np.argwhere(wide & np.isfinite(at) & (taken >= WORTH * width)).tolist():
            inside = min(max(float(at[k, j]), float(boxes.lower[k, j])), float(boxes.upper[k, j]))
            found.append((k, j, inside, side))
    return found


class Pieces:
    """Boxes that fall apart, hung into a tree."""

    def __init__(self, tree: GrownTree, columns: IntArray, integer: BoolArray) -> None:
        self._tree, self._columns, self._integer = tree, columns, integer
        self._found: list[OpenBoxes] = []

    def add(self, box: Boxes, leaf: Leaves, hook: Hook, value: float, cuts: list[Cut]) -> None:
        """One box: each cut is a split, of which one side is a piece and the other goes on."""
        for cut in cuts:
            lower, upper = box.lower[0, cut.column], box.upper[0, cut.column]
            if (cut.at <= lower) if cut.above else (cut.at >= upper):  # nothing is left
                self._hang(box, cut.leaf, hook, value, whole=False)
                return
            if not lower < cut.at < upper:
                continue
            split = self._tree.split(hook, int(self._columns[cut.column]), cut.at)
            halves = self._halves(box, cut)
            self._hang(halves[cut.above], cut.leaf, (split, int(cut.above)), value, whole=False)
            box, hook = halves[not cut.above], (split, int(not cut.above))
        self._hang(box, leaf, hook, value, whole=True)

    def open_boxes(self, like: OpenBoxes) -> OpenBoxes:
        """All of them; `like` says what none of them looks like."""
        joined = like.take(np.arange(0))
        for one in self._found:
            joined = joined.joined(one)
        return joined

    def _hang(self, box: Boxes, leaf: Leaves, hook: Hook, value: float, *, whole: bool) -> None:
        self._found.append(OpenBoxes(box, leaf, [hook], np.array([value]), np.array([whole])))

    def _halves(self, box: Boxes, cut: Cut) -> tuple[Boxes, Boxes]:
        lower, upper = box.lower.copy(), box.upper.copy()
        whole = self._integer[cut.column]
        upper[0, cut.column] = np.floor(cut.at) if whole else cut.at
        lower[0, cut.column] = np.floor(cut.at) + 1.0 if whole else cut.at
        return Boxes(box.lower, upper, box.signs), Boxes(lower, box.upper, box.signs)
