"""Trees of a library, one by one, put together into the flat form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import PredictorError
from dovetail.core.tree_ensemble import Link, TreeEnsemble
from dovetail.predictors.trees.pieces import Pieces, threshold_piece, written_out

Fold = Callable[[FloatArray], FloatArray]
"""Makes of a library's thresholds the largest float64 that it sends left."""


class Tree(NamedTuple):
    """One tree as libraries keep them: children by their number in it, below 0 at leaves."""

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray
    """(nodes, scores); that of splits does not matter."""
    pieces: Mapping[int, Pieces] = {}
    """By node, splits that are no threshold; cuts as they are meant in float64, with nothing to fold."""

    def categories(self) -> set[int]:
        """Features by whose categories it splits."""
        return {int(self.feature[node]) for node, asked in self.pieces.items() if asked.are_categories}

    def reading(self, features: IntArray) -> Tree:
        """The same tree over other features: the k-th of its own is `features[k]`."""
        return self._replace(feature=np.where(self.left < 0, 0, features[np.maximum(self.feature, 0)]))

    def scaled(self, factor: float) -> Tree:
        """The same tree, its leaves multiplied."""
        return self._replace(value=factor * self.value)

    def for_score(self, k: int, scores: int) -> Tree:
        """A tree of one score as one of several, of which it adds to the k-th."""
        if scores == 1:
            return self
        value = np.zeros((len(self.value), scores))
        value[:, k] = self.value[:, 0]
        return self._replace(value=value)


def assembled(
    trees: Iterable[Tree],
    *,
    features: int,
    base: ArrayLike,
    link: Link = "identity",
    dtype: Literal["float64", "float32"] = "float64",
    in_order: bool = False,
    fold: Fold = lambda thresholds: thresholds,
    categories: Iterable[int] = (),
) -> TreeEnsemble:
    """All trees in one list of nodes; `categories` are features, beside those that splits show to be such."""
    trees = list(trees)
    categories = {*categories, *(feature for tree in trees for feature in tree.categories())}
    trees, fold = _without_pieces(trees, fold)
    base = np.atleast_1d(np.asarray(base, dtype=np.float64))
    if not trees:
        trees = [_stump(base.size)]
    sizes = np.array([len(tree.feature) for tree in trees])
    if np.any(sizes == 0):
        raise PredictorError("a tree has no nodes.")
    first = np.cumsum(sizes) - sizes
    own, start = np.arange(sizes.sum()), np.repeat(first, sizes)
    left, right = (_joined(trees, side) for side in ("left", "right"))
    leaf = left < 0
    threshold = np.full(own.size, np.inf)
    splits = _joined(trees, "threshold")[~leaf].astype(np.float64)
    if np.any(np.isnan(splits)):
        raise PredictorError("a tree has NaN for a threshold; train it again.")
    threshold[~leaf] = fold(splits)
    value = np.where(leaf[:, None], np.concatenate([tree.value for tree in trees]), 0.0)
    size = np.repeat(sizes, sizes)
    if np.any((left >= size) | (right >= size) | (~leaf & (right < 0))):
        raise PredictorError("the trees are damaged: a child is no node.")
    return TreeEnsemble(
        features,
        np.where(leaf, 0, _joined(trees, "feature")).astype(np.int64),
        threshold,
        np.where(leaf, own, start + left).astype(np.int64),
        np.where(leaf, own, start + right).astype(np.int64),
        value,
        first.astype(np.int64),
        base,
        link,
        dtype,
        in_order,
        tuple(sorted(categories)),
    )


def _without_pieces(trees: list[Tree], fold: Fold) -> tuple[list[Tree], Fold]:
    """The same trees with thresholds alone, and what is left to fold of them."""
    if not any(tree.pieces for tree in trees):
        return trees, fold
    return [_thresholds_alone(tree, fold) for tree in trees], lambda thresholds: thresholds


def _thresholds_alone(tree: Tree, fold: Fold) -> Tree:
    splits = np.setdiff1d(np.flatnonzero(tree.left >= 0), [*tree.pieces])
    folded = fold(np.asarray(tree.threshold, dtype=np.float64)[splits])
    pieces = {int(node): threshold_piece(cut) for node, cut in zip(splits, folded, strict=True)}
    found = written_out(tree.feature, tree.left, tree.right, pieces | dict(tree.pieces))
    return Tree(
        np.array(found.feature),
        np.array(found.threshold),
        np.array(found.left),
        np.array(found.right),
        tree.value[found.source],
    )


def _joined(trees: list[Tree], part: str) -> FloatArray:
    return np.concatenate([np.asarray(getattr(tree, part)) for tree in trees])


def _stump(scores: int) -> Tree:
    """A leaf alone, that adds nothing."""
    none = np.full(1, -1)
    return Tree(np.zeros(1, dtype=np.int64), np.zeros(1), none, none, np.zeros((1, scores)))
