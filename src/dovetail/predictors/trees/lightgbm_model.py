"""LightGBM's estimators and boosters, asked as they are and read off the text they save of themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.predictors.silence import NAMES, silenced
from dovetail.predictors.trees.lightgbm_text import CLASSES, lightgbm_ensemble, objective_of
from dovetail.predictors.trees.predictor import TreePredictor


def lightgbm_categories(model: Any) -> dict[int, tuple[Any, ...]]:
    """The names of its categories by feature, where it was trained on a frame that had them."""
    live = LightgbmTrees(model)
    names = live.frame_categories
    features = live.read().categories if names else ()
    if len(features) != len(names):  # some feature was told to be one, and had numbers
        return {}
    each = zip(features, names, strict=True)
    return {feature: tuple(own) for feature, own in each if all(isinstance(name, str) for name in own)}


class LightgbmTrees(TreePredictor):
    """Both answer with the rounds up to the best one, and save as many."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._last: tuple[str, TreeEnsemble] | None = None
        """The text that was read last, and what it says."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """If it was trained on a frame; others are called Column_0 and so on."""
        names = tuple(map(str, self._booster.feature_name()))
        return None if names == tuple(f"Column_{j}" for j in range(len(names))) else names

    @property
    def frame_categories(self) -> list[list[Any]]:
        """Of each column of categories that the frame had, in their order."""
        return self._booster.pandas_categorical or []

    @property
    def is_classifier(self) -> bool:
        """By its method, or a booster's objective."""
        if self._is_estimator:
            return hasattr(self._model, "predict_proba")
        text = self._text if self._last is None else self._last[0]  # every answer asks for it
        return objective_of(text) in CLASSES

    def answer(self, X: FloatArray) -> FloatArray:
        """`predict_proba` of a classifier, `predict` of all others; of two classes, both."""
        asks = self._is_estimator and self.is_classifier
        with silenced(NAMES):
            said = np.asarray(
                self._model.predict_proba(X) if asks else self._model.predict(X), dtype=np.float64
            )
        if said.ndim == 1 and self.is_classifier:
            return np.column_stack([1.0 - said, said])
        return said

    def read(self) -> TreeEnsemble:
        """What it saves."""
        if self._is_estimator and not self._model.__sklearn_is_fitted__():
            raise UnsupportedError(f"{self.name} is not trained yet; call its fit first.")
        text = self._text
        if self._last is None or self._last[0] != text:
            self._last = text, lightgbm_ensemble(text)
        return self._last[1]

    @property
    def _is_estimator(self) -> bool:
        return hasattr(self._model, "fit")

    @property
    def _booster(self) -> Any:
        return self._model.booster_ if self._is_estimator else self._model

    @property
    def _text(self) -> str:
        return str(self._booster.model_to_string())
