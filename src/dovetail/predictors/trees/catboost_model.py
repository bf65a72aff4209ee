"""CatBoost's models, asked as they are and read off the JSON that they export."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.predictors.trees.catboost_document import catboost_ensemble
from dovetail.predictors.trees.predictor import TreePredictor


class CatboostTrees(TreePredictor):
    """A plain `CatBoost` answers with the sum of its trees, estimators with what their loss makes of it."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """If it was trained on a frame; others are called 0 and so on."""
        names = tuple(map(str, self._model.feature_names_ or ()))
        return None if names == tuple(map(str, range(len(names)))) else names

    @property
    def is_classifier(self) -> bool:
        """By its method."""
        return hasattr(self._model, "predict_proba")

    def answer(self, X: FloatArray) -> FloatArray:
        """`predict_proba` of a classifier, `predict` of all others."""
        ask = self._model.predict_proba if self.is_classifier else self._model.predict
        return np.asarray(ask(self._table(X)), dtype=np.float64)

    def _table(self, X: FloatArray) -> Any:
        """Categories must be integers to it, and not floats."""
        categories = self._model.get_cat_feature_indices()
        if not categories:
            return X
        table = X.astype(object)
        table[:, categories] = np.round(X[:, categories]).astype(np.int64)
        return table

    def read(self) -> TreeEnsemble:
        """What it exports: that is only done into files."""
        if not self._model.is_fitted():
            raise UnsupportedError(f"{self.name} is not trained yet; call its fit first.")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.json"
            self._model.save_model(str(file), format="json")
            document = json.loads(file.read_text(encoding="utf-8"))
        return catboost_ensemble(document, raw=type(self._model).__name__ in ("CatBoost", "CatBoostRanker"))
