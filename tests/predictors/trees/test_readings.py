"""Every library's trees, read: the same leaf on every cut and beside it, and what is not a sum refused."""

import os
from dataclasses import replace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import dovetail as dt
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.predictor import as_predictor
from dovetail.predictors import PREDICTORS
from dovetail.predictors.trees.predictor import agreeing, probe_rows
from tests.predictors.trees import models

SEEDS = range(7) if os.environ.get("DOVETAIL_FULL") else range(1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("library", "name"), models.NAMES)
def test_no_leaf_is_wrong_on_any_cut_or_beside_it(library, name, seed):
    predictor = as_predictor(models.model(library, name, seed))
    ensemble = predictor.trees()
    rng = np.random.default_rng(seed + 1)
    rows = [*probe_rows(ensemble, rng), rng.normal(size=(1000, models.FEATURES)) * 3.0]
    rows = np.concatenate(rows)
    truth, ours = predictor.predict(rows), ensemble.values(rows)
    close = 1e-12 if ensemble.dtype == "float64" else 1e-6
    assert np.max(np.abs(truth - ours) / np.maximum(1.0, np.abs(truth))) <= close
    if ensemble.in_order and ensemble.link == "identity":
        assert np.array_equal(truth, ours)


@pytest.mark.parametrize(("library", "name"), [("sklearn", "GB huber"), ("xgboost", "XGBRegressor")])
def test_a_reading_that_is_off_by_one_number_is_refused(library, name):
    live = models.model(library, name)
    ensemble = as_predictor(live).trees()

    def answer(X):
        return np.asarray(live.predict(X), dtype=np.float64)[:, None]

    agreeing(name, ensemble, answer)
    split = int(np.flatnonzero(~ensemble.is_leaf)[0])
    leaf = int(np.flatnonzero(ensemble.is_leaf)[0])
    for side in (-np.inf, np.inf):
        moved = ensemble.threshold.copy()
        moved[split] = np.nextafter(moved[split], side)
        with pytest.raises(UnsupportedError, match="cannot be written out"):
            agreeing(name, replace(ensemble, threshold=moved), answer)
    more = ensemble.value.copy()
    more[leaf] += 1e-3
    for wrong in (replace(ensemble, value=more), replace(ensemble, base=ensemble.base + 1e-3)):
        with pytest.raises(UnsupportedError, match="cannot be written out"):
            agreeing(name, wrong, answer)


def test_two_columns_are_both_classes():
    model = models.model("xgboost", "XGBClassifier")
    problem = dt.Problem(dt.Mip(cost=np.zeros(5), lower=-3.0, upper=3.0))
    block = problem.add_predictor(model, [0, 1, 2], [3, 4])
    X = models.data()[0][:9]
    assert np.array_equal(block.predictor.predict(X), np.asarray(model.predict_proba(X), dtype=np.float64))
    assert block.description.trees().link == "both classes"


def refusal(model):
    """What is said where a model is not taken."""
    problem = dt.Problem(dt.Mip(cost=np.zeros(4), lower=-3.0, upper=3.0))
    with pytest.raises(PredictorError) as error:
        problem.add_predictor(model, [0, 1, 2], [3])
    return str(error.value)


def test_what_is_no_sum_of_steps_is_refused_by_name():
    import lightgbm as g
    import xgboost as x
    from sklearn import ensemble as e
    from sklearn.linear_model import LinearRegression

    X, y = models.data()
    few = {"n_estimators": 2, "max_depth": 2, "n_jobs": 1}
    quiet = {**few, "verbose": -1, "min_child_samples": 2}
    said = refusal(e.AdaBoostRegressor(n_estimators=2).fit(X, y))
    assert "weighted median" in said and "plain function" in said
    begun = e.GradientBoostingRegressor(n_estimators=2, init=LinearRegression())
    assert "LinearRegression" in refusal(begun.fit(X, y))
    assert "gblinear has no trees" in refusal(x.XGBRegressor(booster="gblinear", n_estimators=2).fit(X, y))
    several = x.XGBRegressor(multi_strategy="multi_output_tree", **few)
    assert "several outputs each" in refusal(several.fit(X, np.column_stack([y, y])))
    assert "linear_tree" in refusal(g.LGBMRegressor(linear_tree=True, **quiet).fit(X, y))
    for model in (e.RandomForestRegressor(), x.XGBRegressor(), g.LGBMRegressor()):
        assert "not trained yet" in refusal(model)


