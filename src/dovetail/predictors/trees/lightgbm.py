"""LightGBM's estimators and boosters: predictions from the live model, trees from the text that it saves
(`key=value` lines).

x goes left where x <= threshold in float64, but numbers no larger than 1e-35 count as 0 before that, and a
category where it is in the split's set (others, and those below 0, go right). Learning rates and the mean
that boosting begins with are in the leaves already.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.tree_ensemble import Link, TreeEnsemble
from dovetail.predictors.silence import NAMES, silenced
from dovetail.predictors.trees.assembly import (
    LinePieces,
    ReadTree,
    assembled,
    category_pieces,
    largest_going_left,
    threshold_piece,
)
from dovetail.predictors.trees.predictor import TreePredictor

ZERO = float(np.float32(1e-35))
"""Numbers up to this size are 0 to LightGBM."""
CATEGORICAL, DEFAULT_LEFT, MISSING, ZERO_IS_MISSING = 1, 2, 12, 4
"""Bits of a split's decision type: whether it is a categorical split, whether missing values go left, and
the two bits for the kind of missing value with one of their values."""

OBJECTIVES: dict[str, Link] = {
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair", "quantile", "mape"), "identity"),
    **dict.fromkeys(("lambdarank", "rank_xendcg", ""), "identity"),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "exp"),
    **dict.fromkeys(("binary", "cross_entropy", "multiclassova"), "sigmoid"),
    "multiclass": "softmax",
}
"""The output function applied to the sum."""
CLASSES = ("binary", "multiclass", "multiclassova")
"""Objectives whose answers are probabilities of classes."""


def is_model(text: str) -> bool:
    """Whether a text begins as LightGBM's models do."""
    return text.lstrip().startswith("tree\nversion=")


def objective_of(text: str) -> str:
    """The objective of the training, by LightGBM's name; "" for an objective of the user's own."""
    return (_head(text).get("objective", "").split() or [""])[0]


