"""The prediction of an estimator for rows of numbers, by its own method.

Where an encoder reads a feature, the number stands for a category: the category itself, or the position of a
category that is not a number. A row without a valid category has no prediction if the encoder refuses the
row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError
from dovetail.core.predictor import Predictor
from dovetail.predictors.scikit_learn.estimator import (
    answering_method,
    has_binary_probability,
    is_a,
    last_step,
    steps_of,
    way_out,
)
from dovetail.predictors.scikit_learn.modules import dense
from dovetail.predictors.scikit_learn.transformers import Categories, categories_read, is_numeric
from dovetail.predictors.silence import NAMES, silenced

TIE = 1e-9
"""Scores closer than this, relative to 1 + |value|, may be ordered differently by another order of sums."""


def own_answer(estimator: Any, X: FloatArray) -> np.ndarray[Any, Any]:
    """(n, q) or (n,) the estimator's answer; of two classes, both."""
    X = np.array(X, dtype=np.float64)  # a copy: some scalers work in place
    known = categories_read(estimator)
    if not known:
        return _quiet_answer(estimator, _table(estimator, X, {}))
    X, unknown, named = _as_categories(X, known)
    answer = _quiet_answer(estimator, _table(estimator, X, named))
    answer[unknown] = np.nan
    return answer


def as_read(estimator: Any, X: FloatArray) -> Any:
    """The rows in the form of the estimator's first step; invalid categories are replaced by valid ones."""
    X = np.array(X, dtype=np.float64)
    known = categories_read(estimator)
    X, _, named = _as_categories(X, known) if known else (X, None, {})
    return _table(estimator, X, named)


def finds_the_nearest(estimator: Any, X: FloatArray, scores: FloatArray) -> bool:
    """Whether the largest score belongs to the centre that the estimator finds nearest, where that is
    clear."""
    first_two = np.sort(scores, axis=1)[:, -2:]
    clear = np.diff(first_two, axis=1)[:, -1] > TIE * (1.0 + np.abs(first_two[:, -1]))
    labels = nearest_number(estimator, X)
    return bool(np.array_equal(scores.argmax(axis=1)[clear], labels[clear]))


def nearest_number(estimator: Any, X: FloatArray) -> IntArray:
    """(n,) the number of the nearest centre by the estimator's own predict."""
    with silenced(NAMES):
        return nearest_by_itself(estimator, as_read(estimator, X))


def _as_categories(X: FloatArray, known: Categories) -> tuple[FloatArray, Any, dict[int, Any]]:
    """Rows that an encoder can read, which of them have no valid category, and the columns that are not
    numbers."""
    unknown, named = np.zeros(len(X), dtype=bool), {}
    for feature, (categories, strict) in known.items():
        whole = np.round(X[:, feature])
        if is_numeric(categories):
            numbers = np.asarray(categories, dtype=np.float64)
            other = ~np.isin(whole, numbers)
            X[:, feature] = np.where(other & strict, numbers[0], whole)
        else:
            other = (whole < 0) | (whole >= len(categories))
            places = np.where(other, 0, whole).astype(np.int64)
            named[feature] = np.asarray(categories, dtype=object)[places]
            if not strict:
                named[feature][other] = None  # a value that belongs to no category
        unknown |= other & strict
    return X, unknown, named


def _table(estimator: Any, X: FloatArray, named: dict[int, Any]) -> Any:
    """Rows in the form of the training data: a frame if the estimator knows names, an array of objects if it
    reads strings."""
    names = getattr(estimator, "feature_names_in_", None)
    frames = sys.modules.get("pandas")
    if names is not None and frames is not None:
        frame = frames.DataFrame(X, columns=names)
        for feature, values in named.items():
            frame[names[feature]] = values
        return frame
    if not named:
        return X
    table = X.astype(object)
    for feature, values in named.items():
        table[:, feature] = values
    return table


def _quiet_answer(estimator: Any, table: Any) -> np.ndarray[Any, Any]:
    if hasattr(estimator, "feature_names_in_") and isinstance(table, np.ndarray):
        with silenced(NAMES):
            return _answer_of_method(estimator, table)
    return _answer_of_method(estimator, table)


