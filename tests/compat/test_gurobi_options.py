"""Options of gurobi-machinelearning: splits moved away from 0, boosters for classes, what is refused."""

import gurobipy as gp
import lightgbm as lgb
import numpy as np
import pytest
import torch
import xgboost as xgb
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import dovetail as dt
from dovetail.compat import gurobi_ml
from dovetail_peers.compat.gurobi_ml.table import with_safety_floor
from tests.modelling.tiny import in_gurobi, solve

SPLIT = 0.002
"""Where all trees here split: y is 1 to the right of it."""


@pytest.fixture(scope="module")
def data():
    X = np.linspace(-1.0, 1.0, 250)[:, None]  # the split is half way between two neighbours
    X[125:] += 2 * SPLIT - X[124] - X[125]
    return X, (X[:, 0] > SPLIT).astype(float)


def boosted(X, y):
    params = {"objective": "regression", "verbose": -1, "num_leaves": 2, "learning_rate": 1.0}
    return lgb.train(params, lgb.Dataset(X, y), num_boost_round=1)


def by_xgboost(X, y):
    options = {"n_estimators": 1, "max_depth": 1, "learning_rate": 1.0, "tree_method": "exact"}
    return xgb.XGBRegressor(**options).fit(X, y)


def boosting(X, y):
    return GradientBoostingRegressor(n_estimators=1, max_depth=1, learning_rate=1.0).fit(X, y)


def pipeline(X, y):
    """Its first step changes nothing: the floor is for the numbers that the tree sees."""
    same = StandardScaler(with_mean=False, with_std=False)
    return make_pipeline(same, DecisionTreeRegressor(max_depth=1)).fit(X, y)


KINDS = {
    "tree": lambda X, y: DecisionTreeRegressor(max_depth=1).fit(X, y),
    "forest": lambda X, y: RandomForestRegressor(2, max_depth=1, bootstrap=False).fit(X, y),
    "boosting": boosting,
    "pipeline": pipeline,
    "xgboost": by_xgboost,
    "booster": lambda X, y: by_xgboost(X, y).get_booster(),
    "lightgbm": boosted,
}


def said(predictor, x):
    if isinstance(predictor, xgb.Booster):
        return float(predictor.predict(xgb.DMatrix([[x]]))[0])
    return float(np.ravel(predictor.predict(np.array([[x]])))[0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_floor_moves_the_splits_that_are_below_it(kind, data):
    predictor = KINDS[kind](*data)
    low, high = (with_safety_floor(predictor, floor) for floor in (0.001, 0.01))
    found = [said(each, 0.005) for each in (predictor, low, high, predictor)]
    assert found == pytest.approx([1.0, 1.0, 0.0, 1.0], abs=0.05)  # the predictor itself stays as it was
    assert said(high, 0.011) == pytest.approx(1.0, abs=0.05) and said(high, -0.005) == said(predictor, -0.005)


def test_a_floor_in_a_model(data):
    model, tree, at = in_gurobi(), KINDS["tree"](*data), np.array([[0.005]])
    x = model.addMVar((1, 1), lb=at, ub=at)
    moved = gurobi_ml.add_predictor_constr(model, tree, x, safety_floor=0.01)
    plain = gurobi_ml.sklearn.add_decision_tree_regressor_constr(model, tree, x)
    solve(model)
    assert moved.output_values == 0.0 and plain.output_values == 1.0
    assert moved.predictor is tree and moved.get_error() == 0.0  # of the tree that was moved


def test_a_floor_is_for_trees():
    line = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    for floor, told in ((0.1, "LinearRegression has none"), (-1.0, "safety_floor is -1.0")):
        with pytest.raises(dt.OptionError, match=told):
            with_safety_floor(line, floor)
    assert with_safety_floor(line, 0.0) is line


def test_what_would_change_the_network_is_refused():
    model = in_gurobi()
    x = model.addMVar((1, 2), lb=-1.0, ub=1.0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    with pytest.raises(dt.OptionError, match="activation_models= is not taken.*Leave it out"):
        gurobi_ml.add_predictor_constr(model, net, x, activation_models={"relu": object()})
    with pytest.raises(ValueError, match="formulation must be one of bigm"):
        gurobi_ml.add_predictor_constr(model, net, x, formulation="big-m")


def test_an_xgboost_booster_for_two_classes_gives_its_probability():
    """As the peer's formulation does, and Booster.predict; a LightGBM one the sum of its leaves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)).astype(np.float32)
    params = {"objective": "binary:logistic", "max_depth": 2}
    booster = xgb.train(params, xgb.DMatrix(X, X[:, 0] + X[:, 1] > 0.5), num_boost_round=3)
    model = in_gurobi()
    x = model.addMVar((3, 2), lb=X[:3], ub=X[:3])
    constr = gurobi_ml.xgboost.add_xgboost_regressor_constr(model, booster, x)
    solve(model)
    said = booster.predict(xgb.DMatrix(X[:3]))
    assert constr.output_values[:, 0] == pytest.approx(said, abs=1e-6) and 0.0 < said.min() < said.max() < 1.0
    assert constr.output.VType.tolist() == [[gp.GRB.CONTINUOUS]] * 3


def test_a_big_m_needs_bounds():
    """As the peer says of who asks for one: an input without bounds was mostly forgotten."""
    model = in_gurobi()
    x = model.addVar(lb=-1.0, name="free")
    with pytest.raises(ValueError, match=r"free goes from -1 to .*give them, or bigm="):
        gurobi_ml.add_predictor_constr(model, lambda X: X**2, [[x]], formulation="bigm")
    gurobi_ml.add_predictor_constr(model, lambda X: X**2, [[x]], formulation="bigm", bigm=100.0)
    x.UB = 2.0
    gurobi_ml.add_predictor_constr(model, lambda X: X**2, [[x]], formulation="bigm")
