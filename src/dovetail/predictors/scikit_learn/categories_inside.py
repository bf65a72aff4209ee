"""Trees inside a larger estimator that split by categories: which of its own features these are.

Votes, stacks and models of several outputs hand their features on as they are. Before the trees of a
pipeline an encoder may number categories, or a column transformer let them pass: what changes them otherwise
(a scaler) is refused, since a category that was scaled is none any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dovetail.core.errors import PredictorError
from dovetail.predictors.scikit_learn.estimator import is_a, steps_of
from dovetail.predictors.scikit_learn.trees_inside import flat_form, is_trees

HANDS_ON = ("_BaseVoting", "_BaseStacking", "_MultiOutputEstimator")


def category_features(estimator: Any) -> set[int]:
    """Features of the estimator that reach trees of its as categories, and are no encoder's."""
    *before, last = steps_of(estimator) or [None]
    found: set[int] = set()
    if is_trees(last):
        found = {*flat_form(last).categories}
    elif is_a(last, *HANDS_ON):
        members = [one for one in last.estimators_ if not isinstance(one, str)]
        found = {feature for one in members for feature in category_features(one)}
    for step in reversed(before):
        found = {*_before(step, found)}
    return found


def _before(step: Any, features: Iterable[int]) -> Iterable[int]:
    """Where a step has features from that are categories behind it; those it numbers itself are left out."""
    for feature in features:
        inner, own = _part(step, feature)
        if inner is None:
            yield own
        elif not is_a(inner, "OrdinalEncoder"):
            raise PredictorError(
                f"{type(inner).__name__} comes before trees that split feature {feature} by categories: what "
                "it makes of them are none. Let these features pass (a ColumnTransformer with "
                "remainder='passthrough')."
            )


def _part(step: Any, feature: int) -> tuple[Any, int]:
    """What in a step makes a feature (None: it passes), and of which one."""
    if not is_a(step, "ColumnTransformer"):
        return step, feature
    for name, inner, _ in step.transformers_:
        place = step.output_indices_[name]
        if place.start <= feature < place.stop:
            own = int(step._transformer_to_input_indices[name][feature - place.start])
            return (None, own) if _passes(inner) else (inner, own)
    return step, feature


def _passes(inner: Any) -> bool:
    return inner == "passthrough" or (is_a(inner, "FunctionTransformer") and inner.func is None)
