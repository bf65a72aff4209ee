"""Tree ensembles of scikit-learn, as learners."""

from __future__ import annotations

from typing import Any

from dovetail.core.arrays import FloatArray
from dovetail_study.zoo.sizes import by_size


def forest(X: FloatArray, y: FloatArray, size: int, seed: int) -> Any:
    """A random forest: few deep trees, their mean."""
    from sklearn.ensemble import RandomForestRegressor

    trees, depth = by_size(size, (6, 4), (20, 5), (60, 6))
    return RandomForestRegressor(trees, max_depth=depth, random_state=seed).fit(X, y)


def boosting(X: FloatArray, y: FloatArray, size: int, seed: int) -> Any:
    """Gradient boosting: many shallow trees, their sum."""
    from sklearn.ensemble import GradientBoostingRegressor

    trees, rate = by_size(size, (12, 0.3), (40, 0.15), (120, 0.08))
    return GradientBoostingRegressor(
        n_estimators=trees, learning_rate=rate, max_depth=3, random_state=seed
    ).fit(X, y)


def boosted_classes(X: FloatArray, positive: FloatArray, size: int, seed: int) -> Any:
    """Gradient boosting of two classes, 0 and 1."""
    from sklearn.ensemble import GradientBoostingClassifier

    trees = by_size(size, 12, 40, 100)
    return GradientBoostingClassifier(n_estimators=trees, max_depth=3, random_state=seed).fit(X, positive)
