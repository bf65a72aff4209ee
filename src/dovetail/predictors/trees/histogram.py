"""The trees of scikit-learn's histogram gradient boosting, with its splits by categories.

A number goes left where it is at most the threshold, in float64. A category goes left where it is in the
split's set of bits, right where it was seen in training and is not, and else where missing values go. Before
the trees the estimator numbers the categories that it has seen, and puts their columns first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.predictors.scikit_learn.encoders import categories_read, is_numeric
from dovetail.predictors.trees.assembly import ReadTree
from dovetail.predictors.trees.pieces import category_pieces


def histogram_trees(estimator: Any, scores: int) -> Iterator[ReadTree]:
    """Over the features as they are given, categories by the numbers that `categories_read` has for them."""
    known = [_numbers(estimator, names) for names, _ in categories_read(estimator).values()]
    order = _columns_in_order(estimator) if known else None
    for stage in estimator._predictors:
        for k, one in enumerate(stage):
            tree = _tree(one, known).for_score(k, scores)
            yield tree if order is None else tree.reading(order)


def _numbers(estimator: Any, categories: Any) -> FloatArray:
    if not is_numeric(categories):
        return np.arange(len(categories), dtype=np.float64)
    numbers = np.asarray(categories, dtype=np.float64)
    if not np.array_equal(numbers, np.round(numbers)):
        raise UnsupportedError(
            f"{type(estimator).__name__} has categories that are no whole numbers; number them."
        )
    return numbers


def _columns_in_order(estimator: Any) -> IntArray:
    chosen = np.asarray(estimator.is_categorical_, dtype=bool)
    return np.concatenate([np.flatnonzero(chosen), np.flatnonzero(~chosen)])


def _tree(predictor: Any, known: list[FloatArray]) -> ReadTree:
    """`known`: the numbers of each feature's categories, in the order of the encoder's bits."""
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
    feature = np.where(leaf, 0, nodes["feature_idx"].astype(np.int64))
    pieces = {}
    for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf):
        numbers, words = known[feature[node]], predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]]
        in_set = (words[:, None] >> np.arange(32, dtype=words.dtype) & 1).ravel()[: numbers.size] == 1
        others_left = bool(nodes["missing_go_to_left"][node])
        chosen = numbers[~in_set if others_left else in_set]
        pieces[int(node)] = category_pieces(chosen.tolist(), goes_left=not others_left)
    return ReadTree(feature, nodes["num_threshold"], left, right, np.asarray(nodes["value"])[:, None], pieces)
