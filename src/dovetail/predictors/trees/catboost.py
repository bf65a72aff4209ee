"""CatBoost's models: predictions from the live model, trees from its JSON export.

x goes right where float32(x) > border; a category goes right where it is the category of the split.
Oblivious trees use the same split on a whole level: bit b of a leaf's number is the result of the b-th
split. Grown trees (Depthwise, Lossguide) are nested as exported.

A model keeps only a hash of the text of a category: the lower half of CityHash64 (version 1.0; Pike and
Alakuijala, 2011). The numbers of categories are searched among the first numbers, with all that share a
hash.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.tree_ensemble import Link, TreeEnsemble
from dovetail.predictors.trees.assembly import (
    LinePieces,
    ReadTree,
    assembled,
    category_pieces,
    float32_at_most,
)
from dovetail.predictors.trees.predictor import TreePredictor

LINKS: dict[str, Link] = {
    "Logloss": "sigmoid",
    "CrossEntropy": "sigmoid",
    "MultiClass": "softmax",
    "Poisson": "exp",
    "Tweedie": "exp",
}
"""The output function of estimators, by the loss of their training; other losses give the sum itself."""
CLASSES = ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll")
DEEPEST = 16
"""Largest depth of an oblivious tree in CatBoost: the number of leaves is two to this power."""


NUMBERS = 2**16
"""Categories 0, 1, 2, ... that are searched for; one in four million other numbers has the hash of one of the
first thousand categories."""

_WORD = 2**64 - 1
_SHORT, _LAST, _PAIR = 0x9AE16A3B2F90404F, 0xC949D7C7509E6557, 0x9DDFEA08EB382D69
"""Constants of the hash function: for short texts, for their ends, and for two words."""


def is_catboost(document: Any) -> bool:
    """Whether a JSON document looks like a model of CatBoost's."""
    return isinstance(document, dict) and {"features_info", "scale_and_bias"} <= document.keys()


def loss_of(document: Any) -> str:
    """The loss function of the training, by CatBoost's name."""
    return str(document["model_info"]["params"]["loss_function"]["type"])


def catboost_ensemble(document: Any, *, raw: bool = False) -> TreeEnsemble:
    """The model's trees; `raw`: the sum alone, as a plain `CatBoost` object gives it."""
    loss = loss_of(document)
    if loss == "MultiClassOneVsAll" and not raw:
        raise UnsupportedError(
            "CatBoost's MultiClassOneVsAll gives a sigmoid for each class; train MultiClass."
        )
    scale, bias = document["scale_and_bias"]
    base = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    places = _places(document["features_info"])
    if "oblivious_trees" in document:
        trees = [_oblivious_tree(tree, places, base.size) for tree in document["oblivious_trees"]]
    else:
        trees = [_nested_tree(tree, places, base.size) for tree in document["trees"]]
    return assembled(
        (tree.scaled(float(scale)) for tree in trees),
        features=places.features,
        base=base,
        categories=places.categories.values(),
        link="identity" if raw else LINKS.get(loss, "identity"),
        fold=float32_at_most,
    )


class FeaturePlaces(NamedTuple):
    """The columns of features, by CatBoost's numbers for them."""

    numbers: dict[int, int]
    categories: dict[int, int]
    features: int
    """The number of features of any kind."""


def _places(info: Any) -> FeaturePlaces:
    kinds = [info.get(kind, []) for kind in ("float_features", "categorical_features", "text_features")]
    columns = [int(one["flat_feature_index"]) for kind in kinds for one in kind]
    numbers, categories, _ = (
        {int(one["feature_index"]): int(one["flat_feature_index"]) for one in kind} for kind in kinds
    )
    return FeaturePlaces(numbers, categories, 1 + max(columns, default=-1))


def _split_of(split: Any, places: FeaturePlaces) -> tuple[int, float, LinePieces | None]:
    """The column of a split and its border, or the category that goes right."""
    kind = split["split_type"]
    if kind == "FloatFeature":
        return places.numbers[int(split["float_feature_index"])], float(split["border"]), None
    if kind != "OneHotFeature":
        raise UnsupportedError(
            f"CatBoost's split {kind} is no threshold of a number: it asks for statistics of a category. "
            "Train it with one_hot_max_size= as large as there are categories."
        )
    column = places.categories[int(split["cat_feature_index"])]
    numbers = numbers_of(int(split["value"]))
    if not numbers:
        raise UnsupportedError(
            f"CatBoost's feature {column} has categories that are no whole numbers below {NUMBERS}; train it "
            "with categories numbered from 0."
        )
    return column, 0.0, category_pieces(numbers, goes_left=False)


