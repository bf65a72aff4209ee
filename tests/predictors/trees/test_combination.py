"""Means of tree ensembles, and several side by side, are tree ensembles: proved like one."""

import itertools

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import Ridge
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.predictors.trees.assembly import combined
from tests.conftest import FULL

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 2))
Y = np.column_stack([np.sin(2.0 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 1]])
TWO = (Y > 0.0).astype(int)


def boosted():
    return GradientBoostingRegressor(n_estimators=2, max_depth=2, random_state=0)


def forest(kind=RandomForestRegressor):
    return kind(2, max_depth=2, random_state=0)


SUMS = {
    "one for each output": lambda: MultiOutputRegressor(boosted()).fit(X, Y),
    "one for each label": lambda: MultiOutputClassifier(forest(RandomForestClassifier)).fit(X, TWO),
    "mean": lambda: VotingRegressor([("a", forest()), ("b", boosted())], weights=[1, 2]).fit(X, Y[:, 0]),
    "mean of shares": lambda: VotingClassifier(
        [("a", forest(RandomForestClassifier)), ("b", DecisionTreeClassifier(max_depth=3))], voting="soft"
    ).fit(X, TWO[:, 0]),
    "ensemble": lambda: dt.Ensemble([forest().fit(X, Y), DecisionTreeRegressor(max_depth=3).fit(X, Y)]),
}


@pytest.mark.parametrize("kind", SUMS)
def test_a_sum_of_trees_is_read_as_one_ensemble(kind):
    predictor = as_predictor(SUMS[kind]())
    points = rng.normal(size=(300, 2))
    values = predictor.describe(X[:16]).trees().values(points)
    assert np.allclose(values, predictor.predict(points), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", SUMS if FULL else ["one for each output", "ensemble"])
def test_a_sum_of_trees_is_proved(kind):
    model = SUMS[kind]()
    predictor = as_predictor(model)
    ensemble = predictor.describe(X[:16]).trees()
    q = ensemble.outputs
    problem = dt.Problem(
        dt.Mip([0.1, -0.2] + [1.0] * q, lower=[-1.5] * 2 + [-99.0] * q, upper=[1.5] * 2 + [99.0] * q)
    )
    problem.add_predictor(model, [0, 1], range(2, 2 + q))
    result = dt.solve(problem, log=False)
    # in each cell the least is where the first feature is least, and the second largest
    edges = [np.concatenate([[-1.5], cuts[(cuts > -1.5) & (cuts < 1.5)], [1.5]]) for cuts in ensemble.cuts]
    corners = np.array([*itertools.product(np.nextafter(edges[0][:-1], 9.0), edges[1][1:])])
    best = np.min(corners @ [0.1, -0.2] + predictor.predict(corners).sum(axis=1))
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, abs=1e-5)


def test_both_classes_of_a_mean_of_shares():
    model = SUMS["mean of shares"]()
    problem = dt.Problem(dt.Mip([0.0] * 4, lower=[-1.0, -1.0, 0.0, 0.0], upper=1.0))
    block = problem.add_predictor(model, [0, 1], [2, 3])
    assert np.allclose(block.description.trees().values(X), model.predict_proba(X), rtol=0, atol=1e-12)


def test_what_is_no_sum_of_trees_is_not_taken_for_one():
    mixed = VotingRegressor([("a", forest()), ("b", Ridge())]).fit(X, Y[:, 0])
    assert as_predictor(mixed).describe(X[:16]).trees is None
    boosted_classes = dt.Ensemble([forest().fit(X, Y), lambda Z: Z], "mean")
    assert boosted_classes.describe(X[:16]).trees is None
    assert dt.Ensemble([forest().fit(X, Y)], "max").describe(X[:16]).trees is None
    ensemble = as_predictor(forest().fit(X, Y[:, 0])).trees()
    with pytest.raises(dt.PredictorError, match="after a link"):
        combined([ensemble.with_values(ensemble.value, ensemble.base, "sigmoid")], [np.eye(1)])


def test_a_changed_estimator_is_not_read():
    model = SUMS["mean"]()
    model.predict = lambda Z: model.transform(Z).max(axis=1)
    with pytest.raises(dt.PredictorError):
        as_predictor(model).describe(X[:16]).trees()


def test_bases_that_cancel_out_leave_their_rounding():
    """Two of XGBoost's are each off by what float32 makes of a base of 1e4."""
    import xgboost

    few = {"n_estimators": 3, "max_depth": 2, "n_jobs": 1}
    members = [xgboost.XGBRegressor(base_score=base, **few).fit(X, Y[:, 0] + base) for base in (1e4, -1e4)]
    model = dt.Ensemble(members)
    ensemble = model.describe(X[:16]).trees()
    points = rng.normal(size=(2000, 2))
    scores, truth = ensemble.scores(points), model.predict(points)
    least, most = ensemble.output_range(scores, scores)
    assert np.any(np.abs(truth - scores) > 1e-5)
    assert np.all((truth >= least) & (truth <= most))


def test_a_vote_with_trees_of_xgboost_is_as_coarse_as_they_are():
    import xgboost

    many = xgboost.XGBRegressor(n_estimators=300, max_depth=2, base_score=3e3, n_jobs=1)
    model = VotingRegressor([("a", many), ("b", Ridge())], weights=[1.0, 1e-3]).fit(X, 1e-3 * Y[:, 0])
    known = as_predictor(model).describe(X[:16])
    assert known.dtypes == ("float32",)
    assert known.trees is None


@pytest.mark.skipif(not FULL, reason="CatBoost is a hundred megabytes: make test-full")
def test_trees_of_catboost_in_a_vote():
    """Its models cannot be hashed."""
    catboost = pytest.importorskip("catboost")
    member = catboost.CatBoostRegressor(iterations=3, depth=2, verbose=False, allow_writing_files=False)
    model = VotingRegressor([("a", member), ("b", forest())]).fit(X, Y[:, 0])
    points = rng.normal(size=(300, 2))
    values = as_predictor(model).describe(X[:16]).trees().values(points)
    assert np.allclose(values[:, 0], model.predict(points), rtol=0, atol=1e-12)
