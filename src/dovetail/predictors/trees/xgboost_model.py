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


class XgboostTrees(TreePredictor):
    """An estimator in scikit-learn's manner, or a raw booster."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._estimator = hasattr(model, "get_booster")
        self._last: Saved | None = None

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """If it was trained on a frame."""
        names = self._booster.feature_names if self._trained else None
        return None if names is None else tuple(map(str, names))

    @property
    def is_classifier(self) -> bool:
        """By an estimator's method; by a booster's objective, which training goes on with."""
        if self._estimator:
            return hasattr(self._model, "predict_proba")
        return (self._last or self._saved()).objective in CLASSES  # every answer asks for it

    def answer(self, X: FloatArray) -> FloatArray:
        """Of an estimator `predict_proba`, or `predict` where it has no classes; of a booster its prediction
        with all rounds, of two classes both."""
        if self._estimator:
            ask = self._model.predict_proba if self.is_classifier else self._model.predict
            with silenced(DEVICES):
                return np.asarray(ask(X, validate_features=False), dtype=np.float64)
        said = np.asarray(self._model.inplace_predict(X, validate_features=False), dtype=np.float64)
        return np.column_stack([1.0 - said, said]) if said.ndim == 1 and self.is_classifier else said

    def read(self) -> TreeEnsemble:
        """The rounds that its own answer takes."""
        if not self._trained:
            raise UnsupportedError(f"{self.name} is not trained yet; call its fit first.")
        return self._saved().ensemble

    def _saved(self) -> Saved:
        """Read again only where the booster saves something else than last time."""
        content, rounds, missing = bytes(self._booster.save_raw("ubj")), self._rounds, self._missing
        if self._last is None or self._last[:3] != (content, rounds, missing):
            document = parse(content)
            ensemble = xgboost_ensemble(document, rounds, missing)
            self._last = Saved(content, rounds, missing, objective_of(document), ensemble)
        return self._last

    @property
    def _booster(self) -> Any:
        return self._model.get_booster() if self._estimator else self._model

    @property
    def _missing(self) -> float | None:
        """A number that counts as missing for an estimator, and has a way of its own through the trees."""
        missing = self._model.missing if self._estimator else None
        return None if missing is None or np.isnan(missing) else float(missing)

    @property
    def _rounds(self) -> int | None:
        """Of an estimator up to the best round, where training was stopped early; None: all."""
        best = getattr(self._model, "best_iteration", None) if self._estimator else None
        return None if best is None else int(best) + 1

    @property
    def _trained(self) -> bool:
        return not self._estimator or bool(self._model.__sklearn_is_fitted__())