def _oblivious_tree(tree: Any, places: FeaturePlaces, scores: int) -> ReadTree:
    """A full binary tree, level after level: node a of level d is at 2^d - 1 + a."""
    questions = [_split_of(split, places) for split in tree.get("splits") or []]
    depth = len(questions)
    value = np.asarray(tree["leaf_values"], dtype=np.float64).reshape(-1, scores)
    if depth > DEEPEST or len(value) != 2**depth:
        raise UnsupportedError(f"CatBoost's tree of {depth} splits has {len(value)} leaves.")
    inner, level = 2**depth - 1, np.repeat(np.arange(depth), 2 ** np.arange(depth))
    at = np.arange(inner) - (2**level - 1)
    feature, border = (np.array([question[k] for question in questions]) for k in (0, 1))
    leaf = np.full(len(value), -1)
    left = 2 ** (level + 1) - 1 + at
    return ReadTree(
        np.concatenate([feature[level], 0 * leaf]).astype(np.int64),
        np.concatenate([border[level], np.zeros(leaf.size)]),
        np.concatenate([left, leaf]).astype(np.int64),
        np.concatenate([left + 2**level, leaf]).astype(np.int64),
        np.concatenate([np.zeros((inner, scores)), value]),
        {node: asked for node, asked in enumerate(questions[d][2] for d in level) if asked is not None},
    )


def _nested_tree(tree: Any, places: FeaturePlaces, scores: int) -> ReadTree:
    """Nested nodes in a list; a child comes after its parent."""
    nodes, number = [tree], 0
    rows: list[tuple[int, float, int, int]] = []
    values: list[np.ndarray] = []
    pieces: dict[int, LinePieces] = {}
    while number < len(nodes):
        node = nodes[number]
        if "split" in node:
            question = _split_of(node["split"], places)
            rows.append((*question[:2], len(nodes), len(nodes) + 1))
            if question[2] is not None:
                pieces[number] = question[2]
            values.append(np.zeros(scores))
            nodes += [node["left"], node["right"]]
        else:
            rows.append((0, 0.0, -1, -1))
            values.append(np.atleast_1d(np.asarray(node["value"], dtype=np.float64)))
        number += 1
    feature, border, left, right = (np.array(part) for part in zip(*rows, strict=True))
    return ReadTree(feature, border, left, right, np.stack(values), pieces)


def numbers_of(hashed: int) -> tuple[int, ...]:
    """The numbers whose hash is that of the split's category; empty if the category is not a small number."""
    return _category_hashes().get(hashed & 0xFFFFFFFF, ())


@cache
def _category_hashes() -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = defaultdict(tuple)
    for number in range(NUMBERS):
        found[category_hash(str(number))] += (number,)
    return dict(found)


def category_hash(text: str) -> int:
    """The hash of a text of at most eight bytes."""
    content = text.encode()
    size = len(content)
    if size >= 4:
        first, last = (int.from_bytes(part, "little") for part in (content[:4], content[-4:]))
        return _of_two(size + (first << 3), last) & 0xFFFFFFFF
    begin, end = content[0] + (content[size >> 1] << 8), size + (content[-1] << 2)
    return (_mix_bits((begin * _SHORT ^ end * _LAST) & _WORD) * _SHORT) & 0xFFFFFFFF


def _of_two(one: int, other: int) -> int:
    first = _mix_bits((one ^ other) * _PAIR & _WORD)
    return _mix_bits((other ^ first) * _PAIR & _WORD) * _PAIR & _WORD


def _mix_bits(word: int) -> int:
    return word ^ (word >> 47)


class CatboostTrees(TreePredictor):
    """A plain `CatBoost` answers with the sum of its trees, estimators with the output function of their
    loss."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Feature names if the model was trained on a frame; otherwise "0" and so on."""
        names = tuple(map(str, self._model.feature_names_ or ()))
        return None if names == tuple(map(str, range(len(names)))) else names

    @property
    def is_classifier(self) -> bool:
        """The answer of the model's own method."""
        return hasattr(self._model, "predict_proba")

    def answer(self, X: FloatArray) -> FloatArray:
        """`predict_proba` of a classifier, `predict` of all others."""
        ask = self._model.predict_proba if self.is_classifier else self._model.predict
        return np.asarray(ask(self._table(X)), dtype=np.float64)

    def _table(self, X: FloatArray) -> Any:
        """CatBoost requires integers for categories, not floats."""
        categories = self._model.get_cat_feature_indices()
        if not categories:
            return X
        table = X.astype(object)
        table[:, categories] = np.round(X[:, categories]).astype(np.int64)
        return table

    def read(self) -> TreeEnsemble:
        """The model as JSON; CatBoost exports only to files."""
        if not self._model.is_fitted():
            raise UnsupportedError(f"{self.name} is not trained yet; call its fit first.")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.json"
            self._model.save_model(str(file), format="json")
            document = json.loads(file.read_text(encoding="utf-8"))
        return catboost_ensemble(document, raw=type(self._model).__name__ in ("CatBoost", "CatBoostRanker"))
