"""What a stranger stumbled over, once each."""

import copy
import logging
import pickle

import gurobipy as gp
import highspy
import linopy
import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
import torch
import xarray as xr
from pyscipopt import Model
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier

import dovetail as dt


def times(*weights):
    """y = weights'x."""
    net = torch.nn.Linear(len(weights), 1, dtype=torch.float64)
    with torch.no_grad():
        net.weight[:] = torch.tensor([weights], dtype=torch.float64)
        net.bias[:] = 0.0
    return net


def solve(model, **options):
    return dt.solve(model, time_limit=5, log=False, **options)


def in_gurobi():
    return gp.Model(env=gp.Env(params={"OutputFlag": 0}))


def in_highs():
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    return model


def test_highspy_variables_behind_removed_outputs_stay_what_they_are():
    model = in_highs()
    x = model.addVariable(1, 1)
    first = dt.add_predictor_constr(model, times(0.5), [x])
    x2, x3 = model.addVariable(2, 2), model.addVariable(3, 3)
    z = model.addVariable(-99, 99)
    second = dt.add_predictor_constr(model, times(20.0), [x2], [z], name="two")
    first.remove()
    result = solve(model)
    assert (second.input_values, second.output_values) == (2.0, 40.0)
    assert result.value([x, x2, x3, z]).tolist() == [1.0, 2.0, 3.0, 40.0]


def test_highspy_values_after_a_deletion_are_refused_or_right():
    model = in_highs()
    a, x = model.addVariable(5, 5), model.addVariable(1, 1)
    y = model.addVariable(-99, 99)
    constr = dt.add_predictor_constr(model, times(10.0), [x], [y])
    result = solve(model)
    model.deleteVariable(a, x, y)
    with pytest.raises(dt.ModelError, match="deleted since"):
        result.value(x)
    with pytest.raises(dt.OptionError, match="deleted"):
        solve(model, start=result)
    assert constr.output_values == 10.0 and constr.get_error() == 0.0
    assert solve(model).value([x, y]).tolist() == [1.0, 10.0]


def test_a_frame_in_another_order_than_the_training_data_is_refused():
    seen = pd.DataFrame({"a": np.arange(10.0), "b": np.arange(10.0)[::-1] ** 2})
    estimator = LinearRegression().fit(seen, seen.a + 100 * seen.b)
    model = in_gurobi()
    p, q = model.addVar(lb=1, ub=1), model.addVar(lb=2, ub=2)
    y = model.addVar(lb=-999)
    with pytest.raises(dt.PredictorError, match="columns b, a.*trained on a, b"):
        dt.add_predictor_constr(model, estimator, pd.DataFrame({"b": [q], "a": [p]}), [y])
    with pytest.raises(dt.PredictorError, match="data has the columns b, a"):
        dt.add_predictor_constr(model, estimator, [[p, q]], [y], data=seen[["b", "a"]])
    dt.add_predictor_constr(model, estimator, pd.DataFrame({"a": [p], "b": [q]}), [y], data=seen)
    assert solve(model).value(y) == pytest.approx(201.0)


def test_what_is_tied_to_a_pyomo_block_counts_in_the_whole_model():
    model = pyo.ConcreteModel()
    model.outer = pyo.Var(bounds=(0, 1))
    model.b = pyo.Block()
    model.b.x, model.b.y = pyo.Var(bounds=(0, 4)), pyo.Var(bounds=(-100, 100))
    model.b.row = pyo.Constraint(expr=model.b.x + model.outer <= 4)
    model.goal = pyo.Objective(expr=model.b.y, sense=pyo.maximize)
    dt.add_predictor_constr(model.b, times(0.5), model.b.x, model.b.y)
    dt.add_predictor_constr(model, times(1.0), model.outer)
    assert solve(model).objective == pytest.approx(2.0)


def test_a_variable_that_only_rows_of_a_block_know():
    model = pyo.ConcreteModel()
    model.outer = pyo.Var(bounds=(0, 1))
    model.b = pyo.Block()
    model.b.y = pyo.Var(bounds=(-100, 100))
    model.b.row = pyo.Constraint(expr=model.b.y + model.outer <= 50)
    model.b.goal = pyo.Objective(expr=model.b.y, sense=pyo.maximize)
    dt.add_predictor_constr(model.b, times(3.0), model.outer, model.b.y)
    assert solve(model.b).objective == pytest.approx(3.0)


def test_a_model_without_ties_says_so(caplog):
    model = in_gurobi()
    x = model.addVar(ub=4)
    dt.add_predictor_constr(model, times(0.5), [x])
    with caplog.at_level(logging.INFO, logger="dovetail"):
        solve(model.copy())
    assert "no predictor is tied to this gurobipy model" in caplog.text


def test_bare_integers_are_columns():
    model = in_gurobi()
    x, y = model.addVar(lb=7, ub=7), model.addVar(lb=-5)
    dt.add_predictor_constr(model, times(0.5), [x], [y])
    result = solve(model)
    again = dt.Result.from_json(result.to_json())
    assert result.value([1, 0]).tolist() == again.value([1, 0]).tolist() == [3.5, 7.0]
    assert result.value([[x, 1.5]]).tolist() == [[7.0, 1.5]]  # beside a variable a number is a number


