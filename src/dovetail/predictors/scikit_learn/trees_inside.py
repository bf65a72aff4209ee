"""Trees as a part of a larger estimator: in a vote, in a stack, one for each output.

As a part they are a step function. Where nothing but trees is averaged or put side by side, the whole is a
tree ensemble again, for the methods that know cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from weakref import finalize

import numpy as np
from torch import nn

from dovetail.core.arrays import FloatArray
from dovetail.core.predictor import as_predictor
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.predictors import PREDICTORS
from dovetail.predictors.scikit_learn.estimator import all_parts, is_a, is_classifier, last_step
from dovetail.predictors.scikit_learn.modules import Steps
from dovetail.predictors.trees.combination import combined
from dovetail.predictors.trees.predictor import TreePredictor

LIBRARIES = ("XGBoost", "LightGBM", "CatBoost", "scikit-learn trees")
"""Of the table of predictors: those that are tree ensembles."""

_agreed: dict[int, TreeEnsemble] = {}
"""By the id of an estimator that lives: its trees as they were compared last, cut by cut. (Not every
library's estimators can be hashed.)"""


def is_trees(estimator: Any) -> bool:
    """Whether an estimator is a tree ensemble of any library that is known."""
    return any(_is_of(library, estimator) for library in LIBRARIES)


def ends_in_trees(estimator: Any) -> bool:
    """Whether a pipeline's last step is a tree ensemble."""
    return is_a(estimator, "Pipeline") and is_trees(last_step(estimator))


def adds_up_in_float32(estimator: Any) -> bool:
    """Whether there are trees of XGBoost's somewhere inside: what is made of them is no finer than they."""
    return any(_is_of("XGBoost", part) for part in all_parts(estimator))


def _is_of(library: str, estimator: Any) -> bool:
    recognises = PREDICTORS[library].recognises
    return recognises is not None and recognises(estimator)


def trees_inside(estimator: Any, *, both_classes: bool) -> Iterator[nn.Module]:
    """The flat form, once it agrees with the estimator; a step function."""
    yield Steps(replace(flat_form(estimator, both_classes=both_classes), in_order=False).values)


def flat_form(estimator: Any, *, both_classes: bool = False) -> TreeEnsemble:
    """An estimator's trees as they are now, once they agree with it."""
    predictor = as_predictor(estimator)
    assert isinstance(predictor, TreePredictor)
    predictor.agreed = _agreed.get(id(estimator))
    ensemble = predictor.trees()
    if id(estimator) not in _agreed:
        finalize(estimator, _agreed.pop, id(estimator), None)
    _agreed[id(estimator)] = ensemble
    if both_classes and ensemble.outputs == 1:
        forms = predictor.describe(np.zeros((1, ensemble.features))).other_forms
        ensemble = next((form.trees() for form in forms if isinstance(form, TreePredictor)), ensemble)
    return ensemble


def is_sum_of_trees(estimator: Any) -> bool:
    """Whether nothing but trees without a link is averaged, or put side by side."""
    if (
        not is_a(estimator, "_MultiOutputEstimator", "_BaseVoting")
        or getattr(estimator, "voting", "") == "hard"
    ):
        return False
    members = estimator.estimators_
    return all(map(is_trees, members)) and all(flat_form(one).link == "identity" for one in members)


def sum_of_trees(estimator: Any, *, both_classes: bool) -> TreeEnsemble:
    """As one ensemble; of two classes the second's share, unless both are meant."""
    if is_a(estimator, "_MultiOutputEstimator"):
        side_by_side = [flat_form(one) for one in estimator.estimators_]
        return combined(side_by_side, [*_places([one.outputs for one in side_by_side])])
    given = estimator._weights_not_none
    shares = np.ones(len(estimator.estimators_)) if given is None else np.asarray(given, dtype=np.float64)
    both = both_classes and is_classifier(estimator)
    ensembles = [flat_form(one, both_classes=both) for one in estimator.estimators_]
    identity = np.eye(ensembles[0].outputs)
    return combined(ensembles, [share * identity for share in shares / shares.sum()])


def _places(widths: list[int]) -> Iterator[FloatArray]:
    """For each part, the matrix that puts its outputs where they belong among all."""
    begin = 0
    for width in widths:
        yield np.eye(sum(widths))[:, begin : begin + width]
        begin += width
