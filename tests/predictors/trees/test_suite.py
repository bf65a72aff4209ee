"""Tree ensembles pass the public suite of predictors."""

import copy

import joblib
import numpy as np

from dovetail.testing import PredictorCase, PredictorSuite
from dovetail.testing.predictor_case import DOUBLE, SINGLE
from tests.predictors.trees import models


class TreeCase(PredictorCase):
    """A trained model of one of the libraries."""

    smooth = False

    def __init__(self, library, name, called, **fields):
        self.library, self.model = library, name
        super().__init__(f"{library} {name}", called=called, features=models.FEATURES, **fields)

    def make(self, folder):
        return copy.deepcopy(models.model(self.library, self.model))

    def answer(self, owner, X):
        if hasattr(owner, "predict_proba"):
            said = np.asarray(owner.predict_proba(X), dtype=np.float64)
            return said[:, 1:] if said.shape[1] == 2 else said
        return np.asarray(owner.predict(X), dtype=np.float64)[:, None]

    def state(self, owner):
        saved = {
            "xgboost": lambda: bytes(owner.get_booster().save_raw("ubj")),
            "lightgbm": lambda: owner.booster_.model_to_string(),
        }
        return [saved[self.library]() if self.library in saved else joblib.hash(owner)]

    def change(self, owner):
        X, _ = models.data()
        owner.fit(X, np.roll(owner.predict(X) if not hasattr(owner, "classes_") else models.labels(2), 7))


class TestTrees(PredictorSuite):
    cases = (
        TreeCase("sklearn", "RandomForestRegressor", "RandomForestRegressor", is_float64=True, close=DOUBLE),
        TreeCase(
            "sklearn",
            "GradientBoostingClassifier",
            "GradientBoostingClassifier",
            is_float64=True,
            close=DOUBLE,
            sigmoid=True,
        ),
        TreeCase("xgboost", "XGBRegressor", "XGBRegressor", close=SINGLE),
        TreeCase("lightgbm", "LGBMRegressor", "LGBMRegressor", is_float64=True, close=DOUBLE),
    )
