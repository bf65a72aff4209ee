"""XGBoost's estimators and boosters, asked as they are and read off what they save of themselves.

An estimator answers with the rounds up to the best one where training was stopped early, a raw booster with
all of them: the object that was passed decides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.predictors.silence import DEVICES, silenced
from dovetail.predictors.trees.predictor import TreePredictor
from dovetail.predictors.trees.ubjson import parse
from dovetail.predictors.trees.xgboost_document import (
    CLASSES,
    category_names,
    objective_of,
    xgboost_ensemble,
)


def xgboost_trees(model: Any) -> TreePredictor:
    """An XGBRegressor, XGBClassifier, ... or a Booster as a predictor."""
    return TreePredictor(
        XgboostBooster(model) if not hasattr(model, "get_booster") else XgboostEstimator(model)
    )


def xgboost_categories(model: Any) -> dict[int, tuple[str, ...]]:
    """The names of its categories by feature, where it was trained on a frame that had them."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    if "c" not in (booster.feature_types or ()):
        return {}
    return category_names(parse(bytes(booster.save_raw("ubj"))))


class Saved(NamedTuple):
    """What a booster saved of itself, and what it says."""

    content: bytes
    rounds: int | None
    missing: float | None
    objective: str
    ensemble: TreeEnsemble


class SavedTrees:
    """Read again only where a booster saves something else than last time."""

    def __init__(self) -> None:
        self.last: Saved | None = None

    def of(self, booster: Any, rounds: int | None, missing: float | None = None) -> Saved:
        """Of its first rounds, or of all."""
        content = bytes(booster.save_raw("ubj"))
        if self.last is None or self.last[:3] != (content, rounds, missing):
            document = parse(content)
            ensemble = xgboost_ensemble(document, rounds, missing)
            self.last = Saved(content, rounds, missing, objective_of(document), ensemble)
        return self.last


class XgboostBooster:
    """A raw booster."""

    def __init__(self, booster: Any) -> None:
        self._booster = booster
        self.name = type(booster).__name__
        self._saved = SavedTrees()

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """If it was trained on a frame."""
        names = self._booster.feature_names
        return None if names is None else tuple(map(str, names))

    @property
    def is_classifier(self) -> bool:
        """By its objective, which training goes on with: every answer asks for it."""
        return (self._saved.last or self._saved.of(self._booster, None)).objective in CLASSES

    def answer(self, X: FloatArray) -> FloatArray:
        """Its own prediction with all rounds; of two classes, both."""
        said = np.asarray(self._booster.inplace_predict(X, validate_features=False), dtype=np.float64)
        if said.ndim == 1 and self.is_classifier:
            return np.column_stack([1.0 - said, said])
        return said

    def read(self) -> TreeEnsemble:
        """All rounds."""
        return self._saved.of(self._booster, None).ensemble


class XgboostEstimator:
    """An estimator in scikit-learn's manner."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.name = type(model).__name__
        self._saved = SavedTrees()

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """If it was trained on a frame."""
        names = self._model.get_booster().feature_names if self._trained else None
        return None if names is None else tuple(map(str, names))

    @property
    def is_classifier(self) -> bool:
        """By its method."""
        return hasattr(self._model, "predict_proba")

    def answer(self, X: FloatArray) -> FloatArray:
        """`predict_proba` of a classifier, `predict` of all others."""
        ask = self._model.predict_proba if self.is_classifier else self._model.predict
        with silenced(DEVICES):
            return np.asarray(ask(X, validate_features=False), dtype=np.float64)

    def read(self) -> TreeEnsemble:
        """The rounds that its own `predict` takes."""
        if not self._trained:
            raise UnsupportedError(f"{self.name} is not trained yet; call its fit first.")
        return self._saved.of(self._model.get_booster(), self._rounds, self._missing).ensemble

    @property
    def _missing(self) -> float | None:
        """A number that counts as missing, and has a way of its own through the trees."""
        missing = self._model.missing
        return None if missing is None or np.isnan(missing) else float(missing)

    @property
    def _rounds(self) -> int | None:
        """Up to the best round, where training was stopped early."""
        best = getattr(self._model, "best_iteration", None)
        return None if best is None else int(best) + 1

    @property
    def _trained(self) -> bool:
        return bool(self._model.__sklearn_is_fitted__())