def test_early_stopping_is_the_object_s_own():
    """An estimator of XGBoost's stops at its best round, the booster inside it does not."""
    import lightgbm as g
    import xgboost as x

    X, y = models.data()
    y = np.random.default_rng(0).permutation(y)  # nothing to learn
    half = len(X) // 2
    model = x.XGBRegressor(n_estimators=40, early_stopping_rounds=2, learning_rate=0.9, n_jobs=1)
    model.fit(X[:half], y[:half], eval_set=[(X[half:], y[half:])], verbose=False)
    stopped, whole = as_predictor(model).trees(), as_predictor(model.get_booster()).trees()
    assert stopped.trees == model.best_iteration + 1 < whole.trees
    light = g.LGBMRegressor(n_estimators=40, learning_rate=0.9, n_jobs=1, verbose=-1)
    light.fit(
        X[:half], y[:half], eval_set=[(X[half:], y[half:])], callbacks=[g.early_stopping(2, verbose=False)]
    )
    assert as_predictor(light).trees().trees == light.best_iteration_ < 40


@pytest.mark.parametrize("library", ["sklearn", "xgboost", "lightgbm"])
@pytest.mark.parametrize("scaler", ["StandardScaler", "MinMaxScaler", "RobustScaler"])
def test_scalers_before_trees_are_folded_into_the_thresholds(library, scaler):
    from sklearn import preprocessing
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    name = {"sklearn": "RandomForestRegressor", "xgboost": "XGBRegressor", "lightgbm": "LGBMRegressor"}[
        library
    ]
    pipeline = make_pipeline(getattr(preprocessing, scaler)(), clone(models.model(library, name)))
    predictor = as_predictor(pipeline.fit(*models.data()))
    ensemble = predictor.trees()
    rows = np.concatenate([*probe_rows(ensemble, np.random.default_rng(1))])
    close = 1e-12 if ensemble.dtype == "float64" else 1e-6
    assert np.allclose(predictor.predict(rows), ensemble.values(rows), rtol=close, atol=close)


def test_a_subclass_with_a_predict_of_its_own_is_refused():
    from sklearn.tree import DecisionTreeRegressor

    class Mine(DecisionTreeRegressor):
        def predict(self, X, check_input=True):
            return 2.0 * super().predict(X, check_input)

    assert "class of its own" in refusal(Mine(max_depth=2).fit(*models.data()))


def test_a_model_trained_again_is_read_again():
    from sklearn.tree import DecisionTreeRegressor

    X, y = models.data()
    model = DecisionTreeRegressor(max_depth=2).fit(X, y)
    predictor = as_predictor(model)
    before = predictor.trees()
    model.fit(X, -y)
    assert np.array_equal(predictor.trees().values(X), model.predict(X)[:, None])
    assert not np.array_equal(before.values(X), predictor.predict(X))


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        ((StandardScaler(),), "scalers and trees"),
        (("passthrough", make_pipeline(StandardScaler(), MinMaxScaler())), "scalers and trees"),
        ((PolynomialFeatures(),), "scikit-learn"),
        ((StandardScaler(), Binarizer()), "scikit-learn"),
    ],
)
def test_trees_behind_what_mixes_features_are_a_step_like_any_other(before, kind):
    pipeline = make_pipeline(*before, DecisionTreeRegressor(max_depth=2))
    assert PREDICTORS.recognised(pipeline) == kind
    X, y = models.data()
    assert np.allclose(as_predictor(pipeline.fit(X, y)).predict(X), pipeline.predict(X)[:, None])