def _answer_of_method(estimator: Any, table: Any) -> np.ndarray[Any, Any]:
    method = answering_method(estimator)
    if method == "nearness":
        return own_nearness(estimator, table)
    if method == "classes":
        labels = np.asarray(estimator.predict(table))
        return np.asarray(labels[:, None] == np.asarray(last_step(estimator).classes_), dtype=np.float64)
    answer = getattr(estimator, method)(table)
    if is_a(last_step(estimator), "MultiOutputClassifier"):
        return _of_each_output(estimator, answer)
    return np.asarray(answer.toarray() if hasattr(answer, "toarray") else answer)


def _of_each_output(estimator: Any, answers: Any) -> np.ndarray[Any, Any]:
    """Probabilities of one label after the other; for two classes the second one only."""
    members = last_step(estimator).estimators_
    return np.concatenate(
        [
            answer[:, 1:] if has_binary_probability(one) else answer
            for one, answer in zip(members, answers, strict=True)
        ],
        axis=1,
    )


def nearness(estimator: Any) -> Iterator[nn.Module]:
    """One score for each centre."""
    yield dense(*_scores(estimator))


def own_nearness(estimator: Any, X: FloatArray) -> FloatArray:
    """The centres' linear scores, with the current centres and the steps before them."""
    *before, last = steps_of(estimator)
    for step in before:
        X = step.transform(X)
    weight, bias = _scores(last)
    return np.asarray(np.asarray(X) @ weight.T + bias)


def nearest_by_itself(estimator: Any, X: FloatArray) -> IntArray:
    """The number of the centre that the estimator itself finds nearest."""
    labels = np.asarray(estimator.predict(X))
    classes = getattr(steps_of(estimator)[-1], "classes_", None)
    return np.asarray(labels if classes is None else np.searchsorted(classes, labels), dtype=np.int64)


def _scores(estimator: Any) -> tuple[FloatArray, FloatArray]:
    if not is_a(estimator, "NearestCentroid"):
        centres = np.asarray(estimator.cluster_centers_, dtype=np.float64)
        return centres, -0.5 * np.sum(centres**2, axis=1)
    if estimator.metric != "euclidean":
        raise PredictorError(
            f"NearestCentroid with the metric {estimator.metric!r} cannot be written as a network, only "
            f"with 'euclidean'; {way_out(estimator)}"
        )
    centres, prior = np.asarray(estimator.centroids_), getattr(estimator, "class_prior_", None)
    if prior is None or np.isclose(prior, 1.0 / len(prior)).all():  # predict then leaves out the spreads
        return centres, -0.5 * np.sum(centres**2, axis=1)
    spread = np.where(estimator.within_class_std_dev_ != 0, estimator.within_class_std_dev_, 1.0)
    scaled = centres / spread
    return scaled / spread, np.log(prior) - 0.5 * np.sum(scaled**2, axis=1)


class NearestNumber:
    """The index of the largest of `scores`. Discontinuous, so without slope and bound."""

    def __init__(self, scores: Predictor, nearest: Callable[[FloatArray], IntArray]) -> None:
        self._scores, self._nearest = scores, nearest

    def predict(self, X: FloatArray) -> FloatArray:
        """The answer of the estimator's own `predict`."""
        return self._nearest(X)[:, None].astype(np.float64) if len(X) else np.empty((0, 1))

    def snapshot(self, device: str) -> Callable[[Tensor], Tensor]:
        """The current scores."""
        scores = self._scores.snapshot(device)

        def forward(inputs: Tensor) -> Tensor:
            said = scores(inputs)
            graph = 0.0 * said.sum(dim=1, keepdim=True)  # a step function: its gradient is 0
            return torch.argmax(said, dim=1, keepdim=True).to(said.dtype) + graph

        return forward

    def describe(self, X: FloatArray) -> Description:
        """The description of the scores, except for their form."""
        return replace(
            self._scores.describe(X),
            outputs=1,
            smooth=False,
            ends_in_sigmoid=False,
            is_classifier=False,
            gives_class_number=True,
            other_forms=(),
            layers=None,
            program=None,
        )
