"""XGBoost's estimators and boosters: predictions from the live object, trees from its saved form.

x goes left where float32(x) < threshold, both in float32, and a category goes left where it is not in the
split's set; sums are in float32. A base score is stored as the answer that it would give alone, so that a
probability is first converted to a logit. An estimator answers with the rounds up to the best one if
training was stopped early, and a raw booster with all rounds: the object that was passed decides.

A model is saved as JSON, or as Universal Binary JSON, which `parse` reads and never runs. Arrays of one type
become numpy arrays in one piece, so that reading a model of a million nodes takes as long as copying its
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.tree_ensemble import Link, TreeEnsemble
from dovetail.predictors.silence import DEVICES, silenced
from dovetail.predictors.trees.assembly import (
    LinePieces,
    ReadTree,
    assembled,
    category_pieces,
    float32_at_most,
    float32_below,
    threshold_piece,
)
from dovetail.predictors.trees.predictor import TreePredictor

Margin = Callable[[FloatArray], FloatArray]


def _logit(base: FloatArray) -> FloatArray:
    return np.asarray(-np.log(np.float32(1.0) / base - np.float32(1.0)))


OBJECTIVES: dict[str, tuple[Link, Margin]] = {
    **dict.fromkeys(
        (
            "reg:squarederror", "reg:squaredlogerror", "reg:absoluteerror", "reg:pseudohubererror",
            "reg:quantileerror", "reg:expectileerror", "rank:ndcg", "rank:map", "rank:pairwise",
        ),
        ("identity", np.asarray),
    ),
    **dict.fromkeys(("reg:logistic", "binary:logistic"), ("sigmoid", _logit)),
    "binary:logitraw": ("identity", _logit),
    "multi:softprob": ("softmax", np.asarray),
    **dict.fromkeys(
        ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"), ("exp", np.log)
    ),
}  # fmt: skip
"""The output function of the sum, and the inverse that was applied to the base score."""
CLASSES = ("binary:logistic", "multi:softprob")
"""Objectives whose answers are probabilities of classes."""


def objective_of(document: Any) -> str:
    """The objective of the training, by XGBoost's name."""
    return str(document["learner"]["objective"]["name"])


def rounds_of(document: Any) -> int:
    """The number of boosting rounds."""
    return len(_model(document)["trees"]) // _trees_per_round(document)


def _model(document: Any) -> Any:
    booster = document["learner"]["gradient_booster"]
    return booster.get("gbtree", booster)["model"]  # DART stores its trees one level deeper


def _trees_per_round(document: Any) -> int:
    parallel = int(_model(document)["gbtree_model_param"]["num_parallel_tree"])
    return _scores(document) * max(1, parallel)


def stopped_after(document: Any) -> int | None:
    """The round that early stopping found best, if the document says so."""
    found = document["learner"].get("attributes", {}).get("best_iteration")
    return None if found is None else int(found) + 1


def category_names(document: Any) -> dict[int, tuple[str, ...]]:
    """By feature, the names of its categories in the order of their numbers, where it was trained on a frame
    that had them (since 3.1 a model keeps them)."""
    found = {}
    for feature, one in enumerate(_model(document).get("cats", {}).get("enc", ())):
        ends = np.asarray(one.get("offsets", ()), dtype=np.int64).tolist()
        text = np.asarray(one["values"]).astype(np.uint8).tobytes()
        names = tuple(text[first:last].decode() for first, last in pairwise(ends))
        if names:
            found[feature] = names
    return found


def xgboost_ensemble(document: Any, rounds: int | None = None, missing: float | None = None) -> TreeEnsemble:
    """The trees of the first `rounds` (None: all); `missing` is a number, if any, that counts as missing."""
    learner, objective = document["learner"], objective_of(document)
    booster = learner["gradient_booster"]
    kind = str(booster["name"])
    if kind not in ("gbtree", "dart"):
        raise UnsupportedError(f"XGBoost's booster {kind} has no trees.")
    if objective not in OBJECTIVES:
        raise UnsupportedError(f"XGBoost's objective {objective} is not a sum of leaf values.")
    link, margin = OBJECTIVES[objective]
    scores, model = _scores(document), _model(document)
    params = learner["learner_model_param"]
    base = margin(np.array(_numbers(params["base_score"]), dtype=np.float32)).astype(np.float64)
    weights = np.asarray(booster.get("weight_drop", np.ones(len(model["trees"]))))
    kept = None if rounds is None else rounds * _trees_per_round(document)
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


