"""A tree for a bound that is known: boxes are halved until the checker sees that it holds on each of them.

    a box keeps its parent's multipliers; where they do not do, it gets those of its own LP; else it is halved

It needs nothing of how the bound was proved, and may take longer than that did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

import numpy as np

from dovetail.certificates.checker.boxes import Boxes
from dovetail.certificates.checker.leaf_values import PartValues, Values, take
from dovetail.certificates.proof import Leaves, Tree
from dovetail.certifying.leaf_multipliers import leaf_multipliers
from dovetail.core.arrays import BoolArray, FloatArray, IntArray

BATCH = 256
"""Boxes at a time."""
NARROW = 1e-9
"""A box this narrow, relative to the first, is not halved: it ends with what it has."""
EXACT = 1e-8
"""Planes this close to each other, relative to the bound, gain nothing by a halving: the box ends too."""
GAP_WEIGHT = 0.5
"""Of how planes part, beside their slopes, where to halve a box."""

Hook = tuple[int, int]
"""Where a box hangs in the tree: a split, and which of its children."""


@dataclass(frozen=True, eq=False)
class _Open:
    """Boxes to look at, and the multipliers to begin with."""

    boxes: Boxes
    leaves: Leaves
    hooks: list[Hook]
    value: FloatArray
    """What is known of each from its parent: the lowest is looked at first."""

    def take(self, chosen: IntArray) -> _Open:
        """Some of them."""
        hooks = [self.hooks[k] for k in chosen]
        return _Open(self.boxes.take(chosen), take(self.leaves, chosen), hooks, self.value[chosen])

    def joined(self, other: _Open) -> _Open:
        """Both together."""
        pairs = (
            (getattr(self.boxes, name), getattr(other.boxes, name)) for name in ("lower", "upper", "signs")
        )
        return _Open(
            Boxes(*(np.concatenate(pair) for pair in pairs)),
            _joined([self.leaves, other.leaves]),
            self.hooks + other.hooks,
            np.concatenate([self.value, other.value]),
        )


@dataclass
class _Grown:
    """The tree so far; splits are appended after their parents."""

    variable: list[int] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)
    leaves: list[Leaves] = field(default_factory=list)
    count: int = 0
    value: float = np.inf

    def hang(self, hook: Hook, child: int) -> None:
        """Put a split or a leaf where its box hangs."""
        split, side = hook
        if split >= 0:
            self.children[split][side] = child

    def split(self, hook: Hook, variable: int, at: float) -> int:
        """One more split; its number."""
        number = len(self.variable)
        self.hang(hook, number)
        self.variable.append(variable)
        self.at.append(at)
        self.children.append([0, 0])
        return number

    def tree(self) -> Tree:
        """As a certificate has it."""
        children = np.array(self.children, dtype=np.int64).reshape(-1, 2)
        return Tree(
            np.array(self.variable, np.int64), np.array(self.at, float), children, _joined(self.leaves)
        )


def grow(
    values: PartValues, target: float, over: Callable[[], object], most_leaves: int
) -> tuple[Tree, float]:
    """A tree whose leaves all reach the target, and what they reach; less where it is `over` before."""
    growth = _Growth(values, target)
    pool = _Open(values.root, _plain(values), [(-1, 0)], np.full(1, -np.inf))
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
        self.grown = _Grown()

    def step(self, batch: _Open, *, stop: bool) -> _Open:
        """Close what can be closed; the halves of the rest."""
        if stop:  # a box may be all there is time for: it has what its parent had
            return self._ended(batch)
        prepared = self._values.prepared(batch.boxes)
        leaves = batch.leaves
        found = self._values.values_of(prepared, leaves, both=True)
        short = np.flatnonzero(found.value < self._target)
        if short.size:
            some = prepared.take(short)
            own = leaf_multipliers(self._values.plane_rows(some))
            leaves, found = _better(leaves, own, found, self._values.values_of(some, own, both=True), short)
        score = self._scores(batch.boxes, found)
        ends = (found.value >= self._target) | (score.max(axis=1, initial=0.0) <= 0.0)
        ends |= self._exact(batch.boxes, found)
        self._close(batch, leaves, found.value, np.flatnonzero(ends))
        return self._halved(batch, leaves, score, found.value, np.flatnonzero(~ends))

    def _ended(self, batch: _Open) -> _Open:
        """All leaves, whatever they prove."""
        every = np.arange(len(batch.hooks))
        for first in range(0, every.size, BATCH):
            some = batch.take(every[first : first + BATCH])
            found = self._values.values(some.boxes, some.leaves)
            self._close(some, some.leaves, found.value, np.arange(len(some.hooks)))
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
        relative = np.where(wide, width / np.where(root > 0.0, root, 1.0), 0.0)
        return np.where(wide, score + 1e-9 * relative * (1.0 + score.max(axis=1, keepdims=True)), 0.0)

    def _close(self, batch: _Open, leaves: Leaves, value: FloatArray, which: IntArray) -> None:
        for k in which.tolist():
            self.grown.hang(batch.hooks[k], -1 - self.grown.count)
            self.grown.count += 1
        if which.size:
            self.grown.leaves.append(take(leaves, which))
            self.grown.value = min(self.grown.value, float(value[which].min()))

    def _halved(
        self, batch: _Open, leaves: Leaves, score: FloatArray, value: FloatArray, which: IntArray
    ) -> _Open:
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
        return _Open(halves, _joined([part, part]), hooks, np.tile(value[which], 2))


def _plain(values: PartValues) -> Leaves:
    """The first box: no multipliers at all."""
    joint = values.joint
    sizes = (values.rows.size, joint.regression.size, joint.classes.size)
    rows, bounds, conditions = (np.zeros((1, size)) for size in sizes)
    return Leaves(np.ones(1), rows, bounds, conditions)


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
    gap = found.gap.copy()
    gap[places] = own_found.gap[better]
    return Leaves(**arrays), Values(value, slopes, apart, gap)


def _joined(parts: list[Leaves]) -> Leaves:
    parts = [part for part in parts if len(part)] or parts[:1]
    arrays = {place.name: [getattr(part, place.name) for part in parts] for place in fields(Leaves)}
    return Leaves(
        **{
            name: values[0] if values[0].shape == (0, 0) else np.concatenate(values)
            for name, values in arrays.items()
        }
    )
