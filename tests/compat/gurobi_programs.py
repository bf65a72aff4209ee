"""Programs as users of gurobi-machinelearning write them.

`ml` is the peer or dovetail in its place, `run` the solve call: nothing else may differ. Each gives what it
reads in gurobipy's own way: the objective and the largest prediction error.
"""

import gurobipy as gp
import numpy as np
import pandas as pd
from gurobipy import GRB

from tests.compat import trained

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def decisions(n=2):
    """A model with (n, 3) features, the last of which is a fact."""
    m = gp.Model(env=gp.Env(params={"OutputFlag": 0}))
    lower, upper = trained.limits(n)
    return m, m.addMVar((n, 3), lb=lower, ub=upper, name="x")


def ended(m, pred_constr, *arrays):
    """What these programs do at their ends."""
    assert all(array.X.shape == array.shape for array in arrays)
    return m.ObjVal, float(np.max(np.abs(pred_constr.get_error())))


def gain(ml, run, add, predictor, n=2, **options):
    """Most gain of n samples, with a budget of effort."""
    m, x = decisions(n)
    y = m.addMVar((n, 1), lb=-GRB.INFINITY, name="y")
    m.addConstr(x[:, 1].sum() <= 0.5 * n)
    pred_constr = add(m, predictor, x, y, **options)
    m.setObjective(y.sum() - 0.3 * x[:, 1].sum(), GRB.MAXIMIZE)
    pred_constr.print_stats()
    run(m)
    assert np.allclose(pred_constr.input_values, x.X) and np.allclose(pred_constr.output_values, y.X)
    return ended(m, pred_constr, x, y)


@program
def linear_regression(ml, run):
    return gain(ml, run, ml.sklearn.add_linear_regression_constr, trained.fitted("LinearRegression"))


@program
def ridge_by_lists(ml, run):
    m, x = decisions(1)
    y = m.addVar(lb=-GRB.INFINITY)
    m.update()
    pred_constr = ml.add_predictor_constr(m, trained.fitted("Ridge"), x.tolist(), [y])
    m.setObjective(y)
    run(m)
    assert isinstance(y.X, float) and pred_constr.output_values.shape == (1, 1)
    return ended(m, pred_constr)


@program
def lasso_by_a_tupledict(ml, run):
    m = gp.Model(env=gp.Env(params={"OutputFlag": 0}))
    x = m.addVars(["price", "effort", "age"], ub=1.0, name="x")
    pred_constr = ml.add_predictor_constr(m, trained.fitted("Lasso", alpha=0.01), x)
    m.addConstr(x["price"] + x["effort"] >= 0.5)
    m.setObjective(pred_constr.output.sum())
    run(m)
    assert m.getAttr("X", x)["price"] + x["effort"].X >= 0.5 - 1e-6
    return ended(m, pred_constr)


@program
def logistic_classes(ml, run):
    m, x = decisions(3)
    y = m.addMVar((3, 1), vtype=GRB.BINARY)
    add = ml.sklearn.add_logistic_regression_constr
    pred_constr = add(m, trained.fitted("LogisticRegression", C=10.0), x, y, "classification", 1e-4)
    m.addConstr(y.sum() >= 2)
    m.setObjective(x[:, 1].sum() + x[:, 0].sum())
    run(m)
    assert y.X.sum() >= 2
    return ended(m, pred_constr, y)


@program
def logistic_probabilities(ml, run):
    return gain(
        ml,
        run,
        ml.add_predictor_constr,
        trained.fitted("LogisticRegression", C=10.0),
        output_type="probability_1",
    )


@program
def mlp_regressor(ml, run):
    return gain(ml, run, ml.sklearn.add_mlp_regressor_constr, trained.mlp("MLPRegressor"))


