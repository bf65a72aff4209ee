"""Trees as a part of a larger estimator: in a vote, in a stack, one for each output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from torch import nn

from dovetail.core.predictor import as_predictor
from dovetail.predictors import PREDICTORS
from dovetail.predictors.scikit_learn.modules import Steps
from dovetail.predictors.trees.predictor import TreePredictor

LIBRARIES = ("XGBoost", "LightGBM", "scikit-learn trees")
"""Of the table of predictors: those that are tree ensembles."""


def is_trees(estimator: Any) -> bool:
    """Whether an estimator is a tree ensemble of any library that is known."""
    known = [PREDICTORS[name].recognises for name in LIBRARIES]
    return any(recognises(estimator) for recognises in known if recognises is not None)


def trees_inside(estimator: Any, *, both_classes: bool) -> Iterator[nn.Module]:
    """The flat form, once it agrees with the estimator; a step function."""
    predictor = as_predictor(estimator)
    assert isinstance(predictor, TreePredictor)
    ensemble = predictor.trees()
    if both_classes and ensemble.outputs == 1:
        forms = predictor.describe(np.zeros((1, ensemble.features))).other_forms
        ensemble = next((form.trees() for form in forms if isinstance(form, TreePredictor)), ensemble)
    yield Steps(replace(ensemble, in_order=False).values)
