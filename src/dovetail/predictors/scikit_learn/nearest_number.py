"""The number of the nearest centre in one column, as `predict` says it: KMeans's cluster, or the place of a
class of NearestCentroid's in `classes_`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.description import Description
from dovetail.core.predictor import Predictor


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
