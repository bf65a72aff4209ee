"""Nearest centres: KMeans and NearestCentroid, as scores that are linear in the features.

What is nearest is decided by -|x - c|^2 / 2. Every centre has the same |x|^2 in it: without it,
x'c - |c|^2 / 2 is left, whose largest is at the same centre.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import PredictorError
from dovetail.predictors.scikit_learn.estimator import is_a, steps_of, way_out
from dovetail.predictors.scikit_learn.modules import dense


def nearness(estimator: Any) -> Iterator[nn.Module]:
    """One score for each centre."""
    yield dense(*_scores(estimator))


def own_nearness(estimator: Any, X: FloatArray) -> FloatArray:
    """The same of the estimator's centres as they are now, behind the steps before it."""
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
    if prior is None or np.isclose(prior, 1.0 / len(prior)).all():  # predict then leaves spreads out
        return centres, -0.5 * np.sum(centres**2, axis=1)
    spread = np.where(estimator.within_class_std_dev_ != 0, estimator.within_class_std_dev_, 1.0)
    scaled = centres / spread
    return scaled / spread, np.log(prior) - 0.5 * np.sum(scaled**2, axis=1)