def test_probabilities_are_asked_of_what_has_them():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = in_gurobi()
    x, y = model.addMVar(3, ub=1), model.addMVar(1, lb=-99)
    three = LogisticRegression().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    for estimator, outputs in (
        (RidgeClassifier().fit(X, X[:, 0] > 0), y),
        (three, None),
        (times(1, 1, 1), y),
    ):
        with pytest.raises(dt.PredictorError, match="no probability of one class"):
            dt.add_predictor_constr(model, estimator, x, outputs, output_type="probability_1")
    model.update()
    assert model.NumVars == 4
    dt.add_predictor_constr(
        model, LogisticRegression().fit(X, X[:, 0] > 0), x, y, output_type="probability_1"
    )


def test_a_refused_removal_leaves_everything_as_it_was():
    model = Model()
    model.hideOutput()
    x = model.addVar("x", ub=4)
    constr = dt.add_predictor_constr(model, times(0.5), [x])
    row = model.addCons(constr.output[0, 0] <= 1)
    model.setObjective(constr.output[0, 0], "maximize")
    with pytest.raises(dt.ModelError):
        constr.remove()
    assert solve(model).objective == pytest.approx(1.0)
    model.delCons(row)
    model.setObjective(x)
    constr.remove()
    assert model.getNVars() == 1


def test_values_are_those_of_the_solve_whatever_is_changed_later():
    model = in_highs()
    x, y = model.addVariable(0, 5), model.addVariable(-99, 99)
    model.changeColCost(y.index, -1.0)
    row = [[x, 3.0]]
    constr = dt.add_predictor_constr(model, times(1.0, 10.0), row, [y])
    solve(model)
    row[0][1] = 4.0
    assert constr.input_values.tolist() == [[5.0, 3.0]] and constr.get_error().max() == 0.0
    solve(model)
    assert constr.input_values.tolist() == [[5.0, 4.0]] and constr.output_values == 45.0


def test_no_values_names_the_status():
    model = in_gurobi()
    x, y = model.addVar(ub=1), model.addVar(lb=5, ub=9)
    constr = dt.add_predictor_constr(model, times(1.0), [x], [y])
    assert solve(model).x is None
    with pytest.raises(dt.DovetailError, match="found no point"):
        constr.get_error()


def test_strange_numbers_and_containers():
    model = in_gurobi()
    x = model.addVar(ub=1)
    net = times(1.0, 1.0)
    with pytest.raises(dt.ModelError, match="finite"):
        dt.add_predictor_constr(model, net, [[x, 10**400]])
    dt.add_predictor_constr(model, net, [[x, np.bool_(True)]])
    array = xr.DataArray(np.array([[x, 2.0]], dtype=object), dims=["sample", "feature"])
    constr = dt.add_predictor_constr(model, net, array)
    solve(model)
    assert constr.input_values[0, 1] == 2.0


def test_both_sizes_are_named():
    model = in_gurobi()
    x = model.addMVar((4, 3))
    with pytest.raises(dt.PredictorError, match=r"3 columns per sample \(shape \(4, 3\)\).*takes 2 features"):
        dt.add_predictor_constr(model, times(1.0, 1.0), x)


def test_training_again_on_other_features_is_a_typed_error():
    X = np.random.default_rng(0).normal(size=(20, 3))
    estimator = LinearRegression().fit(X[:, :2], X[:, 2])
    model = in_gurobi()
    x, y = model.addMVar(2, ub=1), model.addMVar(1, lb=-99)
    dt.add_predictor_constr(model, estimator, x, y)
    estimator.fit(X, X[:, 0])
    with pytest.raises(dt.PredictorError, match="features"):
        solve(model)


def test_results_can_be_pickled_and_copied():
    model = in_gurobi()
    x = model.addVar(lb=2, ub=2)
    constr = dt.add_predictor_constr(model, times(3.0), [x])
    result = solve(model)
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert np.array_equal(other.x, result.x)
        assert other.value([1]).tolist() == [6.0]
    assert result.value(constr.output) == 6.0
    assert dt.check(model, result.x).within()


def test_a_start_of_another_model():
    first, second = linopy.Model(), linopy.Model()
    for model, count in ((first, 1), (second, 1)):
        model.add_variables(lower=0, upper=count, name="x")
        model.add_objective(1 * model.variables["x"])
    gurobi = in_gurobi()
    gurobi.addVar()
    with pytest.raises(dt.OptionError, match="another model"):
        solve(gurobi, start=solve(first))


def test_many_small_ties_do_not_slow_each_other_down(monkeypatch):
    """Variables are looked up as often for the last of many ties as for the first."""
    from dovetail.modelling import attach

    counted = []
    monkeypatch.setattr(attach, "locate", lambda *given: counted.append(1) or locate(*given))
    from dovetail.core.foreign import locate

    model = in_gurobi()
    x = model.addMVar((30, 1), ub=1)
    calls = []
    for i in range(30):
        before = len(counted)
        dt.add_predictor_constr(model, times(1.0), x[i])
        calls.append(len(counted) - before)
    assert set(calls[1:]) == {calls[1]}


def test_a_name_must_be_free_but_a_peers_prefix_need_not():
    model = in_gurobi()
    x = model.addMVar((3, 1), ub=1)
    names = [
        dt.add_predictor_constr(model, times(1.0), x[i], unique_naming_prefix="p_").name for i in range(3)
    ]
    assert len(set(names)) == 3 and names[0] == "p"
    with pytest.raises(dt.PredictorError, match="already a block called 'p'"):
        dt.add_predictor_constr(model, times(1.0), x[0], name="p")
