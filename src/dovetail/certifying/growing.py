"""A tree for a bound that is known: boxes are halved until the checker sees that it holds on each of them.

    a box keeps its parent's multipliers; where they do not do, what single rows exclude is cut off; where
    that is little, it gets the multipliers of its own LP, and what they exclude is cut off, or it is halved

It needs nothing of how the bound was proved, and may take longer than that did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np

from dovetail.certificates.checker.boxes import Boxes
from dovetail.certificates.checker.leaf_values import PartValues, Prepared, Values, take
from dovetail.certificates.checker.verification import what_is_proved
from dovetail.certificates.proof import Leaves, ProofTree
from dovetail.certifying.leaf_multipliers import leaf_multipliers, leaf_programs
from dovetail.certifying.open_boxes import GrownTree, OpenBoxes, joined_leaves
from dovetail.certifying.trimming import Cut, Pieces, cuts_by_multipliers, cuts_by_rows
from dovetail.core.arrays import BoolArray, FloatArray, IntArray

BATCH = 256
"""Boxes at a time."""
NARROW = 1e-9
"""A box this narrow, relative to the first, is not halved: it ends with what it has."""
EXACT = 1e-8
"""Planes this close to each other, relative to the bound, gain nothing by a halving: the box ends too."""
SPARE = 1e-9
"""A leaf says by so much that nothing is there: a checker that computes in other batches, or on another
processor, must see it too."""
GAP_WEIGHT = 0.5
"""Of how planes part, beside their slopes, where to halve a box."""


def grow(
    values: PartValues, target: float, over: Callable[[], object], most_leaves: int
) -> tuple[ProofTree, float]:
    """A tree whose leaves all reach the target, and what they reach; less where it is `over` before."""
    growth = _Growth(values, target)
    pool = OpenBoxes(values.root, _plain(values), [(-1, 0)], np.full(1, -np.inf), np.ones(1, dtype=bool))
    while pool.hooks:
        stop = bool(over()) or growth.grown.count + len(pool.hooks) > most_leaves
        taken = np.arange(len(pool.hooks)) if stop else np.argsort(pool.value, kind="stable")[:BATCH]
        left = np.setdiff1d(np.arange(len(pool.hooks)), taken)
        halves = growth.step(pool.take(taken), stop=stop)
        pool = pool.take(left).joined(halves)
    return growth.grown.tree(), growth.grown.value


class _Growth:
    def __init__(self, values: PartValues, target: float) -> None:
        self._values, self._target = values, target
        self.grown = GrownTree()

    def step(self, batch: OpenBoxes, *, stop: bool) -> OpenBoxes:
        """Close what can be closed; the halves of the rest."""
        if stop:  # a box may be all there is time for: it has what its parent had
            return self._ended(batch)
        prepared = self._values.prepared(batch.boxes)
        leaves = batch.leaves
        found = self._looked_at(prepared, leaves)
        cuts: list[list[Cut]] = [[] for _ in batch.hooks]
        short = np.flatnonzero(found.value < self._target)
        if short.size:
            some = prepared.take(short)
            programs = leaf_programs(self._values.plane_rows(some))
            cut = cuts_by_rows(programs, self._values.integer, self._target)
            kept = np.array([not (cut[i] and batch.whole[k]) for i, k in enumerate(short)], dtype=bool)
            for i in np.flatnonzero(~kept):
                cuts[short[i]] = cut[i]
            if kept.any():
                own = leaf_multipliers(programs.take(np.flatnonzero(kept)))
                looked = self._looked_at(some.take(kept), own)
                leaves, found = _better(leaves, own, found, looked, short[kept])
        score = self._scores(batch.boxes, found)
        trimmed = np.array([bool(cut) for cut in cuts])
        ends = (found.value >= self._target) | (score.max(axis=1, initial=0.0) <= 0.0)
        ends |= self._exact(batch.boxes, found)
        ends &= ~trimmed
        self._close(batch, leaves, found.value, np.flatnonzero(ends))
        self._cut_by_multipliers(batch, leaves, found, ends, cuts)
        trimmed = np.array([bool(cut) for cut in cuts])
        halves = self._halved(batch, leaves, score, found.value, np.flatnonzero(~ends & ~trimmed))
        return self._trimmed(batch, leaves, found.value, cuts).joined(halves)

    def _looked_at(self, prepared: Prepared, leaves: Leaves) -> Values:
        found = self._values.values_of(prepared, leaves, both=True)
        spare = np.where(leaves.objective == 1.0, 0.0, SPARE)
        return replace(found, value=what_is_proved(leaves, found.value - spare))

    def _cut_by_multipliers(
        self, batch: OpenBoxes, leaves: Leaves, found: Values, ends: BoolArray, cuts: list[list[Cut]]
    ) -> None:
        """What the multipliers of boxes that stay open exclude of them."""
        v = self._values
        bare = np.array([not cut for cut in cuts])
        which = np.flatnonzero(~ends & bare & batch.whole & np.isfinite(found.value))
        more = cuts_by_multipliers(
            batch.boxes.take(which), v.variables, found.reduced[which], found.value[which],
            take(leaves, which), v.integer, self._target,
        )  # fmt: skip
        for k, cut in zip(which.tolist(), more, strict=True):
            cuts[k] = cut

    def _trimmed(
        self, batch: OpenBoxes, leaves: Leaves, value: FloatArray, cuts: list[list[Cut]]
    ) -> OpenBoxes:
        """The pieces, and what is left of the boxes."""
        pieces = Pieces(self.grown, self._values.columns, self._values.integer)
        for k, cut in enumerate(cuts):
            if cut:
                one = np.array([k])
                pieces.add(batch.boxes.take(one), take(leaves, one), batch.hooks[k], float(value[k]), cut)
        return pieces.open_boxes(batch)

    def _ended(self, batch: OpenBoxes) -> OpenBoxes:
        """All leaves, whatever they prove."""
        every = np.arange(len(batch.hooks))
        for first in range(0, every.size, BATCH):
            some = batch.take(every[first : first + BATCH])
            prepared, plain = self._values.prepared(some.boxes), _plain(self._values, len(some.hooks))
            found, least = (self._looked_at(prepared, leaves) for leaves in (some.leaves, plain))
            every_one = np.arange(len(some.hooks))
            leaves, found = _better(some.leaves, plain, found, least, every_one)
            self._close(some, leaves, found.value, every_one)
        return batch.take(every[:0])

    def _exact(self, boxes: Boxes, found: Values) -> BoolArray:
        """Boxes whose planes leave nothing to gain, all integers decided."""
        at = self._values.variables[self._values.integer[self._values.variables]]
        decided = (boxes.upper[:, at] <= boxes.lower[:, at]).all(axis=1)
        return np.asarray(decided & (found.gap <= EXACT * (1.0 + abs(self._target))))

    def _scores(self, boxes: Boxes, found: Values) -> FloatArray:
        """(N, variables) what a halving may gain; 0 for what is not to be halved."""
        v = self._values
        at = v.variables
        width, root = boxes.upper[:, at] - boxes.lower[:, at], v.upper[at] - v.lower[at]
        wide = np.isfinite(width) & (width > NARROW * np.where(np.isfinite(root), 1.0 + root, 1.0))
        wide &= v.split_worthy
        score = (np.abs(found.slopes) + GAP_WEIGHT * np.abs(found.apart)) * np.where(wide, width, 0.0)
        score = np.nan_to_num(score)
        relative = np.where(wide, width, 0.0) / np.where(root > 0.0, root, 1.0)
        return np.where(wide, score + 1e-9 * relative * (1.0 + score.max(axis=1, keepdims=True)), 0.0)

    def _close(self, batch: OpenBoxes, leaves: Leaves, value: FloatArray, which: IntArray) -> None:
        for k in which.tolist():
            self.grown.hang(batch.hooks[k], -1 - self.grown.count)
            self.grown.count += 1
        if which.size:
            self.grown.leaves.append(take(leaves, which))
            self.grown.value = min(self.grown.value, float(value[which].min()))
            self._target = min(self._target, self.grown.value)  # no other leaf has to prove more

    def _halved(
        self, batch: OpenBoxes, leaves: Leaves, score: FloatArray, value: FloatArray, which: IntArray
    ) -> OpenBoxes:
        v = self._values
        boxes, part, rows = batch.boxes.take(which), take(leaves, which), np.arange(which.size)
        column = v.variables[np.argmax(score[which], axis=1)]
        middle = 0.5 * (boxes.lower[rows, column] + boxes.upper[rows, column])
        splits = [
            self.grown.split(batch.hooks[place], int(v.columns[column[k]]), float(middle[k]))
            for k, place in enumerate(which.tolist())
        ]
        whole = v.integer[column]
        upper, lower = boxes.upper.copy(), boxes.lower.copy()
        upper[rows, column] = np.where(whole, np.floor(middle), middle)
        lower[rows, column] = np.where(whole, np.floor(middle) + 1.0, middle)
        halves = Boxes(
            np.concatenate([boxes.lower, lower]),
            np.concatenate([upper, boxes.upper]),
            np.zeros((2 * which.size, 0)),
        )
        hooks = [(k, side) for side in (0, 1) for k in splits]
        return OpenBoxes(
            halves,
            joined_leaves([part, part]),
            hooks,
            np.tile(value[which], 2),
            np.ones(2 * which.size, dtype=bool),
        )


def _plain(values: PartValues, count: int = 1) -> Leaves:
    """No multipliers at all, as the first box has them."""
    joint = values.joint
    sizes = (values.rows.size, joint.regression.size, joint.classes.size)
    rows, bounds, conditions = (np.zeros((count, size)) for size in sizes)
    return Leaves(np.ones(count), rows, bounds, conditions)


def _better(
    leaves: Leaves, own: Leaves, found: Values, own_found: Values, short: IntArray
) -> tuple[Leaves, Values]:
    """With the boxes' own multipliers where those prove more."""
    better = own_found.value > found.value[short]
    places = short[better]
    arrays = {}
    for place in fields(Leaves):
        array = getattr(leaves, place.name)
        if array.shape != (0, 0):
            array = array.copy()
            array[places] = getattr(own, place.name)[better]
        arrays[place.name] = array
    value, slopes, apart = found.value.copy(), found.slopes.copy(), found.apart.copy()
    value[places] = own_found.value[better]
    slopes[places], apart[places] = own_found.slopes[better], own_found.apart[better]
    gap, reduced = found.gap.copy(), found.reduced.copy()
    gap[places], reduced[places] = own_found.gap[better], own_found.reduced[better]
    return Leaves(**arrays), Values(value, slopes, apart, gap, reduced)
