"""The record of a branch-and-bound tree: its branchings, its leaves, and the multipliers that close each
leaf.

A *place* is the position of a box in the tree, as given by the branchings alone. The checker recomputes
every other reduction of the box (by constraints, networks or the objective limit); reduced costs do not cut a
box that is recorded. The checker examines every leaf as soon as the tree closes the leaf. If the
checker cannot confirm the leaf, the leaf is reopened: first for an LP of its own, then for branching.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from dovetail.bounds.box import UNIT
from dovetail.branching.model import Model
from dovetail.branching.relaxation import Multipliers
from dovetail.certificates.checker.leaf_values import PartValues
from dovetail.certificates.checker.region import Boxes
from dovetail.certificates.checker.verification import looked_at
from dovetail.certificates.proof import Leaves, ProofTree
from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block

CLOSE = 1e-7
"""Relative: the largest difference of the tree and the checker in the same bound."""


@dataclass(eq=False)
class LpMultipliers:
    """Multipliers of one LP, with the reduced costs of columns."""

    multipliers: Multipliers
    reduced: FloatArray
    objective: float
    """1, or 0 if the multipliers prove emptiness."""
    number: int = -1
    """The number of these multipliers among those that leaves use."""


@dataclass(eq=False)
class Place:
    """A box made by divisions alone, over all columns of the model, with its place in the tree."""

    split: int
    side: int
    lower: FloatArray
    upper: FloatArray
    asked: bool = False
    """Whether an own LP was solved for the box because of the checker."""
    done: bool = False
    """Whether the box was divided or closed."""


class Record:
    """The divisions and leaves of one tree; `values` is the checker of the whole problem."""

    def __init__(self, model: Model, blocks: Sequence[Block], values: PartValues, goal: float) -> None:
        """`blocks` are those of the model's networks; `goal` is the bound that each leaf should prove,
        constant included."""
        self._values, self.value, self._columns = values, math.inf, values.columns.size
        self._offset = model.host.offset
        self.aim = self._required(goal)
        self._translation = _Translation(model, blocks, values)
        self._inner = self._translation.neurons
        self._number = {int(j): self._columns + k for k, j in enumerate(self._inner)}
        self._variable, self._at, self._children = list[int](), list[float](), list[list[int]]()
        self._kept, self._uses = [self._translation.leaves(None)], list[int]()
        self._waiting: list[tuple[Place, LpMultipliers | None, float]] = []
        endless = np.full(model.lower.size - self._columns, np.inf)
        self.root = Place(-1, 0, np.append(values.lower, -endless), np.append(values.upper, endless))

    @property
    def bytes(self) -> int:
        """Size of the record."""
        numbers = sum(int(getattr(self._kept[0], f.name).size) for f in fields(Leaves))
        return 8 * (numbers * len(self._kept) + 5 * len(self._uses))

    def divided(self, place: Place, column: int, below: float, above: float) -> tuple[Place, Place]:
        """Divide a place in two at a column: up to `below`, and from `above` on."""
        at = below + 0.5 if above - below >= 1.0 and self._whole(column) else below
        number, place.done = len(self._variable), True
        self._hang(place, number)
        self._variable.append(self._number.get(column, column))
        self._at.append(at)
        self._children.append([0, 0])
        upper, lower = place.upper.copy(), place.lower.copy()
        upper[column], lower[column] = min(upper[column], below), max(lower[column], above)
        return Place(number, 0, place.lower, upper), Place(number, 1, lower, place.upper)

    def _whole(self, column: int) -> bool:
        return bool(column < self._columns and self._values.integer[column])

    def close(self, place: Place, shown: LpMultipliers | None, bound: float = math.inf) -> None:
        """Close a place if these multipliers prove the goal, or this bound, to the checker."""
        place.done = True
        self._waiting.append((place, shown, self._required(bound)))

    def _required(self, bound: float) -> float:
        """The bound required of the checker, whose costs have no constant and other rounding."""
        if not math.isfinite(bound):
            return bound
        without = bound - self._offset
        return without - CLOSE * (1.0 + abs(without)) - 8.0 * UNIT * (abs(bound) + abs(self._offset))

    def looked_at(self) -> list[tuple[Place, LpMultipliers | None]]:
        """The pieces that the checker does not see closed, which are open again."""
        waiting, self._waiting, failed = self._waiting, [], []
        if not waiting:
            return []
        places, numbers = [place for place, *_ in waiting], [self._numbered(shown) for _, shown, _ in waiting]
        found = self._proved(places, numbers)
        if any(bound == -math.inf for *_, bound in waiting):
            plain = self._proved(places, [0] * len(places))
            numbers = [0 if other > mine else n for n, mine, other in zip(numbers, found, plain, strict=True)]
            found = np.maximum(found, plain)
        for (place, shown, bound), number, proved in zip(waiting, numbers, found, strict=True):
            if proved >= min(self.aim, bound):
                self._leaf(place, number, proved)
            else:
                place.done = False
                failed.append((place, shown))
        return failed

    def tree(self) -> ProofTree:
        """The tree in the form of a certificate."""
        used, uses = np.unique(np.array(self._uses, dtype=np.int64), return_inverse=True)
        children = np.array(self._children, dtype=np.int64).reshape(-1, 2)
        leaves = _joined([self._kept[k] for k in used])
        return ProofTree(
            np.array(self._variable, np.int64), np.array(self._at, float), children, leaves, uses
        )

    def _hang(self, place: Place, child: int) -> None:
        if place.split >= 0:
            self._children[place.split][place.side] = child

    def _leaf(self, place: Place, number: int, proved: float) -> None:
        self._hang(place, -1 - len(self._uses))
        self._uses.append(number)
        self.value = min(self.value, proved)
        self.aim = min(self.aim, self.value)  # no other leaf has to prove more

    def _numbered(self, shown: LpMultipliers | None) -> int:
        if shown is None:
            return 0
        if shown.number < 0:
            shown.number = len(self._kept)
            self._kept.append(self._translation.leaves(shown))
        return shown.number

    def _proved(self, places: Sequence[Place], numbers: Sequence[int]) -> FloatArray:
        some = np.arange(self._columns)
        if any(variable >= self._columns for variable in self._variable):
            some = np.append(some, self._inner)
        boxes = Boxes(np.stack([p.lower[some] for p in places]), np.stack([p.upper[some] for p in places]))
        leaves = _joined([self._kept[number] for number in numbers])
        found = looked_at(self._values, boxes, leaves, self.aim)
        return np.where(np.isinf(found) | (leaves.objective == 1.0), found, -math.inf)


class _Translation:
    """Maps multipliers of the tree's LP to those of the checker."""

    def __init__(self, model: Model, blocks: Sequence[Block], values: PartValues) -> None:
        joint, self._rows = values.joint, values.rows.size
        self._regression = joint.regression
        self._neurons, self._conditions = joint.neurons, joint.classes.size
        network = {block.name: k for k, block in enumerate(blocks)}
        self._samples = [(network[one.block.name], one.number) for one in joint.samples]
        inner = [model.networks[k].inner for k, _ in self._samples]
        self._places = [sorted(places) for places in inner]
        self.neurons = np.concatenate(
            [
                np.empty(0, dtype=np.int64),
                *(
                    places[p][i]
                    for places, (_, i) in zip(inner, self._samples, strict=True)
                    for p in sorted(places)
                ),
            ]
        )
        """The model's columns of the checker's neurons."""
        first, links = self._rows, {}
        for block in blocks:
            q = block.outputs.shape[1]
            for i in range(block.samples if block.classifies else 0):
                links[network[block.name], i] = first
                first += 2 if q == 1 else 1 + q * (q - 1)
        self._classes = [
            (
                network[one.block.name],
                one.number,
                links[network[one.block.name], one.number],
                one.outputs.size,
            )
            for one, _ in joint.logits
        ]

    def leaves(self, shown: LpMultipliers | None) -> Leaves:
        """A leaf with the multipliers that close it; without multipliers the leaf has the costs alone."""
        size = self.neurons.size
        if shown is None:
            return Leaves(
                np.ones(1), np.zeros((1, self._rows)),
                np.zeros((1, self._regression.size + self._conditions)),
                np.zeros((1, self._conditions)), np.full((1, size), np.nan), np.zeros((1, size)),
            )  # fmt: skip
        y, networks = shown.multipliers.rows[0], shown.multipliers.networks
        conditions, logits = [np.empty(0)], [np.empty(0)]
        for k, i, first, q in self._classes:
            given, moved = _of_class(y[first:], q)
            conditions.append(given)
            logits.append(moved - networks[k].outputs[0, i].numpy())
        slopes, held = [np.empty(0)], [np.empty(0)]
        for (k, i), places in zip(self._samples, self._places, strict=True):
            for place in places:
                held.append(networks[k].held[place][0, i].numpy())
                none = np.full(held[-1].shape, np.nan)
                slopes.append(
                    networks[k].slopes[place][0, i].numpy() if place in networks[k].slopes else none
                )
        bounds = np.concatenate([shown.reduced[self._regression], *logits])
        parts = (y[: self._rows], bounds, *(np.concatenate(one) for one in (conditions, slopes, held)))
        return Leaves(np.array([shown.objective]), *(part[None] for part in parts))


def _of_class(y: FloatArray, q: int) -> tuple[FloatArray, FloatArray]:
    """(q,) multipliers of one class's conditions from those of its rows (`class_links`), and their effect on
    the logits' coefficients."""
    if q == 1:
        given = y[:1] + y[1:2]  # at most one of the two rows limits anything
        return given, -given
    pairs = np.zeros((q, q))
    pairs[~np.eye(q, dtype=bool)] = np.maximum(-y[1 : 1 + q * (q - 1)], 0.0)
    winner = int(np.argmax(pairs.sum(1)))
    moved = pairs[winner].copy()
    moved[winner] = -moved.sum()
    return pairs[winner], moved


def _joined(parts: Sequence[Leaves]) -> Leaves:
    names = [place.name for place in fields(Leaves)]
    return Leaves(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})
