"""Searches over options (GridSearchCV and its like): what counts is the best estimator they trained."""

from __future__ import annotations

from typing import Any

from dovetail.core.errors import PredictorError


def best_estimator(search: Any) -> Any:
    """The estimator that was trained again with the best options; it goes on like any other."""
    found = getattr(search, "best_estimator_", None)
    if found is None:
        raise PredictorError(
            f"{type(search).__name__} holds no best estimator; call its fit first, with refit=True."
        )
    return found