@program
def pipeline_of_a_frame(ml, run):
    """Facts and decisions in one frame, outputs in a series."""
    m = gp.Model(env=gp.Env(params={"OutputFlag": 0}))
    people = pd.DataFrame({"age": [0.1, 0.5, 0.9]}, index=["ann", "bob", "cyd"])
    price, effort = m.addMVar(3, ub=1.0), m.addMVar(3, ub=1.0)
    people["price"], people["effort"] = price.tolist(), effort.tolist()
    y = pd.Series(m.addMVar(3, lb=-GRB.INFINITY).tolist(), index=people.index)
    m.update()
    pred_constr = ml.add_predictor_constr(m, trained.pipeline(), people[["price", "effort", "age"]], y)
    m.addConstr(effort.sum() <= 1.0)
    m.setObjective(gp.quicksum(y) - 0.3 * price.sum(), GRB.MAXIMIZE)
    run(m)
    found = pred_constr.input_values
    assert isinstance(found, pd.DataFrame) and list(found.index) == ["ann", "bob", "cyd"]
    assert list(found.columns) == ["price", "effort", "age"] and pred_constr.output_values.shape == (3, 1)
    assert np.isclose(sum(v.X for v in y), pred_constr.output_values.sum())
    return ended(m, pred_constr)


@program
def one_sample_as_a_series(ml, run):
    m, x = decisions(1)
    row = pd.Series(x.tolist()[0], index=["price", "effort", "age"], name="today")
    pred_constr = ml.add_predictor_constr(m, trained.pipeline(), row)
    m.setObjective(pred_constr.output.sum(), GRB.MAXIMIZE)
    run(m)
    assert pred_constr.input_values.shape == (1, 3) and list(pred_constr.input_values.index) == ["today"]
    return ended(m, pred_constr, x)


@program
def decision_tree(ml, run):
    tree = trained.fitted("DecisionTreeRegressor", max_depth=3, random_state=0)
    return gain(ml, run, ml.sklearn.add_decision_tree_regressor_constr, tree, epsilon=1e-5)


@program
def random_forest(ml, run):
    forest = trained.fitted("RandomForestRegressor", n_estimators=3, max_depth=3, random_state=0)
    return gain(ml, run, ml.sklearn.add_random_forest_regressor_constr, forest, n=1, epsilon=1e-5)


@program
def gradient_boosting(ml, run):
    trees = trained.fitted("GradientBoostingRegressor", n_estimators=4, max_depth=2, random_state=0)
    return gain(ml, run, ml.sklearn.add_gradient_boosting_regressor_constr, trees, n=1, epsilon=1e-5)


@program
def xgboost_trees(ml, run):
    trees = trained.fitted("XGBRegressor", n_estimators=4, max_depth=2)
    return gain(ml, run, ml.xgboost.add_xgbregressor_constr, trees, n=1, epsilon=1e-5)


@program
def lightgbm_trees(ml, run):
    trees = trained.fitted("LGBMRegressor", n_estimators=4, max_depth=2, verbose=-1)
    return gain(ml, run, ml.lightgbm.add_lgbmregressor_constr, trees, n=1, epsilon=1e-5)


@program
def torch_sequential(ml, run):
    return gain(ml, run, ml.torch.add_sequential_constr, trained.network())


@program
def keras_sequential(ml, run):
    return gain(ml, run, ml.keras.add_keras_constr, trained.keras_network())


@program
def onnx_model(ml, run):
    return gain(ml, run, ml.onnx.add_onnx_constr, trained.onnx_network())


@program
def several_outputs(ml, run):
    m, x = decisions(2)
    pred_constr = ml.add_predictor_constr(m, trained.network(2), x)
    y = pred_constr.output
    m.addConstr(y[:, 0] <= y[:, 1] + 0.5)
    m.setObjective(y[:, 0].sum() - y[:, 1].sum(), GRB.MAXIMIZE)
    run(m)
    assert y.X.shape == (2, 2)
    return ended(m, pred_constr, x, y)


@program
def chained(ml, run):
    """The first network's output is a feature of the second's."""
    m, x = decisions(1)
    first = ml.add_predictor_constr(m, trained.network(), x)
    features = gp.MVar.fromlist([[x[0, 0].item(), first.output[0, 0].item()]])
    second = ml.add_predictor_constr(m, trained.network(inputs=2), features)
    m.setObjective(second.output.sum() + 0.1 * first.output.sum(), GRB.MAXIMIZE)
    run(m)
    assert np.max(first.get_error()) <= 1e-4
    return ended(m, second, x)


