"""An XGBoost model as its library saves it (JSON, or the same in binary), read into the flat form.

x goes left where float32(x) < threshold, both in float32, and a category where it is not in the split's set;
sums are in float32. Base scores are kept as the
answer they would give alone, so that a probability has to become a logit first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.tree_ensemble import Link, TreeEnsemble
from dovetail.predictors.trees.assembly import ReadTree, assembled, float32_at_most, float32_below
from dovetail.predictors.trees.pieces import LinePieces, category_pieces, threshold_piece

Margin = Callable[[FloatArray], FloatArray]


def _same(base: FloatArray) -> FloatArray:
    return base


def _logit(base: FloatArray) -> FloatArray:
    return np.asarray(-np.log(np.float32(1.0) / base - np.float32(1.0)))


def _log(base: FloatArray) -> FloatArray:
    return np.asarray(np.log(base))


OBJECTIVES: dict[str, tuple[Link, Margin]] = {
    "reg:squarederror": ("identity", _same),
    "reg:squaredlogerror": ("identity", _same),
    "reg:absoluteerror": ("identity", _same),
    "reg:pseudohubererror": ("identity", _same),
    "reg:quantileerror": ("identity", _same),
    "reg:expectileerror": ("identity", _same),
    "rank:ndcg": ("identity", _same),
    "rank:map": ("identity", _same),
    "rank:pairwise": ("identity", _same),
    "reg:logistic": ("sigmoid", _logit),
    "binary:logistic": ("sigmoid", _logit),
    "binary:logitraw": ("identity", _logit),
    "multi:softprob": ("softmax", _same),
    "count:poisson": ("exp", _log),
    "reg:gamma": ("exp", _log),
    "reg:tweedie": ("exp", _log),
    "survival:cox": ("exp", _log),
    "survival:aft": ("exp", _log),
}
"""What becomes of the sum, and what a base score is before that."""
CLASSES = ("binary:logistic", "multi:softprob")
"""Objectives whose answers are probabilities of classes."""


def objective_of(document: Any) -> str:
    """What it was trained for, by XGBoost's name."""
    return str(document["learner"]["objective"]["name"])


def rounds_of(document: Any) -> int:
    """How often it was boosted."""
    return _rounds(_model(document["learner"]["gradient_booster"]), _scores(document))


def stopped_after(document: Any) -> int | None:
    """The round that early stopping found best, if the document says so."""
    found = document["learner"].get("attributes", {}).get("best_iteration")
    return None if found is None else int(found) + 1


def category_names(document: Any) -> dict[int, tuple[str, ...]]:
    """By feature, the names of its categories in the order of their numbers, where it was trained on a frame
    that had them (since 3.1 a model keeps them)."""
    found = {}
    model = _model(document["learner"]["gradient_booster"])
    for feature, one in enumerate(model.get("cats", {}).get("enc", ())):
        ends = np.asarray(one.get("offsets", ()), dtype=np.int64).tolist()
        text = np.asarray(one["values"]).astype(np.uint8).tobytes()
        names = tuple(text[first:last].decode() for first, last in pairwise(ends))
        if names:
            found[feature] = names
    return found


def xgboost_ensemble(document: Any, rounds: int | None = None, missing: float | None = None) -> TreeEnsemble:
    """The trees of the first `rounds` (None: of all), where a number, if any, counts as missing."""
    learner, objective = document["learner"], objective_of(document)
    booster = learner["gradient_booster"]
    kind = str(booster["name"])
    if kind not in ("gbtree", "dart"):
        raise UnsupportedError(f"XGBoost's booster {kind} has no trees.")
    if objective not in OBJECTIVES:
        raise UnsupportedError(f"XGBoost's objective {objective} gives no sum of leaves.")
    link, margin = OBJECTIVES[objective]
    scores, model = _scores(document), _model(booster)
    params = learner["learner_model_param"]
    base = margin(np.array(_numbers(params["base_score"]), dtype=np.float32)).astype(np.float64)
    weights = np.asarray(booster.get("weight_drop", np.ones(len(model["trees"]))))
    kept = len(model["trees"]) if rounds is None else _trees_until(model, rounds, scores)
    trees = (
        _tree(tree, missing).scaled(float(weight)).for_score(int(score), scores)
        for tree, weight, score in zip(model["trees"][:kept], weights, model["tree_info"], strict=False)
    )
    return assembled(
        trees,
        features=int(params["num_feature"]),
        base=np.broadcast_to(base, scores).copy(),
        link=link,
        dtype="float32",
        in_order=bool(np.all(weights == 1.0)),  # weights are multiplied and added in one step, or in two
        fold=float32_below,
        categories=[j for j, kind in enumerate(learner.get("feature_types") or ()) if kind == "c"],
    )


