"""Options of gurobi-machinelearning: boosters for classes, what is refused."""

import gurobipy as gp
import numpy as np
import pytest
import torch
import xgboost as xgb

from dovetail.compat import gurobi_ml
from tests.modelling.tiny import in_gurobi, solve


def test_what_would_change_the_network_is_refused():
    model = in_gurobi()
    x = model.addMVar((1, 2), lb=-1.0, ub=1.0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    with pytest.raises(TypeError, match="unexpected keyword argument 'activation_models'"):
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
