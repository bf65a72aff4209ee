"""What a tree grows from: the boxes that are still open, and the splits and leaves so far."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from dovetail.certificates.checker.boxes import Boxes
from dovetail.certificates.checker.leaf_values import take
from dovetail.certificates.proof import Leaves, ProofTree
from dovetail.core.arrays import BoolArray, FloatArray, IntArray

Hook = tuple[int, int]
"""Where a box hangs in the tree: a split, and which of its children."""


@dataclass(frozen=True, eq=False)
class OpenBoxes:
    """Boxes to look at, and the multipliers to begin with."""

    boxes: Boxes
    leaves: Leaves
    hooks: list[Hook]
    value: FloatArray
    """What is known of each from its parent: the lowest is looked at first."""
    whole: BoolArray
    """Whether something may be cut off: a piece that was, and did not close, is halved first."""

    def take(self, chosen: IntArray) -> OpenBoxes:
        """Some of them."""
        hooks = [self.hooks[k] for k in chosen]
        boxes, leaves = self.boxes.take(chosen), take(self.leaves, chosen)
        return OpenBoxes(boxes, leaves, hooks, self.value[chosen], self.whole[chosen])

    def joined(self, other: OpenBoxes) -> OpenBoxes:
        """Both together."""
        pairs = (
            (getattr(self.boxes, name), getattr(other.boxes, name)) for name in ("lower", "upper", "signs")
        )
        return OpenBoxes(
            Boxes(*(np.concatenate(pair) for pair in pairs)),
            joined_leaves([self.leaves, other.leaves]),
            self.hooks + other.hooks,
            np.concatenate([self.value, other.value]),
            np.concatenate([self.whole, other.whole]),
        )


@dataclass
class GrownTree:
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

    def tree(self) -> ProofTree:
        """As a certificate has it."""
        children = np.array(self.children, dtype=np.int64).reshape(-1, 2)
        return ProofTree(
            np.array(self.variable, np.int64), np.array(self.at, float), children, joined_leaves(self.leaves)
        )


def joined_leaves(parts: list[Leaves]) -> Leaves:
    """All of them, in order."""
    parts = [part for part in parts if len(part)] or parts[:1]
    arrays = {place.name: [getattr(part, place.name) for part in parts] for place in fields(Leaves)}
    return Leaves(
        **{
            name: values[0] if values[0].shape == (0, 0) else np.concatenate(values)
            for name, values in arrays.items()
        }
    )
