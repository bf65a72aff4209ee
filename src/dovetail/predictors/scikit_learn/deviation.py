"""The mean and standard deviation of a Gaussian process of scikit-learn as one predictor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError
from dovetail.predictors.scikit_learn.answer import as_read
from dovetail.predictors.scikit_learn.estimator import last_step, way_out
from dovetail.predictors.scikit_learn.gaussian_process import GaussianProcess
from dovetail.predictors.scikit_learn.predictor import ScikitLearnPredictor
from dovetail.predictors.silence import NAMES, silenced

NEGATIVE = "Predicted variances smaller than 0"
"""scikit-learn's warning where rounding makes a variance negative; it takes 0 there, and so does the
network."""


class MeanAndDeviation(ScikitLearnPredictor):
    """A Gaussian process, or a pipeline that ends in one: `predict(X, return_std=True)`, side by side."""

    def _modules(self) -> Iterator[nn.Module]:
        *before, last = super()._modules()
        if not isinstance(last, GaussianProcess):
            raise PredictorError(f"{self.name} gives no standard deviation; {way_out(self._estimator)}")
        yield from before
        yield last.with_deviation()

    def _answer(self, X: FloatArray) -> np.ndarray[Any, Any]:
        with silenced(NAMES), silenced(NEGATIVE):
            said = self._estimator.predict(as_read(self._estimator, X), return_std=True)
        return np.concatenate([np.reshape(part, (len(X), -1)) for part in said], axis=1)

    def _require_agreement(self, truth: FloatArray, ours: FloatArray, *, coarse: bool) -> None:
        """Deviations by their squares, in units of the training outputs."""
        spread = np.resize(np.asarray(last_step(self._estimator)._y_train_std), truth.shape[1] // 2)
        both = []
        for values in (truth, ours):
            mean, deviation = np.split(values, 2, axis=1)
            both.append(np.concatenate([mean, (deviation / spread) ** 2], axis=1))
        super()._require_agreement(*both, coarse=coarse)
