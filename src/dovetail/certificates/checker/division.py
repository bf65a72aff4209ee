"""The boxes of a tree's leaves: together they are all there is, which is what makes a proof of them."""

from __future__ import annotations

import numpy as np

from dovetail.certificates.checker.boxes import Boxes
from dovetail.certificates.proof import ProofTree
from dovetail.core.arrays import BoolArray, FloatArray, IntArray


class BrokenTree(ValueError):
    """The tree does not divide what it should."""


def leaf_boxes(
    tree: ProofTree,
    columns: IntArray,
    integer: BoolArray,
    lower: FloatArray,
    upper: FloatArray,
    neurons: int,
    total: int,
) -> Boxes:
    """Of every leaf, in order; columns, whether they are integers and their bounds are those of the part.

    `total` is the number of columns of the problem: variables from there on are neurons.
    """
    _require_sound(tree)
    place = {int(j): k for k, j in enumerate(columns)}
    signs = neurons if np.any(tree.variable >= total) else 0
    boxes = Boxes(*(np.empty((len(tree.leaves), n)) for n in (len(lower), len(lower), signs)))
    waiting = [(0 if len(tree.variable) else -1, lower, upper, np.zeros(signs))]
    while waiting:
        node, low, high, sign = waiting.pop()
        if node < 0:
            boxes.lower[-1 - node], boxes.upper[-1 - node], boxes.signs[-1 - node] = low, high, sign
            continue
        variable, at = int(tree.variable[node]), float(tree.at[node])
        for child, side in zip(tree.children[node].tolist(), (-1.0, 1.0), strict=True):
            if variable >= total:
                waiting.append((child, low, high, _signed(sign, variable - total, side)))
            elif variable in place:
                k = place[variable]
                waiting.append((child, *_cut(low, high, k, at, side, bool(integer[k])), sign))
            else:
                raise BrokenTree(f"split {node} is of column {variable}, which is not among the part's")
    return boxes


def _require_sound(tree: ProofTree) -> None:
    """Every split and every leaf is reached once, from a split before it."""
    splits, leaves = len(tree.variable), len(tree.leaves)
    if tree.children.shape != (splits, 2) or len(tree.at) != splits:
        raise BrokenTree("its arrays do not fit together")
    if splits == 0:
        if leaves != 1:
            raise BrokenTree(f"there is no split, but {leaves} leaves")
        return
    if np.any(tree.children[tree.children >= 0] >= splits) or np.any(-1 - tree.children >= leaves):
        raise BrokenTree("a split leads nowhere")
    later = np.where(tree.children >= 0, tree.children > np.arange(splits)[:, None], True)
    if not np.all(later):
        raise BrokenTree("a split leads back")
    once = np.sort(tree.children.ravel())
    if not np.array_equal(once, np.concatenate([np.arange(-leaves, 0), np.arange(1, splits)])):
        raise BrokenTree("a leaf or a split is missing, or is there twice")
    if not np.all(np.isfinite(tree.at)):
        raise BrokenTree("a split is at no number")


def _signed(sign: FloatArray, neuron: int, side: float) -> FloatArray:
    if neuron >= len(sign):
        raise BrokenTree(f"there is no neuron {neuron}")
    sign = sign.copy()
    sign[neuron] = side
    return sign


def _cut(
    lower: FloatArray, upper: FloatArray, k: int, at: float, side: float, whole: bool
) -> tuple[FloatArray, FloatArray]:
    """One half of a box: both have what lies on the cut, but a whole number is on one side only."""
    if side < 0.0:
        upper = upper.copy()
        upper[k] = min(upper[k], np.floor(at) if whole else at)
    else:
        lower = lower.copy()
        lower[k] = max(lower[k], np.floor(at) + 1.0 if whole else at)
    return lower, upper
