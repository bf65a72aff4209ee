"""Nearest centres: KMeans and NearestCentroid, as scores that are linear in the features.

What is nearest is decided by -|x - c|^2 / 2. Every centre has the same |x|^2 in it: without it,
x'c - |c|^2 / 2 is left, whose largest is at the same centre.

The number of the nearest centre in one column, as `predict` says it: KMeans's cluster, or the place of a
class of NearestCentroid's in `classes_`.
"""

from __future__ import annotations

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


class NearestNumber:
    """Which score of `scores` is the largest. It jumps, so that there is no slope and no bound."""

    def __init__(self, scores: Predictor, nearest: Callable[[FloatArray], IntArray]) -> None:
        self._scores, self._nearest = scores, nearest

    def predict(self, X: FloatArray) -> FloatArray:
        """By the estimator's own predict."""
        return self._nearest(X)[:, None].astype(np.float64) if len(X) else np.empty((0, 1))

    def snapshot(self, device: str) -> Callable[[Tensor], Tensor]:
        """Of the scores as they are now."""
        scores = self._scores.snapshot(device)

        def forward(inputs: Tensor) -> Tensor:
            said = scores(inputs)
            graph = 0.0 * said.sum(dim=1, keepdim=True)  # in which nothing slopes
            return torch.argmax(said, dim=1, keepdim=True).to(said.dtype) + graph

        return forward

    def describe(self, X: FloatArray) -> Description:
        """What is known of the scores, but for their form."""
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
