"""Weighted sums of tree ensembles are tree ensembles: means of them, and several side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.predictors.trees.assembly import Tree, assembled


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
    leaf = Tree(np.zeros(1, dtype=np.int64), np.zeros(1), none, none, base[None, :])
    return assembled([leaf], features=1, base=np.zeros(base.size))
