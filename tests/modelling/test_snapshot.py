"""A model between solves: what is seen of it, and what a later solve makes of an earlier point."""

import copy
import logging
import pickle

import linopy
import numpy as np
import pyomo.environ as pyo
import pytest
from sklearn.linear_model import LinearRegression

import dovetail as dt
from dovetail.core.errors import ModelError
from tests.modelling.tiny import in_gurobi, in_highs, solve, times


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


def test_a_model_without_ties_says_so(caplog):
    model = in_gurobi()
    model.addVar(ub=4)
    with caplog.at_level(logging.INFO, logger="dovetail"):
        solve(model)
    assert "no predictor is attached to this gurobipy model" in caplog.text


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
    with pytest.raises(dt.OptionError, match="another problem"):
        solve(gurobi, start=solve(first))


def test_bare_integers_are_columns():
    model = in_gurobi()
    x, y = model.addVar(lb=7, ub=7), model.addVar(lb=-5)
    dt.add_predictor_constr(model, times(0.5), [x], [y])
    result = solve(model)
    again = dt.Result.from_json(result.to_json())
    assert result.value([1, 0]).tolist() == again.value([1, 0]).tolist() == [3.5, 7.0]
    assert result.value([[x, 1.5]]).tolist() == [[7.0, 1.5]]  # beside a variable a number is a number


def test_a_point_is_checked_with_or_without_the_variables_that_dovetail_adds():
    """A number among the inputs and a quadratic term each have a variable of their own."""
    model = pyo.ConcreteModel()
    model.x, model.y = pyo.Var(bounds=(0, 3)), pyo.Var()
    model.cost = pyo.Objective(expr=model.y + model.x**2)
    dt.add_predictor_constr(model, lambda X: X[:, :1] + X[:, 1:], [[model.x, 2.5]], [[model.y]])
    result = dt.solve(model, time_limit=10, log=False)
    assert result.x.size == 4
    for point in (result.x, result.value([model.x, model.y])):
        assert dt.check(model, point).within()
    assert not dt.check(model, [1.0, 3.0]).within()
    with pytest.raises(dt.ModelError, match="x has"):
        dt.check(model, [1.0, 3.5, 2.5])


def test_a_point_of_a_problem_may_leave_out_fixed_features_and_outputs_made_for_it():
    problem = dt.Problem(dt.Mip(cost=[1.0, 2.0], upper=[3.0, 9.0], names=["a", "b"]))
    made = dt.add_predictor_constr(problem, lambda X: X.sum(axis=1), ["a", "b", 0.5])
    whole = [1.0, 2.0, 3.5, 0.5] if problem.mip.lower[-1] == 0.5 else [1.0, 2.0, 0.5, 3.5]
    assert made is not None and problem.mip.n_columns == 4
    assert dt.check(problem, whole).within() and dt.check(problem, [1.0, 2.0]).within()
    assert not dt.check(problem, [1.0, 12.0]).within()
    assert dt.solve(problem, start=[1.0, 2.0], time_limit=5, log=False).status == "optimal"
    with pytest.raises(ModelError, match="x has 1 entr"):
        dt.check(problem, [1.0])


def test_a_number_among_names_is_refused_with_the_call_that_takes_it():
    problem = dt.Problem(dt.Mip(cost=[1.0, 2.0], upper=[3.0, 9.0], names=["a", "b"]))
    with pytest.raises(ModelError, match="add_predictor_constr"):
        problem.add_predictor(lambda X: X.sum(axis=1), ["a", 0.5], ["b"])