def lightgbm_ensemble(text: str) -> TreeEnsemble:
    """The trees that the text holds."""
    head, words = _head(text), _head(text).get("objective", "").split()
    objective, options = objective_of(text), dict(word.split(":") for word in words[1:] if ":" in word)
    if objective not in OBJECTIVES or "sqrt" in words:
        raise UnsupportedError(f"LightGBM's objective {' '.join(words)} cannot be written out as a sum.")
    scores = int(head["num_tree_per_iteration"])
    trees = [_tree(section) for section in _sections(text)]
    factor = float(options.get("sigmoid", 1.0)) if OBJECTIVES[objective] == "sigmoid" else 1.0
    if "average_output" in head:
        factor /= max(1, len(trees) // scores)
    return assembled(
        (tree.scaled(factor).for_score(t % scores, scores) for t, tree in enumerate(trees)),
        features=int(head["max_feature_idx"]) + 1,
        base=np.zeros(scores),
        link=OBJECTIVES[objective],
        fold=_at_most,
        categories=_categories(head),
    )


def _categories(head: dict[str, str]) -> list[int]:
    """Features whose ranges are lists of numbers, not intervals."""
    ranges = head.get("feature_infos", "").split()
    return [j for j, values in enumerate(ranges) if values != "none" and not values.startswith("[")]


def _at_most(thresholds: FloatArray) -> FloatArray:
    near = np.abs(thresholds) <= 2.0 * ZERO
    found = thresholds.copy()
    cut = thresholds[near]
    found[near] = largest_going_left(lambda x: np.where(np.abs(x) > ZERO, x, 0.0) <= cut, cut.size)
    return found


def _head(text: str) -> dict[str, str]:
    return _fields(text.split("\nTree=", 1)[0])


def _sections(text: str) -> Iterator[dict[str, str]]:
    body = text.split("\nend of trees", 1)[0]
    for section in body.split("\nTree=")[1:]:
        yield _fields("Tree=" + section)


def _fields(lines: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in lines.splitlines() if line.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _tree(fields: dict[str, str]) -> ReadTree:
    """Splits come first, then leaves; LightGBM numbers both from 0 and tells leaves by ~number."""
    if fields.get("is_linear", "0") != "0":
        raise UnsupportedError("LightGBM: leaves that are linear models (linear_tree) are not constants.")
    value = _numbers(fields["leaf_value"])
    leaves, splits = int(fields["num_leaves"]), int(fields["num_leaves"]) - 1
    if leaves < 1 or value.size != leaves:
        raise ValueError(f"a tree has {value.size} leaf values, not {leaves}")
    none = np.full(leaves, -1)
    if splits == 0:
        return ReadTree(none * 0, np.zeros(leaves), none, none, value[:, None])
    decisions = _numbers(fields["decision_type"]).astype(np.int64)
    left, right = (_numbers(fields[side]).astype(np.int64) for side in ("left_child", "right_child"))
    left, right = (np.where(side < 0, splits + ~side, side) for side in (left, right))
    feature, threshold = _numbers(fields["split_feature"]).astype(np.int64), _numbers(fields["threshold"])
    if {part.size for part in (left, right, feature, threshold, decisions)} != {splits}:
        raise ValueError("the parts of a tree have different lengths")
    return ReadTree(
        np.concatenate([feature, none * 0]),
        np.concatenate([threshold, np.zeros(leaves)]),
        np.concatenate([left, none]),
        np.concatenate([right, none]),
        np.concatenate([np.zeros(splits), value])[:, None],
        _pieces(fields, decisions, threshold),
    )


def _pieces(fields: dict[str, str], decisions: IntArray, threshold: FloatArray) -> dict[int, LinePieces]:
    """Splits without a threshold: sets of categories go left, a 0 that counts as missing has its own side."""
    found = {}
    if np.any(decisions & CATEGORICAL):
        ends, words = (
            _numbers(fields[name]).astype(np.int64) for name in ("cat_boundaries", "cat_threshold")
        )
    for node in np.flatnonzero(decisions & CATEGORICAL):
        k = int(threshold[node])
        bits = words[ends[k] : ends[k + 1], None] >> np.arange(32) & 1
        found[int(node)] = category_pieces(np.flatnonzero(bits).tolist(), goes_left=True)
    for node in np.flatnonzero(decisions & (MISSING | CATEGORICAL) == ZERO_IS_MISSING):
        cut = threshold_piece(float(_at_most(threshold[node : node + 1])[0]))
        left = bool(decisions[node] & DEFAULT_LEFT)
        found[int(node)] = cut.but(float(np.nextafter(-ZERO, -np.inf)), ZERO, left)
    return found


def _numbers(text: str) -> FloatArray:
    return np.array(text.split(), dtype=np.float64)


def lightgbm_categories(model: Any) -> dict[int, tuple[Any, ...]]:
    """Category names by feature, if the model was trained on a frame with categories."""
    live = LightgbmTrees(model)
    names = live.frame_categories
    features = live.read().categories if names else ()
    if len(features) != len(names):  # a feature was declared categorical and had numbers
        return {}
    each = zip(features, names, strict=True)
    return {feature: tuple(own) for feature, own in each if all(isinstance(name, str) for name in own)}


class LightgbmTrees(TreePredictor):
    """Both estimators and boosters answer with the rounds up to the best one, and save that many."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._last: tuple[str, TreeEnsemble] | None = None
        """The text that was read last, and the parsed model."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Feature names if the model was trained on a frame; otherwise Column_0 and so on."""
        names = tuple(map(str, self._booster.feature_name()))
        return None if names == tuple(f"Column_{j}" for j in range(len(names))) else names

    @property
    def frame_categories(self) -> list[list[Any]]:
        """The categories of each categorical column of the frame, in their order."""
        return self._booster.pandas_categorical or []

    @property
    def is_classifier(self) -> bool:
        """The kind of answer, by the estimator's method or the booster's objective."""
        if self._is_estimator:
            return hasattr(self._model, "predict_proba")
        text = self._text if self._last is None else self._last[0]  # cached, because every answer needs it
        return objective_of(text) in CLASSES

    def answer(self, X: FloatArray) -> FloatArray:
        """`predict_proba` of a classifier, `predict` of all others; of two classes, both."""
        ask = self._model.predict_proba if self._is_estimator and self.is_classifier else self._model.predict
        with silenced(NAMES):
            return self._both_shares(np.asarray(ask(X), dtype=np.float64))

    def read(self) -> TreeEnsemble:
        """The saved text of the model."""
        if self._is_estimator and not self._model.__sklearn_is_fitted__():
            raise UnsupportedError(f"{self.name} is not trained yet; call its fit first.")
        text = self._text
        if self._last is None or self._last[0] != text:
            self._last = text, lightgbm_ensemble(text)
        return self._last[1]

    @property
    def _is_estimator(self) -> bool:
        return hasattr(self._model, "fit")

    @property
    def _booster(self) -> Any:
        return self._model.booster_ if self._is_estimator else self._model

    @property
    def _text(self) -> str:
        return str(self._booster.model_to_string())
