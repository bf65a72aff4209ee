"""scikit-learn's encoders of categories, over features that are whole numbers.

A feature whose categories are numbers holds the number itself; one whose categories are strings holds the
place of its category in the encoder's own list (`categories_`, sorted unless its owner gave it). At whole
numbers the network is exact. Between them, where no answer counts, it goes straight from one to the next, so
that a search has a slope to follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError
from dovetail.predictors.scikit_learn.estimator import is_a, steps_of, way_out
from dovetail.predictors.scikit_learn.modules import dense, joined, shift

ENCODERS = ("OneHotEncoder", "OrdinalEncoder")
Categories = dict[int, tuple[Any, bool]]
"""Of a feature: its categories, and whether all others are errors."""


def one_hot_encoder(encoder: Any) -> Iterator[nn.Module]:
    """One column for each category: a ReLU hat over its number, which is 0 at all others."""
    numbers, dropped = category_numbers(encoder), encoder.drop_idx_
    kept = []
    for feature, values in enumerate(numbers):
        gone = None if dropped is None else dropped[feature]
        kept += [(feature, value) for place, value in enumerate(values) if place != gone]
    at = np.array([feature for feature, _ in kept])
    centre = np.array([value for _, value in kept])
    size = len(kept)
    spread = np.eye(len(numbers))[at]
    yield dense(np.concatenate([spread] * 3), np.concatenate([1.0 - centre, -centre, -1.0 - centre]))
    yield nn.ReLU()
    yield dense(np.concatenate([np.eye(size), -2.0 * np.eye(size), np.eye(size)], axis=1), 0.0)


def ordinal_encoder(encoder: Any) -> Iterator[nn.Module]:
    """The place of each category: a line from one to the next."""
    numbers = category_numbers(encoder)
    if encoder.handle_unknown != "error":
        raise _cannot(encoder, f"handle_unknown={encoder.handle_unknown!r}")
    if all(np.array_equal(np.diff(values), np.ones(values.size - 1)) for values in numbers):
        yield shift(-np.array([values[0] for values in numbers]))
    else:
        branches = [([feature], [*_interpolated(values)]) for feature, values in enumerate(numbers)]
        yield from joined(branches, len(numbers))


def _interpolated(values: FloatArray) -> Iterator[nn.Module]:
    """0 up to the first value, one more at each further one."""
    slope = 1.0 / np.diff(values) if values.size > 1 else np.zeros(1)
    bends = values[:-1] if values.size > 1 else values
    yield dense(np.ones((bends.size, 1)), -bends)
    yield nn.ReLU()
    yield dense(np.diff(slope, prepend=0.0)[None, :], 0.0)


def category_numbers(encoder: Any) -> list[FloatArray]:
    """By feature, the numbers that stand for its categories: they themselves, or their places."""
    if getattr(encoder, "infrequent_categories_", None) is not None and any(
        one is not None for one in encoder.infrequent_categories_
    ):
        raise _cannot(encoder, "infrequent categories")
    return [_numbers(encoder, categories) for categories in encoder.categories_]


def _numbers(encoder: Any, categories: Any) -> FloatArray:
    if not is_numeric(categories):
        return np.arange(len(categories), dtype=np.float64)
    values = np.asarray(categories, dtype=np.float64)
    if not np.array_equal(values, np.round(values)):  # NaN and infinity, too
        raise _cannot(encoder, "categories that are no whole numbers")
    return values


def is_numeric(categories: Any) -> bool:
    """Whether a feature holds its categories themselves, not their places."""
    return bool(np.asarray(categories).dtype.kind in "fiub")


def _cannot(encoder: Any, what: str) -> PredictorError:
    return PredictorError(
        f"{type(encoder).__name__} with {what} cannot be written as a network; {way_out(encoder)}"
    )


def categories_read(estimator: Any) -> Categories:
    """Of each feature that an encoder reads as it is given."""
    first = (steps_of(estimator) or [None])[0]
    if is_a(first, "ColumnTransformer"):
        found: Categories = {}
        for name, inner, _ in getattr(first, "transformers_", ()):
            if not isinstance(inner, str):
                places = first._transformer_to_input_indices[name]
                found |= {int(places[at]): known for at, known in categories_read(inner).items()}
        return found
    if is_a(first, "SimpleImputer") and len(steps_of(estimator)) > 1:  # nothing is missing here
        first = steps_of(estimator)[1]
    if is_a(first, *ENCODERS):
        strict = first.handle_unknown == "error"
        return {at: (categories, strict) for at, categories in enumerate(getattr(first, "categories_", ()))}
    return _histogram_categories(first) if is_a(first, "BaseHistGradientBoosting") else {}


def _histogram_categories(estimator: Any) -> Categories:
    """What histogram gradient boosting encodes by itself; what it does not know is missing to it."""
    chosen = getattr(estimator, "is_categorical_", None)
    if chosen is None:
        return {}
    each = estimator._preprocessor.named_transformers_["encoder"].categories_
    numbers = [np.array([one for one in names if one is not None and one == one]) for names in each]
    return {int(at): (names, False) for at, names in zip(np.flatnonzero(chosen), numbers, strict=True)}
