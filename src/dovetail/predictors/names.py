"""Names that a predictor knows by number: the categories of its features."""

from __future__ import annotations

from typing import Any

from dovetail.predictors import PREDICTORS


def categories_of(predictor: Any) -> dict[int, tuple[Any, ...]]:
    """By feature, the names of its categories in the order of their numbers; of most predictors none."""
    kind = PREDICTORS.recognised(predictor)
    if kind == "scikit-learn searches":
        return categories_of(getattr(predictor, "best_estimator_", None))
    if kind not in ("scikit-learn", "scikit-learn trees"):
        return {}
    from dovetail.predictors.scikit_learn.encoders import categories_read, is_numeric

    read = {feature: categories for feature, (categories, _) in categories_read(predictor).items()}
    return {feature: tuple(names) for feature, names in read.items() if not is_numeric(names)}
