"""Steps before trees that make each column of a single feature: scalers, encoders, choices of columns.

    as it is    a feature that passes, or an imputer's where nothing is missing
    rising      behind scalers: what goes left of a cut is again all numbers up to a largest one
    category    behind an encoder: each category goes left or right of a cut, and nothing else is asked

What a column is at some number is always asked of the live steps: no formula of theirs is repeated here, and
their rounding is theirs.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from dovetail.core.errors import UnsupportedError
from dovetail.predictors import SCALERS
from dovetail.predictors.scikit_learn.encoders import ENCODERS, category_numbers
from dovetail.predictors.scikit_learn.estimator import changed_itself, is_a


class Kind(IntEnum):
    """What a column is of its feature."""

    AS_IT_IS = 0
    RISING = 1
    CATEGORY = 2


class Source(NamedTuple):
    """Where a column comes from."""

    feature: int
    kind: Kind


def sources_through(steps: list[Any], features: int) -> list[Source]:
    """Of every column behind the steps; refused where one has several features in it, or may fall."""
    found = [Source(j, Kind.AS_IT_IS) for j in range(features)]
    for step in steps:
        found = _through(step, found)
    return found


def _through(step: Any, given: list[Source]) -> list[Source]:
    if isinstance(step, str) or step is None:
        return [] if step == "drop" else given
    reason = changed_itself(step)
    if reason:
        raise UnsupportedError(f"trees behind {type(step).__name__} cannot be read: {reason}.")
    if is_a(step, "Pipeline"):
        for _, inner in step.steps:
            given = _through(inner, given)
        return given
    if is_a(step, *SCALERS):
        return [Source(one.feature, max(one.kind, Kind.RISING)) for one in given]
    if is_a(step, *ENCODERS):
        return _encoded(step, given)
    if is_a(step, "ColumnTransformer"):
        return _side_by_side(step, given)
    if is_a(step, "FunctionTransformer") and step.func is None:  # what "passthrough" is once it is trained
        return given
    if is_a(step, "SimpleImputer") and not step.add_indicator and _keeps_all(step):
        return given
    raise UnsupportedError(
        f"trees behind {type(step).__name__} cannot be read, only behind {', '.join((*SCALERS, *ENCODERS))}, "
        "SimpleImputer and ColumnTransformer of these."
    )


def _encoded(encoder: Any, given: list[Source]) -> list[Source]:
    """One-hot: a column for each category that is not dropped."""
    if any(one.kind is not Kind.AS_IT_IS for one in given):
        raise UnsupportedError(f"{type(encoder).__name__} behind another step cannot be read before trees.")
    numbers = category_numbers(encoder)
    if is_a(encoder, "OrdinalEncoder"):
        return [Source(one.feature, Kind.CATEGORY) for one in given]
    dropped = [None] * len(given) if encoder.drop_idx_ is None else encoder.drop_idx_
    counts = [len(each) - (gone is not None) for each, gone in zip(numbers, dropped, strict=True)]
    return [
        Source(one.feature, Kind.CATEGORY)
        for one, count in zip(given, counts, strict=True)
        for _ in range(count)
    ]


def _side_by_side(transformer: Any, given: list[Source]) -> list[Source]:
    if transformer.transformer_weights:
        raise UnsupportedError("ColumnTransformer with transformer_weights cannot be read before trees.")
    found: list[Source] = []
    for name, inner, _ in transformer.transformers_:
        places = transformer._transformer_to_input_indices[name]
        if len(places):
            found += _through(inner, [given[int(place)] for place in places])
    return found


def _keeps_all(imputer: Any) -> bool:
    """Whether a column comes out for every one that goes in."""
    known = [isinstance(value, str) or not np.isnan(value) for value in imputer.statistics_]
    return bool(imputer.keep_empty_features or all(known))
