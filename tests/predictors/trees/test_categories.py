"""Categories and missing values: the same leaf as the live library, and a column that must be integer."""

import functools
import itertools
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.predictors import categories_of
from dovetail.predictors.trees.predictor import probe_rows
from tests.conftest import FULL

KNOWN = [0, 1, 2, 4, 5, 7, 8]
"""Categories there are: 3 and 6 nobody saw, nor what is beyond."""
SEEDS = range(6) if FULL else range(1)


@functools.cache
def data(seed=0, holes=False):
    """Two features of categories, two of numbers, some of them missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 4))
    X[:, 0], X[:, 2] = rng.choice(KNOWN, 300), rng.integers(0, 4, 300)
    X[:, 1] = np.round(2.0 * X[:, 1])
    y = 2.0 * np.isin(X[:, 0], [1, 4, 8]) + X[:, 1] * (X[:, 2] == 1) + np.sin(2.0 * X[:, 3])
    if holes:
        X[rng.uniform(size=X.shape) < 0.15] = np.nan
    return X, y + 0.05 * rng.normal(size=300)


def _xgboost(X, y, **options):
    import xgboost

    few = {"n_estimators": 5, "max_depth": 4, "n_jobs": 1, "max_cat_to_onehot": 2}
    kinds = {"feature_types": ["c", "q", "c", "q"], "enable_categorical": True}
    return xgboost.XGBRegressor(**few, **{**kinds, **options}).fit(X, y)


def _xgboost_classes(X, y):
    import xgboost

    kinds = {"feature_types": ["c", "q", "c", "q"], "enable_categorical": True}
    return xgboost.XGBClassifier(n_estimators=3, max_depth=3, n_jobs=1, **kinds).fit(
        X, np.digitize(y, [0, 1])
    )


def _lightgbm(X, y, **options):
    import lightgbm

    few = {"n_estimators": 5, "num_leaves": 12, "n_jobs": 1, "verbose": -1, "min_child_samples": 3}
    sets = {"min_data_per_group": 1, "cat_smooth": 0.0, "max_cat_to_onehot": 1}
    model = lightgbm.LGBMRegressor(**few, **sets, **options)
    return model.fit(X, y, categorical_feature=[] if options else [0, 2])


def _histogram(X, y, categories=(0, 2)):
    from sklearn.ensemble import HistGradientBoostingRegressor

    few = {"max_iter": 5, "max_depth": 4, "random_state": 0}
    return HistGradientBoostingRegressor(**few, categorical_features=[*categories] or None).fit(X, y)


def _catboost(X, y, **options):
    import catboost

    few = {"iterations": 6, "depth": 4, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    table = X.astype(object)
    table[:, [0, 2]] = X[:, [0, 2]].astype(int)
    return catboost.CatBoostRegressor(cat_features=[0, 2], **{"one_hot_max_size": 20, **few, **options}).fit(
        table, y
    )


def _tree(X, y):
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, y)


def _forest(X, y):
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(5, max_depth=6, random_state=0).fit(X, y)


def _catboost_of_numbers(X, y):
    import catboost

    few = {"iterations": 6, "depth": 4, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    return catboost.CatBoostRegressor(nan_mode="Max", **few).fit(X, y)


NUMBERS = {"feature_types": None, "enable_categorical": False}
MODELS = {
    "XGBoost": _xgboost,
    "XGBoost of classes": _xgboost_classes,
    "LightGBM": _lightgbm,
    "histogram": _histogram,
}
WITH_HOLES = {
    "XGBoost": lambda X, y: _xgboost(X, y, **NUMBERS),
    "XGBoost, 0 is missing": lambda X, y: _xgboost(X, y, missing=0.0, **NUMBERS),
    "XGBoost, -1 is missing": lambda X, y: _xgboost(X, y, missing=-1.0, **NUMBERS),
    "LightGBM": lambda X, y: _lightgbm(X, y, use_missing=True),
    "LightGBM, 0 is missing": lambda X, y: _lightgbm(X, y, zero_as_missing=True),
    "histogram": lambda X, y: _histogram(X, y, ()),
    "tree": _tree,
    "forest": _forest,
}
if FULL and find_spec("catboost") is not None:  # a hundred megabytes: not for every run
    MODELS["CatBoost"] = _catboost
    MODELS["CatBoost, grown"] = functools.partial(_catboost, grow_policy="Lossguide")
    WITH_HOLES["CatBoost"] = _catboost_of_numbers


WHOLE = {MODELS.get(name) for name in ("CatBoost", "CatBoost, grown")}
"""Those that take no hole for a category."""


def made(models, kind, seed, holes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y = data(seed, holes and "is missing" not in kind and models[kind] not in WHOLE)
        return models[kind](X, y)


def answer(model, X):
    if categorical := getattr(model, "get_cat_feature_indices", list)():
        X = X.astype(object)
        X[:, categorical] = X[:, categorical].astype(int)
    said = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    return np.asarray(said, dtype=np.float64).reshape(len(X), -1)


def require_same(model, rows):
    ensemble = as_predictor(model).trees()
    rows = np.concatenate([*probe_rows(ensemble, np.random.default_rng(1)), rows])
    truth = answer(model, rows)
    close = 1e-12 if ensemble.dtype == "float64" else 1e-6
    assert np.max(np.abs(ensemble.values(rows) - truth) / np.maximum(1.0, np.abs(truth))) <= close
    return ensemble


def grid(seed=0):
    """All categories of both features, and some that are none, with numbers beside them."""
    rng = np.random.default_rng(seed)
    pairs = np.array([*itertools.product(range(-2, 12), range(-1, 6))], dtype=float)
    rows = np.repeat(pairs, 5, axis=0)
    return np.column_stack(
        [rows[:, 0], rng.integers(-4, 5, len(rows)), rows[:, 1], rng.normal(size=len(rows))]
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("kind", MODELS)
def test_a_split_by_categories_is_written_with_thresholds(kind, holes, seed):
    model = made(MODELS, kind, seed, holes)
    ensemble = require_same(model, grid(seed))
    assert ensemble.categories == (0, 2)
    assert ensemble.cuts[0].size > 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", WITH_HOLES)
def test_a_model_trained_with_missing_values_is_taken(kind, seed):
    model = made(WITH_HOLES, kind, seed, holes=True)
    tiny = np.float64(np.float32(1e-35))
    near = [
        0.0,
        -0.0,
        1e-300,
        tiny,
        -tiny,
        np.nextafter(tiny, 1),
        np.nextafter(-tiny, -1),
        -1.0,
        1e-40,
        -1e-46,
    ]
    rows = np.random.default_rng(seed).choice([*near, 0.5, -2.0, 3.0], (2000, 4))
    ensemble = require_same(model, rows)
    assert ensemble.categories == ()


@pytest.mark.parametrize("kind", ["histogram", "tree", "forest", "LightGBM", "XGBoost"])
def test_a_split_that_asks_only_whether_a_value_is_missing(kind):
    """Its threshold may be infinity: all numbers go one way."""
    X, _ = data(0, True)
    model = WITH_HOLES[kind](X, 5.0 * np.isnan(X[:, 3]) + 0.1 * np.nan_to_num(X[:, 1]))
    rows = np.random.default_rng(0).normal(size=(500, 4))
    ensemble = require_same(model, rows)
    moved = rows * [1.0, 1.0, 1.0, -1.0]  # within what it was trained on: XGBoost's threshold is beyond that
    assert np.array_equal(ensemble.values(moved), ensemble.values(rows))
    missing = rows * [1.0, 1.0, 1.0, np.nan]
    assert np.all(answer(model, missing) > answer(model, rows) + 1.0)  # there is such a split


def test_a_zero_that_is_missing_has_a_way_of_its_own():
    """The tests above would pass without any such way if no tree had one."""
    for kind in ("XGBoost, 0 is missing", "LightGBM, 0 is missing"):
        cuts = np.concatenate(as_predictor(made(WITH_HOLES, kind, 0, holes=True)).trees().cuts)
        assert np.any((cuts < 0) & (cuts > -1e-30)) and np.any((cuts >= 0) & (cuts < 1e-30))


# --- in a problem -----------------------------------------------------------------------------------


def problem_with(model, integer=(True, True, True, False)):
    lower, upper = [0.0, -4.0, 0.0, -2.0, -99.0], [8.0, 4.0, 3.0, 2.0, 99.0]
    mip = dt.Mip([0.0, 0.1, 0.0, 0.2, 1.0], lower=lower, upper=upper, integer=[*integer, False])
    problem = dt.Problem(mip)
    problem.add_predictor(model, [0, 1, 2, 3], [4], name="trees")
    return problem


def enumerated(model, predictor=None):
    """The least of 0.1 x1 + 0.2 x3 + y: x3 is least at the low end of a cell."""
    ensemble = (predictor or as_predictor(model).trees)()
    cuts = ensemble.cuts[3]
    ends = [-2.0, *np.nextafter(cuts[(cuts >= -2.0) & (cuts < 2.0)], 9.0)]
    rows = np.array([*itertools.product(range(9), range(-4, 5), range(4), ends)])
    return np.min(rows @ [0.0, 0.1, 0.0, 0.2] + answer(model, rows)[:, 0])


@pytest.mark.parametrize("kind", ["XGBoost", "LightGBM", "histogram"] if FULL else ["LightGBM"])
def test_the_best_category_is_found_and_proved(kind):
    model = made(MODELS, kind, 0, holes=False)
    result = dt.solve(problem_with(model), log=False, time_limit=60.0)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(enumerated(model), abs=1e-5)


@pytest.mark.parametrize("kind", ["XGBoost", "LightGBM", "histogram"])
def test_a_column_between_categories_is_refused_by_name(kind):
    model = made(MODELS, kind, 0, holes=False)
    with pytest.raises(dt.PredictorError, match="trees: feature 2 of .* integers only.*make it integer"):
        problem_with(model, integer=(True, True, False, False))
    assert problem_with(model, integer=(True, False, True, False)).blocks[0].description.is_float64 == (
        kind != "XGBoost"
    )


@pytest.mark.parametrize("kind", ["XGBoost", "LightGBM"])
def test_names_of_a_frame_s_categories(kind):
    """A feature holds a category's place in the frame's own list."""
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["a"] = pd.Categorical.from_codes(X[:, 0].astype(int), [*"ihgfedcb", "longer name"])
    model = _lightgbm(X, y) if kind == "LightGBM" else _xgboost(X, y, feature_types=None)
    model = model.fit(frame, y)
    assert categories_of(model) == {0: (*"ihgfedcb", "longer name")}
    assert np.allclose(as_predictor(model).predict(X)[:, 0], model.predict(frame), rtol=0, atol=1e-6)
    assert categories_of(made(MODELS, kind, 0, holes=False)) == {}
    assert categories_of(type(model)()) == {}


def test_names_of_categories():
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["a"] = pd.Categorical.from_codes(X[:, 0].astype(int), list("ihgfedcba"))
    model = _histogram(X, y).set_params(categorical_features="from_dtype").fit(frame, y)
    names = categories_of(model)
    assert [*names] == [0] and names[0] == tuple(sorted(frame["a"].unique()))
    rows = X[:50].copy()
    rows[:, 0] = [names[0].index(one) for one in frame["a"][:50]]
    predictor = as_predictor(model)
    assert np.allclose(predictor.predict(rows)[:, 0], model.predict(frame[:50]), rtol=0, atol=1e-12)
    assert np.allclose(predictor.trees().values(rows), predictor.predict(rows), rtol=0, atol=1e-12)
    rows[:, 0] = 40.0  # no category of anybody's
    assert np.allclose(predictor.trees().values(rows), predictor.predict(rows), rtol=0, atol=1e-12)


def test_categories_of_no_whole_numbers_are_refused():
    X, y = data()
    X = X.copy()
    X[:, 0] += 0.5
    with pytest.raises(dt.PredictorError, match="no whole numbers"):
        as_predictor(_histogram(X, y)).trees()


# --- inside others ----------------------------------------------------------------------------------


def test_a_mean_of_trees_with_categories():
    X, y = data()
    parts = [("h", _histogram(X, y)), ("t", _tree(X, y))]
    model = VotingRegressor(parts).fit(X, y)
    problem = problem_with(model)
    description = problem.blocks[0].description
    assert description.whole_features == (0, 2) == description.trees().categories
    rows = grid()
    assert np.allclose(description.trees().values(rows)[:, 0], model.predict(rows), rtol=0, atol=1e-12)
    with pytest.raises(dt.PredictorError, match="feature 0 of VotingRegressor accepts integers only"):
        problem_with(model, integer=(False, True, True, False))


def test_what_numbers_or_passes_categories_before_trees_is_followed():
    X, y = data()
    before = make_column_transformer(
        (OrdinalEncoder(), [2]), (StandardScaler(), [3]), remainder="passthrough"
    )
    model = make_pipeline(before, _histogram(X, y, (0, 2))).fit(X, y)
    problem = problem_with(model)
    assert problem.blocks[0].description.whole_features == (0, 2)
    rows = X[:60]
    copy = problem.blocks[0].predictor.snapshot("cpu")
    assert np.allclose(copy(torch.tensor(rows)).numpy()[:, 0], model.predict(rows), rtol=0, atol=1e-9)


def test_what_changes_categories_before_trees_is_refused():
    X, y = data()
    given = {"lgbmregressor__categorical_feature": [0, 2]}
    member = _lightgbm(X, y)
    with pytest.raises(dt.PredictorError, match="category to its trees, and scaled before them"):
        problem_with(make_pipeline(StandardScaler(), member).fit(X, y, **given))
    mixed = make_column_transformer((StandardScaler(), [0, 1, 2, 3]))
    with pytest.raises(dt.PredictorError, match="StandardScaler comes before trees that split feature"):
        problem_with(make_pipeline(mixed, member).fit(X, y, **given))


@pytest.mark.parametrize("kind", ["XGBoost", "LightGBM"])
def test_files_hold_categories_too(kind, tmp_path):
    model = made(MODELS, kind, 0, holes=False)
    file = tmp_path / ("model.json" if kind == "XGBoost" else "model.txt")
    (model if kind == "XGBoost" else model.booster_).save_model(file)
    loaded = dt.load_predictor(file)
    close = 1e-5 if kind == "XGBoost" else 1e-12
    assert np.allclose(loaded.predict(grid()), answer(model, grid()), rtol=0, atol=close)
    with pytest.raises(dt.PredictorError, match="feature 0 of .* integers only"):
        problem_with(loaded, integer=(False, True, True, False))


@pytest.mark.skipif("CatBoost" not in MODELS, reason="CatBoost is a hundred megabytes: make test-full")
def test_catboost_s_other_categories_are_refused():
    X, y = data()
    with pytest.raises(dt.PredictorError, match="OnlineCtr .* one_hot_max_size"):
        problem_with(_catboost(X, y, one_hot_max_size=2))
    table = X.astype(object)
    table[:, 0] = [f"name {int(k)}" for k in X[:, 0]]
    table[:, 2] = X[:, 2].astype(int)
    model = _catboost(X, y)
    with pytest.raises(dt.PredictorError, match="feature 0 has categories that are no whole numbers"):
        problem_with(model.fit(table, y))