@program
def indicators(ml, run):
    """A sample may be left out: then its effort is nothing."""
    m, x = decisions(2)
    used = m.addMVar(2, vtype=GRB.BINARY)
    y = m.addMVar((2, 1), lb=-GRB.INFINITY)
    pred_constr = ml.add_predictor_constr(m, trained.mlp("MLPRegressor"), x, y)
    for i in range(2):
        m.addGenConstrIndicator(used[i].item(), 0, x[i, 1].item() <= 0.0)
        m.addGenConstrIndicator(used[i].item(), 1, x[i, 0].item() >= 0.4)
    m.addConstr(used.sum() <= 1)
    m.setObjective(y.sum() - 0.1 * used.sum(), GRB.MAXIMIZE)
    run(m)
    assert all(v.X is not None for v in m.getVars())
    return ended(m, pred_constr, used)


@program
def removed_and_added_again(ml, run):
    m, x = decisions(1)
    before = (m.update(), m.NumVars)[1]
    ml.add_predictor_constr(m, trained.fitted("Ridge"), x).remove()
    m.update()
    assert m.NumVars == before
    pred_constr = ml.add_predictor_constr(m, trained.mlp("MLPRegressor"), x)
    m.setObjective(pred_constr.output.sum())
    run(m)
    return ended(m, pred_constr, x)


@program
def registered(ml, run):
    class Scaled:
        factor = 2.0

    def add_scaled_constr(gp_model, predictor, input_vars, output_vars=None, **kwargs):
        inner = ml.add_predictor_constr(gp_model, trained.network(), input_vars, None, **kwargs)
        gp_model.addConstr(output_vars == predictor.factor * inner.output)
        return inner

    ml.register_predictor_constr(Scaled, add_scaled_constr)
    try:
        m, x = decisions(1)
        y = m.addMVar((1, 1), lb=-GRB.INFINITY)
        pred_constr = ml.add_predictor_constr(m, Scaled(), x, y)
        m.setObjective(y.sum(), GRB.MAXIMIZE)
        run(m)
        return ended(m, pred_constr, y)
    finally:
        ml.register_user_predictor.user_predictors().clear()


@program
def no_solution_is_an_exception(ml, run):
    m, x = decisions(1)
    pred_constr = ml.add_predictor_constr(m, trained.fitted("Ridge"), x)
    try:
        pred_constr.get_error()
    except ml.exceptions.NoSolutionError:
        m.setObjective(pred_constr.output.sum())
    run(m)
    return ended(m, pred_constr, x)


@program
def quadratic_objective(ml, run):
    """The distance from where one is, squared, as in the first example of the peer's guide."""
    m, x = decisions(1)
    y = m.addMVar((1, 1), lb=-GRB.INFINITY)
    pred_constr = ml.add_predictor_constr(m, trained.mlp("MLPRegressor"), x, y)
    m.addConstr(y >= 0.7)
    away = x - np.array([[0.1, 0.2, 0.2]])
    m.setObjective((away * away).sum())
    run(m)
    return ended(m, pred_constr, x, y)


@program
def revenue_by_region(ml, run):
    """Names of regions in the frame, an encoder at the front, price times demand in the objective."""
    m = gp.Model(env=gp.Env(params={"OutputFlag": 0}))
    regions = ["east", "north", "west"]
    price, demand = m.addMVar(3, lb=0.2, ub=1.0), m.addMVar(3, lb=-GRB.INFINITY)
    frame = pd.DataFrame({"region": regions, "price": price.tolist(), "peak": 1}, index=regions)
    pred_constr = ml.add_predictor_constr(m, trained.by_region(), frame, demand)
    m.setObjective((price * demand).sum(), GRB.MAXIMIZE)
    run(m)
    found = pred_constr.input_values
    assert list(found["region"]) == regions
    assert np.allclose(trained.by_region().predict(found.astype({"price": float, "peak": float})), demand.X)
    return ended(m, pred_constr, price, demand)
