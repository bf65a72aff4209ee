"""What an estimator itself says of some rows: its own method, asked as its owner asks it.

Rows are numbers. Where an encoder reads a feature, the number stands for a category: it is the category
itself, or the place of one that is no number. A row that holds no category there has no answer where the
encoder refuses others; between two whole numbers, where no answer counts, the nearest category speaks.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.predictors.scikit_learn.centroids import nearest_by_itself, own_nearness
from dovetail.predictors.scikit_learn.encoders import Categories, categories_read, is_numeric
from dovetail.predictors.scikit_learn.estimator import (
    answering_method,
    has_binary_probability,
    is_a,
    last_step,
)
from dovetail.predictors.silence import NAMES, silenced

TIE = 1e-9
"""Scores that are so close, relative to 1 + |value|, may be told apart otherwise by another order of sums."""


def own_answer(estimator: Any, X: FloatArray) -> np.ndarray[Any, Any]:
    """(n, q) or (n,) the estimator's answer; of two classes, both."""
    X = np.array(X, dtype=np.float64)  # a copy: some scalers were told to work in place
    known = categories_read(estimator)
    if not known:
        return _asked(estimator, _table(estimator, X, {}))
    X, unknown, named = _as_categories(X, known)
    answer = _asked(estimator, _table(estimator, X, named))
    answer[unknown] = np.nan
    return answer


def as_read(estimator: Any, X: FloatArray) -> Any:
    """The rows as the estimator's first step takes them; what is no category is taken for some."""
    X = np.array(X, dtype=np.float64)
    known = categories_read(estimator)
    X, _, named = _as_categories(X, known) if known else (X, None, {})
    return _table(estimator, X, named)


def finds_the_nearest(estimator: Any, X: FloatArray, scores: FloatArray) -> bool:
    """Whether the largest score is at the centre that the estimator finds nearest, where that is clear."""
    first_two = np.sort(scores, axis=1)[:, -2:]
    clear = np.diff(first_two, axis=1)[:, -1] > TIE * (1.0 + np.abs(first_two[:, -1]))
    labels = nearest_number(estimator, X)
    return bool(np.array_equal(scores.argmax(axis=1)[clear], labels[clear]))


def nearest_number(estimator: Any, X: FloatArray) -> IntArray:
    """(n,) the number of the centre that the estimator itself finds nearest."""
    with silenced(NAMES):
        return nearest_by_itself(estimator, as_read(estimator, X))


def _as_categories(X: FloatArray, known: Categories) -> tuple[FloatArray, Any, dict[int, Any]]:
    """Rows an encoder can read, which of them hold no category, and the columns that are no numbers."""
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
                named[feature][other] = None  # no category of anybody's
        unknown |= other & strict
    return X, unknown, named


def _table(estimator: Any, X: FloatArray, named: dict[int, Any]) -> Any:
    """As the estimator was trained: a frame if it knows names, an array of objects if it reads strings."""
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


def _asked(estimator: Any, table: Any) -> np.ndarray[Any, Any]:
    if hasattr(estimator, "feature_names_in_") and isinstance(table, np.ndarray):
        with silenced(NAMES):
            return _said(estimator, table)
    return _said(estimator, table)


def _said(estimator: Any, table: Any) -> np.ndarray[Any, Any]:
    """By the method that holds its answer."""
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
    """Probabilities of one label after the other; of two classes, the second's alone."""
    members = last_step(estimator).estimators_
    return np.concatenate(
        [
            answer[:, 1:] if has_binary_probability(one) else answer
            for one, answer in zip(members, answers, strict=True)
        ],
        axis=1,
    )
