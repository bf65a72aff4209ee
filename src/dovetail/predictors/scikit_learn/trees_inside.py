"""Trees as a part of a larger estimator: in a vote, in a stack, one model for each output.

As a part they are a step function. Where only trees are averaged or put side by side, the whole is a tree
ensemble again, for the methods that use cells. Where they split by categories, `category_features` says
which features of the whole are categories. Votes, stacks and models of several outputs pass their features
unchanged. Before the trees of a pipeline an encoder may number categories, or a column transformer pass them
on. Any other change (a scaler) is refused, since a scaled category is no category any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from weakref import finalize

import numpy as np
from torch import nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError
from dovetail.core.predictor import as_predictor
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.predictors import PREDICTORS
from dovetail.predictors.scikit_learn.estimator import all_parts, is_a, is_classifier, last_step, steps_of
from dovetail.predictors.scikit_learn.modules import Steps
from dovetail.predictors.trees.assembly import combined
from dovetail.predictors.trees.predictor import TreePredictor

LIBRARIES = ("XGBoost", "LightGBM", "CatBoost", "scikit-learn trees")
"""The libraries of tree ensembles in the table of predictors."""

_agreed: dict[int, TreeEnsemble] = {}
"""By the id of a living estimator: its trees as they were last compared. (Estimators of some libraries
cannot be hashed.)"""


def is_trees(estimator: Any) -> bool:
    """Whether an estimator is a tree ensemble of any library that is known."""
    return any(_is_of(library, estimator) for library in LIBRARIES)


def ends_in_trees(estimator: Any) -> bool:
    """Whether a pipeline ends in a tree ensemble."""
    return is_a(estimator, "Pipeline") and is_trees(last_step(estimator))


def adds_up_in_float32(estimator: Any) -> bool:
    """Whether there are trees of XGBoost inside, so that results are no finer than float32."""
    return any(_is_of("XGBoost", part) for part in all_parts(estimator))


def _is_of(library: str, estimator: Any) -> bool:
    recognises = PREDICTORS[library].recognises
    return recognises is not None and recognises(estimator)


def trees_inside(estimator: Any, *, both_classes: bool) -> Iterator[nn.Module]:
    """The flat form of trees, compared with the estimator; a step function."""
    yield Steps(replace(flat_form(estimator, both_classes=both_classes), in_order=False).values)


def flat_form(estimator: Any, *, both_classes: bool = False) -> TreeEnsemble:
    """An estimator's current trees after a comparison with it."""
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
    """Whether only trees without a link are averaged or put side by side."""
    if (
        not is_a(estimator, "_MultiOutputEstimator", "_BaseVoting")
        or getattr(estimator, "voting", "") == "hard"
    ):
        return False
    members = estimator.estimators_
    return all(map(is_trees, members)) and all(flat_form(one).link == "identity" for one in members)


def sum_of_trees(estimator: Any, *, both_classes: bool) -> TreeEnsemble:
    """The sum as one ensemble; for two classes the second one's share, unless both are requested."""
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
    """For each part, the matrix that puts its outputs in their places."""
    begin = 0
    for width in widths:
        yield np.eye(sum(widths))[:, begin : begin + width]
        begin += width


def category_features(estimator: Any) -> set[int]:
    """Features that reach trees as categories without an encoder."""
    *before, last = steps_of(estimator) or [None]
    found: set[int] = set()
    if is_trees(last):
        found = {*flat_form(last).categories}
    elif is_a(last, "_BaseVoting", "_BaseStacking", "_MultiOutputEstimator"):
        members = [one for one in last.estimators_ if not isinstance(one, str)]
        found = {feature for one in members for feature in category_features(one)}
    for step in reversed(before):
        found = {*_before(step, found)}
    return found


def _before(step: Any, features: Iterable[int]) -> Iterable[int]:
    """The features of a step that are categories behind it, without those that it encodes itself."""
    for feature in features:
        inner, own = _part(step, feature)
        if inner is None:
            yield own
        elif not is_a(inner, "OrdinalEncoder"):
            raise PredictorError(
                f"{type(inner).__name__} comes before trees that split feature {feature} by categories: its "
                f"outputs are no categories. Let these features pass (a ColumnTransformer with "
                "remainder='passthrough')."
            )


def _part(step: Any, feature: int) -> tuple[Any, int]:
    """The part of a step that makes a feature (None: it passes), and the feature's number there."""
    if not is_a(step, "ColumnTransformer"):
        return step, feature
    for name, inner, _ in step.transformers_:
        place = step.output_indices_[name]
        if place.start <= feature < place.stop:
            own = int(step._transformer_to_input_indices[name][feature - place.start])
            passes = inner == "passthrough" or (is_a(inner, "FunctionTransformer") and inner.func is None)
            return (None, own) if passes else (inner, own)
    return step, feature
