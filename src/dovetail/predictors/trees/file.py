"""Tree ensembles in files of XGBoost (.json, .ubj), CatBoost (.json) and LightGBM (.txt), parsed and never
run.

No library is called: the file is the model, evaluated in the arithmetic of the library that wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.files import FileLimits, Meter
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.predictors.trees import catboost, lightgbm, xgboost
from dovetail.predictors.trees.predictor import TreePredictor
from dovetail.predictors.trees.xgboost import parse

LIMITS = FileLimits(bytes=1 << 29, elements=1 << 28, seconds=60.0)
"""Half a gigabyte of text takes five times as much memory to read; real models have a hundredth of it."""


MOST_BYTES = 8
"""Number of bytes of one number in a `.ubj` file."""


class WrittenTrees(TreePredictor):
    """A model that exists only as a file."""

    is_classifier = False

    def __init__(self, name: str, ensemble: TreeEnsemble, *, is_classifier: bool) -> None:
        self.name, self._ensemble, self.is_classifier = name, ensemble, is_classifier
        self._summed = replace(ensemble, in_order=True)

    def read(self) -> TreeEnsemble:
        """Feature names as in the file."""
        return self._ensemble

    def answer(self, X: FloatArray) -> FloatArray:
        """The answers in the library's own arithmetic, tree by tree; both columns for two classes."""
        return self._both_shares(self._summed.values(X))


def load_trees(file: Path, limits: FileLimits | None) -> TreePredictor:
    """The model in a file, by its suffix."""
    meter = Meter(str(file), (limits or FileLimits()).before(LIMITS), "load_predictor", PredictorError)
    meter.add_bytes(file.stat().st_size, "it has")
    found = READERS[file.suffix.lower()](file, meter)
    meter.require_time()
    return found


def _json(file: Path, meter: Meter) -> WrittenTrees:
    text = file.read_text(encoding="utf-8")
    meter.add_elements(text.count(",") + text.count(":"), "it has")
    document = json.loads(text)
    meter.require_time()
    if catboost.is_catboost(document):
        is_classifier = catboost.loss_of(document) in catboost.CLASSES
        ensemble = catboost.catboost_ensemble(document)
        return WrittenTrees(file.name, ensemble, is_classifier=is_classifier)
    return _xgboost(file, document)


def _ubj(file: Path, meter: Meter) -> WrittenTrees:
    meter.add_elements(file.stat().st_size // MOST_BYTES, "it has at least")
    document = parse(file.read_bytes())
    meter.require_time()
    return _xgboost(file, document)


def _xgboost(file: Path, document: Any) -> WrittenTrees:
    if not isinstance(document, dict) or "learner" not in document:
        raise PredictorError(
            f"{file} is no model of XGBoost's or CatBoost's (model.save_model(path) writes one)."
        )
    best, rounds = xgboost.stopped_after(document), xgboost.rounds_of(document)
    if best is not None and best < rounds:
        raise UnsupportedError(
            f"{file} was stopped early: estimators take its first {best} rounds, boosters all {rounds}. Keep "
            f"what is meant: model.get_booster()[:{best}].save_model(path)."
        )
    is_classifier = xgboost.objective_of(document) in xgboost.CLASSES
    return WrittenTrees(file.name, xgboost.xgboost_ensemble(document), is_classifier=is_classifier)


def _lightgbm(file: Path, meter: Meter) -> WrittenTrees:
    text = file.read_text(encoding="utf-8")
    meter.add_elements(text.count(" ") + text.count("\n"), "it has")
    if not lightgbm.is_model(text):
        raise PredictorError(f"{file} is no model of LightGBM's (booster.save_model(path) writes one).")
    is_classifier = lightgbm.objective_of(text) in lightgbm.CLASSES
    return WrittenTrees(file.name, lightgbm.lightgbm_ensemble(text), is_classifier=is_classifier)


READERS: dict[str, Callable[[Path, Meter], WrittenTrees]] = {".json": _json, ".ubj": _ubj, ".txt": _lightgbm}
