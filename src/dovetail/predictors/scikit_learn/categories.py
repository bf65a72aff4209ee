"""Categories by name, as frames hold them: a feature that an encoder reads stands for them by number.

The number of a category is its place in the encoder's own list.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.predictors.scikit_learn.estimator import is_a, steps_of


def named_categories(estimator: Any) -> dict[int, tuple[Any, ...]]:
    """By feature, the categories of an encoder at the front of an estimator, where they are no numbers."""
    first = (steps_of(estimator) or [None])[0]
    if is_a(first, "OneHotEncoder", "OrdinalEncoder"):
        listed = enumerate(getattr(first, "categories_", ()))
        return {
            feature: tuple(found) for feature, found in listed if np.asarray(found).dtype.kind not in "fiub"
        }
    found: dict[int, tuple[Any, ...]] = {}
    if is_a(first, "ColumnTransformer"):
        for name, inner, _ in getattr(first, "transformers_", ()):
            if not isinstance(inner, str):
                places = first._transformer_to_input_indices[name]
                found |= {int(places[at]): names for at, names in named_categories(inner).items()}
    return found


def _are_numbers(categories: Any) -> bool:
    return bool(np.asarray(categories).dtype.kind in "fiub")