def _model(booster: Any) -> Any:
    """DART keeps its trees one level deeper."""
    return booster.get("gbtree", booster)["model"]


def _scores(document: Any) -> int:
    params = document["learner"]["learner_model_param"]
    return max(1, int(params["num_class"]), int(params.get("num_target", 1)))


def _trees_per_round(model: Any, scores: int) -> int:
    return scores * max(1, int(model["gbtree_model_param"]["num_parallel_tree"]))


def _rounds(model: Any, scores: int) -> int:
    return len(model["trees"]) // _trees_per_round(model, scores)


def _trees_until(model: Any, rounds: int, scores: int) -> int:
    return min(len(model["trees"]), rounds * _trees_per_round(model, scores))


def _numbers(text: Any) -> list[float]:
    """A number, or since 3.1 a list of them, as text."""
    found = json.loads(str(text))
    return [float(number) for number in (found if isinstance(found, list) else [found])]


def _tree(tree: Any, missing: float | None) -> ReadTree:
    left = np.asarray(tree["left_children"], dtype=np.int64)
    right = np.asarray(tree["right_children"], dtype=np.int64)
    number = np.asarray(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise UnsupportedError("XGBoost: trees with several outputs each (multi_output_tree) are not read.")
    used = _reached(left, right)
    feature = np.asarray(tree["split_indices"], dtype=np.int64)
    number[_by_sets(tree, left)] = 0.0  # which is no threshold
    pieces = _pieces(tree, left, number, missing)
    return _only(ReadTree(feature, number, left, right, number[:, None], pieces), used)


def _by_sets(tree: Any, left: np.ndarray) -> IntArray:
    """Splits by categories."""
    kinds = np.broadcast_to(np.asarray(tree.get("split_type", 0)), left.shape)
    return np.flatnonzero((kinds != 0) & (left >= 0))


def _pieces(tree: Any, left: np.ndarray, number: FloatArray, missing: float | None) -> dict[int, LinePieces]:
    """Splits that are no threshold: sets of categories go right, a number that counts as missing its own
    way."""
    found, by_set = {}, _by_sets(tree, left)
    if by_set.size:
        parts = ("categories_nodes", "categories_segments", "categories_sizes", "categories")
        nodes, begin, size, numbers = (np.asarray(tree[part], dtype=np.int64) for part in parts)
        for node, first, count in zip(nodes, begin, size, strict=True):
            found[int(node)] = category_pieces(numbers[first : first + count].tolist(), goes_left=False)
    if missing is not None:
        own = np.array([missing])
        low, high = float(float32_below(own)[0]), float(float32_at_most(own)[0])
        splits = np.flatnonzero(left >= 0)
        for node, cut in zip(splits.tolist(), float32_below(number[splits]), strict=True):
            asked = found.get(node) or threshold_piece(float(cut))
            found[node] = asked.but(low, high, bool(tree["default_left"][node]))
    return found


def _reached(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Nodes that pruning left in the tree; those it cut off stay in the list. The root is the first."""
    reached = np.zeros(left.size, dtype=bool)
    level = np.zeros(1, dtype=np.int64)
    while level.size:
        if np.any((level < 0) | (level >= left.size)) or np.any(reached[level]):
            raise ValueError("a child is no node, or has two parents")
        reached[level] = True
        inner = level[left[level] >= 0]
        level = np.concatenate([left[inner], right[inner]])
    return reached


def _only(tree: ReadTree, kept: np.ndarray) -> ReadTree:
    """Without the nodes that nothing leads to."""
    if np.all(kept):
        return tree
    number = np.cumsum(kept) - 1
    left, right = (np.where(side < 0, -1, number[side])[kept] for side in (tree.left, tree.right))
    pieces = {int(number[node]): asked for node, asked in tree.pieces.items() if kept[node]}
    return ReadTree(tree.feature[kept], tree.threshold[kept], left, right, tree.value[kept], pieces)
