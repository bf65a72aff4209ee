"""Trees behind encoders and scalers: every category, every cut to the last bit, and proofs."""

import io

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.predictors.trees import pipeline as pipeline_file
from dovetail.predictors.trees.predictor import probe_rows
from tests.conftest import sample


def data(seed=0):
    """Two features of categories, with gaps in the first one's numbers, and one of numbers."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.choice([2.0, 3.0, 7.0, 9.0], 250), rng.integers(0, 3, 250), rng.uniform(0, 10, 250)]
    )
    y = np.array([1.0, 5.0, 2.0, 3.0])[np.searchsorted([2.0, 3.0, 7.0, 9.0], X[:, 0])]
    return X, y + X[:, 1] ** 2 + np.sin(X[:, 2])


FOREST = RandomForestRegressor(8, max_depth=6, random_state=0)
FRONTS = {
    "one-hot": make_column_transformer((OneHotEncoder(), [0, 1]), remainder="passthrough"),
    "one-hot, first dropped": make_column_transformer(
        (OneHotEncoder(drop="first"), [1, 0]), (MinMaxScaler(), [2])
    ),
    "others ignored": make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), [0]), (StandardScaler(), [2, 1])
    ),
    "ordinal, then scaled": make_column_transformer(
        (make_pipeline(SimpleImputer(), OrdinalEncoder(), StandardScaler()), [0]),
        (make_pipeline(MinMaxScaler(), StandardScaler()), [2]),
        ("passthrough", [1]),
    ),
    "one-hot, then scaled": make_pipeline(
        make_column_transformer((OneHotEncoder(), [0, 1]), ("passthrough", [2])),
        StandardScaler(with_mean=False),
    ),
}


def every_row(rng, count=400):
    """All categories of both features, with numbers anywhere beside them."""
    return np.column_stack(
        [rng.choice([2.0, 3.0, 7.0, 9.0], count), rng.integers(0, 3, count), rng.uniform(-1.0, 11.0, count)]
    )


@pytest.mark.parametrize("last", sample([FOREST, GradientBoostingRegressor(n_estimators=20, random_state=0)]))
@pytest.mark.parametrize("front", FRONTS)
def test_the_reading_is_the_pipeline(front, last):
    X, y = data()
    live = make_pipeline(FRONTS[front], last).fit(X, y)
    predictor = as_predictor(live)
    ensemble = predictor.describe(X[:1]).trees()
    assert ensemble.features == 3
    assert 0 in ensemble.categories
    rng = np.random.default_rng(1)
    rows = [every_row(rng)]
    for cuts in probe_rows(ensemble, rng):  # beside every cut of the number, whatever the categories
        rows.append(np.column_stack([every_row(rng, len(cuts))[:, :2], cuts[:, 2]]))
    rows = np.concatenate(rows)
    assert np.max(np.abs(live.predict(rows) - ensemble.values(rows)[:, 0])) < 1e-12


def test_an_unknown_category_is_what_the_encoder_makes_of_it():
    X, y = data()
    live = make_pipeline(FRONTS["others ignored"], FOREST).fit(X, y)
    rows = np.array([[5.0, 1.0, 3.0], [2.0, 1.0, 3.0]])
    ensemble = as_predictor(live).describe(X[:1]).trees()
    assert ensemble.values(rows)[:, 0] == pytest.approx(live.predict(rows), abs=1e-12)


def named(X):
    frame = pd.DataFrame(X, columns=["kind", "size", "heat"])
    frame["kind"] = np.array(["oak", "ash", "elm", "fir"])[np.searchsorted([2.0, 3.0, 7.0, 9.0], X[:, 0])]
    return frame


def test_categories_by_name_stand_for_their_places():
    X, y = data()
    front = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    live = make_pipeline(front, FOREST).fit(named(X), y)
    ensemble = as_predictor(live).describe(np.zeros((1, 3))).trees()
    for place, name in enumerate(["ash", "elm", "fir", "oak"]):
        row = pd.DataFrame({"kind": [name], "size": [1.0], "heat": [4.0]})
        assert ensemble.values(np.array([[place, 1.0, 4.0]]))[0, 0] == pytest.approx(live.predict(row)[0])


def problem_of(live, upper=(9, 2, 10)):
    mip = dt.Mip(
        cost=[0.1, 0.2, 0.1, -1.0], A=[[1.0, 1.0, 0.2, 0.0]], row_lower=[0.0], row_upper=[9.5],
        lower=[2.0, 0.0, 0.0, -np.inf], upper=[*map(float, upper), np.inf],
        integer=[True, True, False, False],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(live, [0, 1, 2], [3])
    return problem


def test_the_best_category_is_proved():
    X, y = data()
    live = make_pipeline(FRONTS["others ignored"], FOREST).fit(X, y)
    result = dt.solve(problem_of(live), log=False)
    assert result.status == "optimal"
    best = np.inf
    for a in range(2, 10):
        for b in range(3):
            c = np.linspace(0.0, 10.0, 4001)
            c = c[a + b + 0.2 * c <= 9.5]
            rows = np.column_stack([np.full(c.size, a), np.full(c.size, b), c])
            if c.size == 0:
                continue
            best = min(best, float((0.1 * a + 0.2 * b + 0.1 * c - live.predict(rows)).min(initial=np.inf)))
    assert result.objective <= best + 1e-9
    assert result.objective == pytest.approx(best, abs=3e-4)  # the grid's step times the cost of heat


def test_classes_too():
    X, y = data()
    live = make_pipeline(FRONTS["one-hot"], RandomForestClassifier(5, max_depth=4, random_state=0)).fit(
        X, y > 6.0
    )
    ensemble = as_predictor(live).describe(X[:1]).trees()
    assert ensemble.outputs == 1
    assert ensemble.values(X)[:, 0] == pytest.approx(live.predict_proba(X)[:, 1], abs=1e-12)


def test_a_category_of_the_trees_behind_an_ordinal_encoder():
    X, y = data()
    front = make_column_transformer((OrdinalEncoder(), [0]), remainder="passthrough")
    live = make_pipeline(front, HistGradientBoostingRegressor(max_iter=10, categorical_features=[0])).fit(
        X, y
    )
    ensemble = as_predictor(live).describe(X[:1]).trees()
    rows = every_row(np.random.default_rng(2))
    assert ensemble.values(rows)[:, 0] == pytest.approx(live.predict(rows), abs=1e-12)


def test_a_scaler_that_was_trained_again_is_read_again():
    X, y = data()
    live = make_pipeline(FRONTS["others ignored"], FOREST).fit(X, y)
    trees = as_predictor(live).describe(X[:1]).trees
    before = trees()
    scaler = live[0].named_transformers_["standardscaler"]
    scaler.mean_ = scaler.mean_ + 0.5
    after = trees()
    assert not np.array_equal(before.cuts[2], after.cuts[2])
    rows = every_row(np.random.default_rng(3))
    assert after.values(rows)[:, 0] == pytest.approx(live.predict(rows), abs=1e-12)


def test_what_mixes_features_is_searched_without_trees():
    X, y = data()
    live = make_pipeline(PolynomialFeatures(2), FOREST).fit(X, y)
    description = as_predictor(live).describe(X[:1])
    assert description.trees_if_known() is None
    assert "PolynomialFeatures" in description.why_no_trees
    lines = io.StringIO()
    dt.solve(problem_of(live), dt.Auto(effort=1), log=lines)
    assert "no trees block0: trees behind PolynomialFeatures cannot be read" in " ".join(
        lines.getvalue().split()
    )


def test_a_reading_that_is_wrong_is_refused(monkeypatch):
    X, y = data()
    live = make_pipeline(FRONTS["one-hot"], FOREST).fit(X, y)
    right = pipeline_file.category_pieces

    def one_off(numbers, goes_left):
        return right([number + 1 for number in numbers], goes_left=goes_left)

    monkeypatch.setattr(pipeline_file, "category_pieces", one_off)
    assert as_predictor(live).describe(X[:1]).trees_if_known() is None
