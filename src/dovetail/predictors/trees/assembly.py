"""Trees of a library, one by one, put together into the flat form.

What a library's comparison means for float64: the largest number that it sends left.

A split is a question that numbers answer with yes up to some point, and with no beyond it. Where that point
is can be found without knowing how the question is asked (with < or <=, after a cast, behind a scaler): by
bisection over all float64, which takes 64 questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import PredictorError
from dovetail.core.tree_ensemble import Link, TreeEnsemble
from dovetail.predictors.trees.pieces import LinePieces, threshold_piece, written_out

Fold = Callable[[FloatArray], FloatArray]
"""Makes of a library's thresholds the largest float64 that it sends left."""


_SIGN = np.int64(-(2**63))
_LARGEST = np.finfo(np.float64).max


class ReadTree(NamedTuple):
    """One tree as libraries keep them: children by their number in it, below 0 at leaves."""

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray
    """(nodes, scores); that of splits does not matter."""
    pieces: Mapping[int, LinePieces] = {}
    """By node, splits that are no threshold; cuts as they are meant in float64, with nothing to fold."""

    def categories(self) -> set[int]:
        """Features by whose categories it splits."""
        return {int(self.feature[node]) for node, asked in self.pieces.items() if asked.are_categories}

    def reading(self, features: IntArray) -> ReadTree:
        """The same tree over other features: the k-th of its own is `features[k]`."""
        return self._replace(feature=np.where(self.left < 0, 0, features[np.maximum(self.feature, 0)]))

    def scaled(self, factor: float) -> ReadTree:
        """The same tree, its leaves multiplied."""
        return self._replace(value=factor * self.value)

    def for_score(self, k: int, scores: int) -> ReadTree:
        """A tree of one score as one of several, of which it adds to the k-th."""
        if scores == 1:
            return self
        value = np.zeros((len(self.value), scores))
        value[:, k] = self.value[:, 0]
        return self._replace(value=value)


def assembled(
    trees: Iterable[ReadTree],
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


def _without_pieces(trees: list[ReadTree], fold: Fold) -> tuple[list[ReadTree], Fold]:
    """The same trees with thresholds alone, and what is left to fold of them."""
    if not any(tree.pieces for tree in trees):
        return trees, fold
    return [_thresholds_alone(tree, fold) for tree in trees], lambda thresholds: thresholds


def _thresholds_alone(tree: ReadTree, fold: Fold) -> ReadTree:
    splits = np.setdiff1d(np.flatnonzero(tree.left >= 0), [*tree.pieces])
    folded = fold(np.asarray(tree.threshold, dtype=np.float64)[splits])
    pieces = {int(node): threshold_piece(cut) for node, cut in zip(splits, folded, strict=True)}
    found = written_out(tree.feature, tree.left, tree.right, pieces | dict(tree.pieces))
    return ReadTree(
        np.array(found.feature),
        np.array(found.threshold),
        np.array(found.left),
        np.array(found.right),
        tree.value[found.source],
    )


def _joined(trees: list[ReadTree], part: str) -> FloatArray:
    return np.concatenate([np.asarray(getattr(tree, part)) for tree in trees])


def _stump(scores: int) -> ReadTree:
    """A leaf alone, that adds nothing."""
    none = np.full(1, -1)
    return ReadTree(np.zeros(1, dtype=np.int64), np.zeros(1), none, none, np.zeros((1, scores)))


def combined(ensembles: Sequence[TreeEnsemble], weights: Sequence[FloatArray]) -> TreeEnsemble:
    """sum of weights[i] times the outputs of ensembles[i]; a weight is (outputs in all, outputs of its own).

    A link is no weighted sum: what has one is refused.
    """
    if any(one.link != "identity" for one in ensembles):
        raise PredictorError("a sum of what trees give behind a link is no tree ensemble.")
    parts = [one for own in ensembles for one in (own, _alone(own.base))]
    weights = [by for by in weights for _ in range(2)]
    offsets = np.cumsum([0, *(len(one.feature) for one in parts[:-1])])
    return TreeEnsemble(
        features=ensembles[0].features,
        feature=np.concatenate([one.feature for one in parts]),
        threshold=np.concatenate([one.threshold for one in parts]),
        left=np.concatenate([one.left + begin for one, begin in zip(parts, offsets, strict=True)]),
        right=np.concatenate([one.right + begin for one, begin in zip(parts, offsets, strict=True)]),
        value=np.concatenate([one.value @ by.T for one, by in zip(parts, weights, strict=True)]),
        roots=np.concatenate([one.roots + begin for one, begin in zip(parts, offsets, strict=True)]),
        base=np.zeros(len(weights[0])),
        dtype="float32" if any(one.dtype == "float32" for one in ensembles) else "float64",
        categories=tuple(sorted({feature for one in ensembles for feature in one.categories})),
    )


def _alone(base: FloatArray) -> TreeEnsemble:
    """A base as a tree of one leaf: bases of several may cancel out, what each was rounded by does not."""
    none = np.full(1, -1)
    leaf = ReadTree(np.zeros(1, dtype=np.int64), np.zeros(1), none, none, base[None, :])
    return assembled([leaf], features=1, base=np.zeros(base.size))


def largest_going_left(goes_left: Callable[[FloatArray], BoolArray], count: int) -> FloatArray:
    """(count,) for each of so many questions the largest float64 answered with yes; -infinity if none is,
    infinity if all are.

    `goes_left` answers all of them at once, each for a number of its own.
    """
    yes, no = np.full(count, _rank(-_LARGEST)), np.full(count, _rank(_LARGEST) + 1)
    while np.any(no - 1 > yes):
        middle = (yes >> 1) + (no >> 1) + (yes & no & 1)
        with np.errstate(over="ignore"):
            left = goes_left(_number(middle))
        yes, no = np.where(left, middle, yes), np.where(left, no, middle)
    found = _number(yes)
    with np.errstate(over="ignore"):
        return np.where(goes_left(found), np.where(found == _LARGEST, np.inf, found), -np.inf)


def float32_at_most(thresholds: FloatArray) -> FloatArray:
    """x goes left where float32(x) <= threshold: scikit-learn's trees, and CatBoost's."""
    return largest_going_left(lambda x: x.astype(np.float32) <= thresholds, thresholds.size)


def float32_below(thresholds: FloatArray) -> FloatArray:
    """x goes left where float32(x) < threshold: XGBoost's trees."""
    return largest_going_left(lambda x: x.astype(np.float32) < thresholds, thresholds.size)


def _rank(number: float) -> np.int64:
    """Floats in their order as whole numbers."""
    bits = np.float64(number).view(np.int64)
    return np.int64(bits if bits >= 0 else _SIGN - bits)


def _number(rank: np.ndarray) -> FloatArray:
    bits = np.where(rank >= 0, rank, _SIGN - rank)
    return np.asarray(bits).view(np.float64)
