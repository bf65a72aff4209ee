"""scikit-learn's tree ensembles, read from their fitted attributes, without importing scikit-learn.

Trees and forests give means of leaves, gradient boosting a sum behind a link, AdaBoost weighted votes.
Trees of `sklearn.tree` compare float32(x) <= threshold, histogram gradient boosting float64.

Histogram gradient boosting splits by categories too: a category goes left where it is in the split's set of
bits, right where it was seen in training and is not, and else where missing values go. Before the trees the
estimator numbers the known categories and puts their columns first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.tree_ensemble import Link, TreeEnsemble
from dovetail.predictors.scikit_learn.answer import own_answer
from dovetail.predictors.scikit_learn.estimator import changed, is_a, is_classifier, own_classes
from dovetail.predictors.scikit_learn.transformers import categories_read, is_numeric
from dovetail.predictors.silence import NAMES, silenced
from dovetail.predictors.trees.assembly import ReadTree, assembled, category_pieces, float32_at_most
from dovetail.predictors.trees.predictor import TreePredictor

LINKS: dict[str, tuple[Link, float]] = {
    "IdentityLink": ("identity", 1.0),
    "LogLink": ("exp", 1.0),
    "LogitLink": ("sigmoid", 1.0),
    "HalfLogitLink": ("sigmoid", 2.0),
    "MultinomialLogit": ("softmax", 1.0),
}
"""scikit-learn's names of link functions: our names, and the factor on the scores."""


class ScikitLearnTrees(TreePredictor):
    """An estimator, evaluated by its own methods."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Feature names, if it was trained on a frame."""
        names = getattr(self._model, "feature_names_in_", None)
        return None if names is None else tuple(map(str, names))

    @property
    def is_classifier(self) -> bool:
        """Whether the estimator has classes."""
        return is_classifier(self._model)

    @property
    def _method(self) -> str:
        if is_a(self._model, "IsolationForest"):
            return "score_samples"
        return "predict_proba" if self.is_classifier else "predict"

    def answer(self, X: FloatArray) -> FloatArray:
        """`predict`, of a classifier `predict_proba`, of an isolation forest `score_samples`."""
        if categories_read(self._model):
            return np.asarray(own_answer(self._model, X), dtype=np.float64)
        ask = getattr(self._model, self._method)
        frames, names = sys.modules.get("pandas"), self.feature_names
        if names is not None and frames is not None:
            return np.asarray(ask(frames.DataFrame(X, columns=list(names))), dtype=np.float64)
        with silenced(NAMES):
            return np.asarray(ask(X), dtype=np.float64)

    def read(self) -> TreeEnsemble:
        """The trees by the reader of the estimator's class."""
        reason = changed(self._model)
        if reason:
            raise UnsupportedError(f"{self.name} cannot be written out: {reason}.")
        return _read(self._model)


def _read(estimator: Any) -> TreeEnsemble:
    read = next((READERS[name] for name in own_classes(estimator) if name in READERS), None)
    name = type(estimator).__name__
    if read is None:
        raise UnsupportedError(f"{name} is no tree ensemble that dovetail reads.")
    if getattr(estimator, "n_features_in_", None) is None:
        raise UnsupportedError(f"{name} is not trained yet; call its fit first.")
    return read(estimator)


# --- trees and means of trees -----------------------------------------------------------------------


def _tree(estimator: Any) -> ReadTree:
    tree = estimator.tree_
    if is_classifier(estimator):
        if estimator.n_outputs_ > 1:
            raise UnsupportedError(
                f"{type(estimator).__name__} has several labels at once; give one model each."
            )
        value = tree.value[:, 0, :]
        value = value / value.sum(axis=1, keepdims=True)
    else:
        value = tree.value[:, :, 0]
    return ReadTree(tree.feature, tree.threshold, tree.children_left, tree.children_right, np.asarray(value))


def _mean(trees: list[ReadTree], features: int) -> TreeEnsemble:
    parts = [tree.scaled(1.0 / len(trees)) for tree in trees]
    return assembled(parts, features=features, base=np.zeros(trees[0].value.shape[1]), fold=float32_at_most)


def _forest(estimator: Any) -> TreeEnsemble:
    return _mean([_tree(one) for one in estimator.estimators_], estimator.n_features_in_)


def _bagging(estimator: Any) -> TreeEnsemble:
    trees = []
    for one, places in zip(estimator.estimators_, estimator.estimators_features_, strict=True):
        _require_tree(estimator, one)
        tree = _tree(one).reading(np.asarray(places))
        if is_classifier(estimator):
            value = np.zeros((len(tree.value), len(estimator.classes_)))
            value[:, np.asarray(one.classes_, dtype=np.int64)] = tree.value  # bagging has its own numbers
            tree = tree._replace(value=value)
        trees.append(tree)
    return _mean(trees, estimator.n_features_in_)


def _isolation(estimator: Any) -> TreeEnsemble:
    """score = -2^(-mean way to a leaf / usual way): shorter paths mean stronger outliers."""
    usual = float(_usual_way(np.array([estimator._max_samples]))[0])
    if usual == 0.0:
        raise UnsupportedError("IsolationForest of single samples cannot distinguish samples.")
    trees = []
    for one, places, ways, rest in zip(
        estimator.estimators_,
        estimator.estimators_features_,
        estimator._decision_path_lengths,
        estimator._average_path_length_per_tree,
        strict=True,
    ):
        value = np.log(2.0) * (ways + rest - 1.0) / (len(estimator.estimators_) * usual)
        trees.append(_tree(one).reading(np.asarray(places))._replace(value=np.asarray(value)[:, None]))
    features = estimator.n_features_in_
    return assembled(trees, features=features, base=np.zeros(1), link="minus exp", fold=float32_at_most)