def _scores(document: Any) -> int:
    params = document["learner"]["learner_model_param"]
    return max(1, int(params["num_class"]), int(params.get("num_target", 1)))


def _numbers(text: Any) -> list[float]:
    """A base score stored as text: one number or, since 3.1, a list."""
    found = json.loads(str(text))
    return [float(number) for number in (found if isinstance(found, list) else [found])]


def _tree(tree: Any, missing: float | None) -> ReadTree:
    left = np.asarray(tree["left_children"], dtype=np.int64)
    right = np.asarray(tree["right_children"], dtype=np.int64)
    number = np.asarray(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise UnsupportedError("XGBoost: trees with several outputs each (multi_output_tree) are not read.")
    used = _nodes_in_use(left, right)
    feature = np.asarray(tree["split_indices"], dtype=np.int64)
    number[_by_sets(tree, left)] = 0.0  # not a threshold
    pieces = _pieces(tree, left, number, missing)
    return _without_pruned(ReadTree(feature, number, left, right, number[:, None], pieces), used)


def _by_sets(tree: Any, left: np.ndarray) -> IntArray:
    """Splits by categories."""
    kinds = np.broadcast_to(np.asarray(tree.get("split_type", 0)), left.shape)
    return np.flatnonzero((kinds != 0) & (left >= 0))


def _pieces(tree: Any, left: np.ndarray, number: FloatArray, missing: float | None) -> dict[int, LinePieces]:
    """Splits without a threshold: sets of categories go right, a number that counts as missing has its own
    side."""
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


def _nodes_in_use(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The root, then all nodes below it: nodes that were pruned away stay in XGBoost's list."""
    reached = np.zeros(left.size, dtype=bool)
    level = np.zeros(1, dtype=np.int64)
    while level.size:
        if np.any((level < 0) | (level >= left.size)) or np.any(reached[level]):
            raise ValueError("a child is no node, or has two parents")
        reached[level] = True
        inner = level[left[level] >= 0]
        level = np.concatenate([left[inner], right[inner]])
    return reached


def _without_pruned(tree: ReadTree, kept: np.ndarray) -> ReadTree:
    if np.all(kept):
        return tree
    number = np.cumsum(kept) - 1
    left, right = (np.where(side < 0, -1, number[side])[kept] for side in (tree.left, tree.right))
    pieces = {int(number[node]): asked for node, asked in tree.pieces.items() if kept[node]}
    return ReadTree(tree.feature[kept], tree.threshold[kept], left, right, tree.value[kept], pieces)


NUMBERS: dict[bytes, np.dtype[Any]] = {
    b"i": np.dtype(">i1"),
    b"U": np.dtype(">u1"),
    b"I": np.dtype(">i2"),
    b"l": np.dtype(">i4"),
    b"L": np.dtype(">i8"),
    b"d": np.dtype(">f4"),
    b"D": np.dtype(">f8"),
}

CONSTANTS = {b"Z": None, b"T": True, b"F": False}
DEEPEST = 64
"""Containers within containers; a model has ten."""


def parse(content: bytes) -> Any:
    """The one value that `content` encodes."""
    return _Reader(content).value()


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def value(self, depth: int = 0, marker: bytes = b"") -> Any:
        """The next value of any kind; in a container of one type the `marker` is not repeated."""
        marker = marker or self._marker()
        if marker in NUMBERS:
            return self._number(marker)
        if marker == b"S":
            return self._text()
        if marker == b"C":
            return self._take(1).decode("ascii")
        if marker in CONSTANTS:
            return CONSTANTS[marker]
        if depth > DEEPEST:
            raise ValueError("containers are nested too deeply")
        if marker not in (b"[", b"{"):
            raise ValueError(f"no value begins with {marker!r}")
        return self._container(b"]" if marker == b"[" else b"}", depth + 1)

    def _container(self, end: bytes, depth: int) -> Any:
        """An array or an object: the type and the number of its values may come first."""
        kind, count = b"", None
        if self._peek() == b"$":
            self._at += 1
            kind = self._marker()
        if self._peek() == b"#":
            self._at += 1
            count = self._count()
        if kind and count is None:
            raise ValueError("a container with one type for all values must state the number of values")
        if kind in CONSTANTS:
            raise ValueError("a container of empty values does not limit its length")
        if kind in NUMBERS and end == b"]":
            dtype = NUMBERS[kind]
            numbers = np.frombuffer(self._take((count or 0) * dtype.itemsize), dtype=dtype)
            return numbers.astype(dtype.newbyteorder("="))
        names: list[str] = []
        values: list[Any] = []
        while len(values) < count if count is not None else self._peek() != end:
            names += [self._text()] if end == b"}" else []
            values.append(self.value(depth, kind))
        self._at += count is None  # the end marker
        return dict(zip(names, values, strict=True)) if end == b"}" else values

    def _count(self) -> int:
        marker = self._marker()
        count = self._number(marker) if marker in NUMBERS else -1
        if not isinstance(count, int) or not 0 <= count <= len(self._content):
            raise ValueError(f"{count} is no length")
        return count

    def _text(self) -> str:
        return self._take(self._count()).decode("utf-8")

    def _number(self, marker: bytes) -> int | float:
        dtype = NUMBERS[marker]
        found: int | float = np.frombuffer(self._take(dtype.itemsize), dtype=dtype)[0].item()
        return found

    def _marker(self) -> bytes:
        marker = b"N"
        while marker == b"N":  # no operation
            marker = self._take(1)
        return marker

    def _peek(self) -> bytes:
        return self._content[self._at : self._at + 1]

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._content):
            raise ValueError("it ends too early")
        taken = self._content[self._at : end]
        self._at = end
        return taken


def xgboost_categories(model: Any) -> dict[int, tuple[str, ...]]:
    """The names of its categories by feature, where it was trained on a frame that had them."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    if "c" not in (booster.feature_types or ()):
        return {}
    return category_names(parse(bytes(booster.save_raw("ubj"))))


class Saved(NamedTuple):
    """The saved bytes of a booster, and the parsed model."""

    content: bytes
    rounds: int | None
    missing: float | None
    objective: str
    ensemble: TreeEnsemble


class XgboostTrees(TreePredictor):
    """An estimator in scikit-learn's manner, or a raw booster."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._estimator = hasattr(model, "get_booster")
        self._last: Saved | None = None

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Feature names, if it was trained on a frame."""
        names = self._booster.feature_names if self._trained else None
        return None if names is None else tuple(map(str, names))

    @property
    def is_classifier(self) -> bool:
        """The kind of answer: an estimator's by its method, a booster's by its objective."""
        if self._estimator:
            return hasattr(self._model, "predict_proba")
        return (self._last or self._saved()).objective in CLASSES  # cached, because every answer needs it

    def answer(self, X: FloatArray) -> FloatArray:
        """An estimator's `predict_proba`, or `predict` if it has no classes; a booster's prediction with all
        rounds, both classes if there are two."""
        if self._estimator:
            ask = self._model.predict_proba if self.is_classifier else self._model.predict
            with silenced(DEVICES):
                return np.asarray(ask(X, validate_features=False), dtype=np.float64)
        said = self._model.inplace_predict(X, validate_features=False)
        return self._both_shares(np.asarray(said, dtype=np.float64))

    def read(self) -> TreeEnsemble:
        """The number of rounds that the model's own answer uses."""
        if not self._trained:
            raise UnsupportedError(f"{self.name} is not trained yet; call its fit first.")
        return self._saved().ensemble

    def _saved(self) -> Saved:
        """Read again only if the booster's saved form has changed."""
        content, rounds, missing = bytes(self._booster.save_raw("ubj")), self._rounds, self._missing
        if self._last is None or self._last[:3] != (content, rounds, missing):
            document = parse(content)
            ensemble = xgboost_ensemble(document, rounds, missing)
            self._last = Saved(content, rounds, missing, objective_of(document), ensemble)
        return self._last

    @property
    def _booster(self) -> Any:
        return self._model.get_booster() if self._estimator else self._model

    @property
    def _missing(self) -> float | None:
        """A number that counts as missing for an estimator, and has its own side at the splits."""
        missing = self._model.missing if self._estimator else None
        return None if missing is None or np.isnan(missing) else float(missing)

    @property
    def _rounds(self) -> int | None:
        """The number of rounds: of an estimator up to the best one if training was stopped early; None:
        all."""
        best = getattr(self._model, "best_iteration", None) if self._estimator else None
        return None if best is None else int(best) + 1

    @property
    def _trained(self) -> bool:
        return not self._estimator or bool(self._model.__sklearn_is_fitted__())
