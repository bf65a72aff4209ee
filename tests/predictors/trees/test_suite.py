"""Tree ensembles pass the public suite of predictors."""

import copy

import joblib
import numpy as np

import dovetail as dt
from dovetail.testing import PredictorCase, PredictorSuite
from dovetail.testing.predictor_suite import DOUBLE, SINGLE
from tests.conformance.predictor_kinds import Onnx
from tests.conftest import FULL
from tests.predictors.onnx import test_trees as onnx_trees
from tests.predictors.trees import models
from tests.predictors.trees import test_categories as categories


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


class BoosterCase(TreeCase):
    """What is inside of an estimator, passed as it is."""

    def __init__(self, library, name, **fields):
        super().__init__(library, name, "Booster", **fields)
        self.label = f"{library} Booster"

    def make(self, folder):
        return self.inside(models.model(self.library, self.model))

    def inside(self, model):
        model = copy.deepcopy(model)
        return model.get_booster() if self.library == "xgboost" else model.booster_

    def answer(self, owner, X):
        if self.library == "xgboost":
            import xgboost

            X = xgboost.DMatrix(X)
        return np.asarray(owner.predict(X), dtype=np.float64)[:, None]

    def state(self, owner):
        return [bytes(owner.save_raw("ubj")) if self.library == "xgboost" else owner.model_to_string()]

    def change(self, owner):
        model = copy.deepcopy(models.model(self.library, self.model))
        super().change(model)
        other = self.inside(model)
        if self.library == "xgboost":
            owner.load_model(other.save_raw("ubj"))
        else:
            owner.model_from_string(other.model_to_string())


class OnnxTrees(Onnx):
    """A `TreeEnsembleRegressor` of two outputs."""

    def change(self, owner):
        (node,) = owner.graph.node
        for attribute in node.attribute:
            if attribute.name == "target_weights":
                attribute.floats[:] = [1.5 * weight for weight in attribute.floats]


class CategoryCase(TreeCase):
    """Trees that split the first feature by categories."""

    def __init__(self, library, **fields):
        PredictorCase.__init__(self, f"{library}, categories", features=4, whole=(0, 2), **fields)
        self.library = library

    def points(self):
        return categories.grid()[::61]

    def make(self, folder):
        return copy.deepcopy(categories.made(categories.MODELS, self.label.split(",")[0], 0, holes=False))

    def change(self, owner):
        X, y = categories.data()
        options = {"categorical_feature": [0, 2]} if self.library == "LightGBM" else {}
        owner.fit(X, np.roll(y, 7), **options)

    def state(self, owner):
        return [owner.booster_.model_to_string() if self.library == "LightGBM" else joblib.hash(owner)]


HISTOGRAM = CategoryCase("histogram", called="HistGradientBoostingRegressor", is_float64=True, close=DOUBLE)


class RuleCase(PredictorCase):
    """A rule list, with other values after a change."""

    smooth = False

    def make(self, folder):
        return dt.RuleList([([(0, ">", 0.5), (1, "<=", 1.0)], 2.0), ([(1, ">", -0.5)], 3.0)], 1.0, 2)

    def answer(self, owner, X):
        values = self.state(owner)
        first, second = (X[:, 0] > 0.5) & (X[:, 1] <= 1.0), X[:, 1] > -0.5
        return np.select([first, second], values[:2], values[2])[:, None]

    def state(self, owner):
        return owner._values[:, 0].tolist()

    def change(self, owner):
        owner._values *= 2.0


MORE = (
    HISTOGRAM,
    BoosterCase("xgboost", "XGBRegressor", close=SINGLE),
    BoosterCase("lightgbm", "LGBMRegressor", is_float64=True, close=DOUBLE),
    OnnxTrees(
        "onnx trees",
        lambda: onnx_trees.regressor(np.random.default_rng(0)).SerializeToString(),
        called="trees",
        features=3,
        outputs=2,
        layers=False,
        smooth=False,
        close=SINGLE,
    ),
)


class TestTrees(PredictorSuite):
    cases = (
        *(MORE if FULL else ()),
        CategoryCase("LightGBM", called="LGBMRegressor", is_float64=True, close=DOUBLE),
        RuleCase("rule list", called="RuleList", features=2, is_float64=True, close=DOUBLE),
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
