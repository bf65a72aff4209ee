"""Scalers before trees: each threshold is moved back through them, by asking the scalers themselves.

A scaler rises with each feature, so that what goes left behind it is again all numbers up to a largest one,
which is found by bisection on the live scalers (`thresholds.py`): no formula of theirs is repeated here, and
their rounding is theirs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.predictors import SCALERS
from dovetail.predictors.scikit_learn.estimator import changed, is_a, steps_of
from dovetail.predictors.silence import NAMES, silenced
from dovetail.predictors.trees.catboost_model import CatboostTrees
from dovetail.predictors.trees.lightgbm_model import LightgbmTrees
from dovetail.predictors.trees.predictor import LiveTrees, TreePredictor
from dovetail.predictors.trees.scikit_learn import ScikitLearnTrees
from dovetail.predictors.trees.thresholds import largest_going_left
from dovetail.predictors.trees.xgboost_model import XgboostEstimator


def pipeline_trees(pipeline: Any) -> TreePredictor:
    """A trained pipeline of scalers that ends in a tree ensemble."""
    return TreePredictor(PipelineTrees(pipeline))


class PipelineTrees(ScikitLearnTrees):
    """Asked as a whole, read step by step."""

    def read(self) -> TreeEnsemble:
        """The trees of the last step, over what the first step reads."""
        *scalers, last = steps_of(self._estimator)
        for scaler in scalers:
            if not is_a(scaler, *SCALERS) or changed(scaler):
                raise UnsupportedError(
                    f"{self.name}: {type(scaler).__name__} before trees cannot be read; "
                    f"{', '.join(SCALERS)} can."
                )
        ensemble = _live(last).read()
        if scalers and ensemble.categories:
            raise UnsupportedError(
                f"{self.name}: feature {ensemble.categories[0]} is a category to its trees, and scaled "
                "before them; let it pass (a ColumnTransformer with remainder='passthrough')."
            )
        splits = np.flatnonzero(~ensemble.is_leaf & np.isfinite(ensemble.threshold))
        feature, cut = ensemble.feature[splits], ensemble.threshold[splits]
        cuts, which = np.unique(np.stack([feature.astype(np.float64), cut]), axis=1, return_inverse=True)
        place, limit = (np.arange(cuts.shape[1]), cuts[0].astype(np.int64)), cuts[1]

        def goes_left(x: FloatArray) -> BoolArray:
            rows = np.zeros((x.size, ensemble.features))
            rows[place] = x
            with silenced(NAMES):  # the first one may have been trained on a frame
                for scaler in scalers:
                    rows = np.asarray(scaler.transform(rows), dtype=np.float64)
            return np.asarray(rows[place] <= limit)

        threshold = ensemble.threshold.copy()
        threshold[splits] = largest_going_left(goes_left, limit.size)[which]
        return replace(ensemble, threshold=threshold)


def _live(model: Any) -> LiveTrees:
    """The reader of the last step's library."""
    if hasattr(model, "get_booster"):
        return XgboostEstimator(model)
    if hasattr(model, "get_leaf_values"):
        return CatboostTrees(model)
    return LightgbmTrees(model) if hasattr(model, "booster_") else ScikitLearnTrees(model)