def _usual_way(samples: IntArray) -> FloatArray:
    """Average number of splits until one of this number of samples is alone (Liu, Ting and Zhou, 2008)."""
    more = np.maximum(samples, 3) - 1.0
    return np.where(samples > 2, 2.0 * (np.log(more) + np.euler_gamma - more / samples), samples == 2)


def _require_tree(estimator: Any, one: Any) -> None:
    if not is_a(one, "BaseDecisionTree"):
        raise UnsupportedError(
            f"{type(estimator).__name__} of {type(one).__name__} cannot be read, only of decision trees."
        )


# --- boosting ---------------------------------------------------------------------------------------


def _gradient_boosting(estimator: Any) -> TreeEnsemble:
    """raw = init + learning_rate x trees."""
    init = estimator.init_
    if not (init == "zero" or is_a(init, "DummyRegressor", "DummyClassifier")):
        raise UnsupportedError(
            f"{type(estimator).__name__} with init={type(init).__name__} begins with another model; "
            "its trees alone do not give its answer."
        )
    features = estimator.n_features_in_
    base = np.ravel(estimator._raw_predict_init(np.zeros((1, features), dtype=np.float32)))
    trees = (
        _tree(one).scaled(estimator.learning_rate).for_score(k, base.size)
        for stage in estimator.estimators_
        for k, one in enumerate(stage)
    )
    return _linked(estimator, trees, base, fold=float32_at_most)


def _histogram(estimator: Any) -> TreeEnsemble:
    """raw = baseline + trees, whose leaves include the learning rate."""
    base = np.ravel(estimator._baseline_prediction)
    trees = histogram_trees(estimator, base.size)
    return _linked(estimator, trees, base, categories=categories_read(estimator))


def _linked(
    estimator: Any,
    trees: Iterator[ReadTree],
    base: FloatArray,
    fold: Callable[[FloatArray], FloatArray] = lambda thresholds: thresholds,
    categories: Iterable[int] = (),
) -> TreeEnsemble:
    """The output through the link function of its loss."""
    name = type(estimator._loss.link).__name__
    if name not in LINKS:
        raise UnsupportedError(f"{type(estimator).__name__} with the link {name} cannot be written out.")
    link, factor = LINKS[name]
    scaled = (tree.scaled(factor) for tree in trees)
    return assembled(
        scaled,
        features=estimator.n_features_in_,
        base=factor * base,
        link=link,
        fold=fold,
        categories=categories,
    )


def _ada_boost(estimator: Any) -> TreeEnsemble:
    """Weighted votes: a tree adds its weight to the class of its leaf, and subtracts a share from all other
    classes."""
    if is_a(estimator, "AdaBoostRegressor"):
        raise UnsupportedError(
            "AdaBoostRegressor answers with a weighted median of its trees, not with a sum."
        )
    classes, weights = estimator.classes_, estimator.estimator_weights_
    count, total = len(classes), float(np.sum(weights[: len(estimator.estimators_)]))
    trees = []
    for one, weight in zip(estimator.estimators_, weights, strict=False):
        _require_tree(estimator, one)
        tree = _tree(one)
        winner = one.classes_[np.argmax(tree.value, axis=1)]
        votes = np.where(winner[:, None] == classes, 1.0, -1.0 / (count - 1)) * weight / total
        value = votes[:, 1:] - votes[:, :1] if count == 2 else votes / (count - 1)
        trees.append(tree._replace(value=value))
    link: Link = "sigmoid" if count == 2 else "softmax"
    base = np.zeros(1 if count == 2 else count)
    return assembled(trees, features=estimator.n_features_in_, base=base, link=link, fold=float32_at_most)


READERS: dict[str, Callable[[Any], TreeEnsemble]] = {
    "BaseDecisionTree": lambda estimator: _mean([_tree(estimator)], estimator.n_features_in_),
    "ForestRegressor": _forest,
    "ForestClassifier": _forest,
    "IsolationForest": _isolation,
    "BaggingRegressor": _bagging,
    "BaggingClassifier": _bagging,
    "BaseGradientBoosting": _gradient_boosting,
    "BaseHistGradientBoosting": _histogram,
    "AdaBoostClassifier": _ada_boost,
    "AdaBoostRegressor": _ada_boost,
}
"""The reader of each class; derived classes use the same one."""


def histogram_trees(estimator: Any, scores: int) -> Iterator[ReadTree]:
    """The trees over the given features, with the numbers of `categories_read` for categories."""
    known = [_category_numbers(estimator, names) for names, _ in categories_read(estimator).values()]
    order = _columns_in_order(estimator) if known else None
    for stage in estimator._predictors:
        for k, one in enumerate(stage):
            tree = _histogram_tree(one, known).for_score(k, scores)
            yield tree if order is None else tree.reading(order)


def _category_numbers(estimator: Any, categories: Any) -> FloatArray:
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


def _histogram_tree(predictor: Any, known: list[FloatArray]) -> ReadTree:
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
