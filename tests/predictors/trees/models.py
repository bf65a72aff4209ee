"""Small trained tree ensembles of every library and kind, each made when it is asked for."""

import functools
import os
import warnings
from importlib.util import find_spec

import numpy as np

from tests.conftest import FULL

os.environ.setdefault("OMP_NUM_THREADS", "1")

FEATURES = 3


@functools.cache
def data(seed=0):
    """Whole numbers, eighths and floats, so that many thresholds lie on numbers themselves."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(160, FEATURES))
    X[:, 0] = np.round(4.0 * X[:, 0])
    X[:, 1] = np.round(8.0 * X[:, 1]) / 8.0
    y = X[:, 0] - 2.0 * (X[:, 1] > 0.3) + np.sin(3.0 * X[:, 2]) + 0.1 * rng.normal(size=len(X))
    return X, y


def labels(classes, seed=0):
    """As many classes, by the size of the target."""
    _, y = data(seed)
    return np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))


def _fitted(make, kind, seed):
    X, y = data(seed)
    target = {
        "regression": y,
        "two": labels(2, seed),
        "three": labels(3, seed),
        "count": np.floor(y - y.min()),
    }
    target |= {"pair": np.column_stack([y, X[:, 2]])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make().fit(X, target[kind])


def _sklearn(seed):
    from sklearn import ensemble as e
    from sklearn import tree as t

    few = {"n_estimators": 4, "max_depth": 3, "random_state": seed}
    deep = {"max_depth": 4, "random_state": seed}
    stop = {"n_iter_no_change": 2, "validation_fraction": 0.3, "random_state": seed}
    yield "DecisionTreeRegressor", "regression", lambda: t.DecisionTreeRegressor(**deep)
    yield "DecisionTreeClassifier", "three", lambda: t.DecisionTreeClassifier(**deep)
    yield "two outputs", "pair", lambda: t.DecisionTreeRegressor(**deep)
    yield "ExtraTreeRegressor", "regression", lambda: t.ExtraTreeRegressor(**deep)
    yield "RandomForestRegressor", "regression", lambda: e.RandomForestRegressor(**few)
    yield "RandomForestClassifier", "two", lambda: e.RandomForestClassifier(**few)
    yield "ExtraTreesRegressor", "regression", lambda: e.ExtraTreesRegressor(**few)
    yield "ExtraTreesClassifier", "three", lambda: e.ExtraTreesClassifier(**few)
    yield "GradientBoostingRegressor", "regression", lambda: e.GradientBoostingRegressor(**few)
    yield "GB huber", "regression", lambda: e.GradientBoostingRegressor(loss="huber", **few)
    yield "GB zero", "regression", lambda: e.GradientBoostingRegressor(init="zero", **few)
    yield "GB stopped", "regression", lambda: e.GradientBoostingRegressor(n_estimators=60, **stop)
    yield "GradientBoostingClassifier", "two", lambda: e.GradientBoostingClassifier(**few)
    yield "GB exponential", "two", lambda: e.GradientBoostingClassifier(loss="exponential", **few)
    yield "GB three", "three", lambda: e.GradientBoostingClassifier(**few)
    hist = {"max_iter": 4, "max_depth": 3, "random_state": seed}
    yield "HistGradientBoostingRegressor", "regression", lambda: e.HistGradientBoostingRegressor(**hist)
    yield "HGB poisson", "count", lambda: e.HistGradientBoostingRegressor(loss="poisson", **hist)
    yield (
        "HGB stopped",
        "regression",
        lambda: e.HistGradientBoostingRegressor(max_iter=60, early_stopping=True, **stop),
    )
    yield "HistGradientBoostingClassifier", "two", lambda: e.HistGradientBoostingClassifier(**hist)
    yield "HGB three", "three", lambda: e.HistGradientBoostingClassifier(**hist)
    yield (
        "BaggingRegressor",
        "regression",
        lambda: e.BaggingRegressor(
            t.DecisionTreeRegressor(max_depth=3), 4, max_features=2, random_state=seed
        ),
    )
    yield (
        "BaggingClassifier",
        "three",
        lambda: e.BaggingClassifier(t.DecisionTreeClassifier(max_depth=3), 4, random_state=seed),
    )
    yield "IsolationForest", "regression", lambda: e.IsolationForest(n_estimators=4, random_state=seed)
    yield (
        "IsolationForest of two",
        "regression",
        lambda: e.IsolationForest(n_estimators=4, max_features=2, max_samples=40, random_state=seed),
    )
    yield "AdaBoostClassifier", "two", lambda: e.AdaBoostClassifier(n_estimators=4, random_state=seed)
    yield (
        "AdaBoost three",
        "three",
        lambda: e.AdaBoostClassifier(
            t.DecisionTreeClassifier(max_depth=2), n_estimators=4, random_state=seed
        ),
    )


def _xgboost(seed):
    import xgboost as x

    few = {"n_estimators": 4, "max_depth": 3, "random_state": seed, "n_jobs": 1}
    yield "XGBRegressor", "regression", lambda: x.XGBRegressor(**few)
    yield "XGB two outputs", "pair", lambda: x.XGBRegressor(**few)
    yield "XGB dart", "regression", lambda: x.XGBRegressor(booster="dart", rate_drop=0.4, **few)
    yield "XGB exact", "regression", lambda: x.XGBRegressor(tree_method="exact", base_score=3.25, **few)
    yield "XGBRFRegressor", "regression", lambda: x.XGBRFRegressor(**few)
    yield "XGB poisson", "count", lambda: x.XGBRegressor(objective="count:poisson", **few)
    yield "XGB tweedie", "count", lambda: x.XGBRegressor(objective="reg:tweedie", **few)
    yield "XGBClassifier", "two", lambda: x.XGBClassifier(**few)
    yield "XGBRFClassifier", "two", lambda: x.XGBRFClassifier(**few)
    yield "XGB three", "three", lambda: x.XGBClassifier(**few)
    yield "XGB forest three", "three", lambda: x.XGBClassifier(num_parallel_tree=2, subsample=0.5, **few)


def _lightgbm(seed):
    import lightgbm as g

    few = {"n_estimators": 4, "max_depth": 3, "random_state": seed, "n_jobs": 1, "verbose": -1}
    bagged = {"subsample": 0.6, "subsample_freq": 1}
    yield "LGBMRegressor", "regression", lambda: g.LGBMRegressor(**few)
    yield "LGBM dart", "regression", lambda: g.LGBMRegressor(boosting_type="dart", drop_rate=0.5, **few)
    yield "LGBM rf", "regression", lambda: g.LGBMRegressor(boosting_type="rf", **bagged, **few)
    yield "LGBM poisson", "count", lambda: g.LGBMRegressor(objective="poisson", **few)
    yield "LGBMClassifier", "two", lambda: g.LGBMClassifier(**few)
    yield "LGBM rf two", "two", lambda: g.LGBMClassifier(boosting_type="rf", **bagged, **few)
    yield "LGBM three", "three", lambda: g.LGBMClassifier(**few)
    yield "LGBM one against all", "three", lambda: g.LGBMClassifier(objective="multiclassova", **few)


def _catboost(seed):
    import catboost as c

    few = {"iterations": 4, "random_seed": seed, "thread_count": 1, "verbose": False}
    few |= {"allow_writing_files": False}
    yield "CatBoostRegressor", "regression", lambda: c.CatBoostRegressor(depth=3, **few)
    yield "CatBoost MAE", "regression", lambda: c.CatBoostRegressor(depth=3, loss_function="MAE", **few)
    yield "CatBoost two", "pair", lambda: c.CatBoostRegressor(depth=3, loss_function="MultiRMSE", **few)
    yield "CatBoost poisson", "count", lambda: c.CatBoostRegressor(depth=3, loss_function="Poisson", **few)
    yield "CatBoost deep", "regression", lambda: c.CatBoostRegressor(grow_policy="Depthwise", **few)
    yield "CatBoost by loss", "regression", lambda: c.CatBoostRegressor(grow_policy="Lossguide", **few)
    yield "CatBoostClassifier", "two", lambda: c.CatBoostClassifier(depth=3, **few)
    yield "CatBoost three", "three", lambda: c.CatBoostClassifier(depth=3, **few)
    yield "CatBoost plain", "two", lambda: c.CatBoost({"depth": 3, "loss_function": "Logloss", **few})


LIBRARIES = {"sklearn": _sklearn, "xgboost": _xgboost, "lightgbm": _lightgbm}
if FULL and find_spec("catboost") is not None:  # a hundred megabytes: not for every run
    LIBRARIES["catboost"] = _catboost
NAMES = [(library, name) for library, kinds in LIBRARIES.items() for name, _, _ in kinds(0)]


@functools.cache
def model(library, name, seed=0):
    """A trained model."""
    kind, make = next((kind, make) for n, kind, make in LIBRARIES[library](seed) if n == name)
    return _fitted(make, kind, seed)
