"""The object users hold: values of the last solve, removal."""

import pytest
from pyscipopt import Model

import dovetail as dt
from tests.modelling.tiny import in_gurobi, in_highs, solve, times


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
    with pytest.raises(dt.DovetailError, match="found no solution"):
        constr.get_error()


def test_it_shows_what_is_attached_and_what_came_out():
    problem = dt.Problem(dt.Mip([0.0, -1.0], upper=[2.0, 9.0], integer=[True, False]))
    constr = dt.add_predictor_constr(problem, times(3.0), [0], [1], name="<c>")
    assert repr(constr) == "<PredictorConstr <c>: Linear (regression), 1 sample of 1 -> 1; no values yet>"
    solve(problem)
    assert repr(constr).endswith("; outputs 6>")
    assert "largest error" in constr._repr_html_() and "<c>" not in constr._repr_html_()
