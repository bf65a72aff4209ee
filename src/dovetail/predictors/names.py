"""Names that a predictor knows by number: the categories of its features."""

from __future__ import annotations

from typing import Any

from dovetail.predictors import PREDICTORS


def categories_of(predictor: Any) -> dict[int, tuple[Any, ...]]:
    """By feature, the names of its categories in the order of their numbers; of most predictors none.

    A column of such a feature holds a number: the place of the category in this list, which libraries may
    have sorted. This is the way back.

    >>> import numpy as np, pandas as pd, dovetail as dt
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> frame = pd.DataFrame({"wood": pd.Categorical(["oak", "ash"] * 30, categories=["oak", "ash"])})
    >>> trees = HistGradientBoostingRegressor(categorical_features="from_dtype")
    >>> trees = trees.fit(frame, np.tile([2.0, 1.0], 30))
    >>> names = dt.categories_of(trees)[0]
    >>> print(names[1])  # what a column that is 1 stands for
    oak
    """
    kind = PREDICTORS.recognised(predictor)
    if kind == "scikit-learn searches":
        return categories_of(getattr(predictor, "best_estimator_", None))
    if kind in ("XGBoost", "LightGBM"):
        return _of_frames(kind, predictor)
    if kind not in ("scikit-learn", "scikit-learn trees"):
        return {}
    from dovetail.predictors.scikit_learn.encoders import categories_read, is_numeric

    read = {feature: categories for feature, (categories, _) in categories_read(predictor).items()}
    return {feature: tuple(names) for feature, names in read.items() if not is_numeric(names)}


def _of_frames(library: str, model: Any) -> dict[int, tuple[Any, ...]]:
    """What a library keeps of the frame that a model was trained on; of one that cannot be read, nothing."""
    from dovetail.predictors.trees.lightgbm_model import lightgbm_categories
    from dovetail.predictors.trees.xgboost_model import xgboost_categories

    try:
        return (xgboost_categories if library == "XGBoost" else lightgbm_categories)(model)
    except Exception:  # it says why when it is added
        return {}
