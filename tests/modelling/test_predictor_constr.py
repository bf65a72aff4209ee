"""What `add_predictor_constr` returns: values of the solve it was part of, and a removal that is whole."""

import pytest
from pyscipopt import Model

import dovetail as dt
from tests.small import linear_net
from tests.tools import Gurobi, Highs


def test_a_refused_removal_leaves_everything_as_it_was():
    model = Model()
    model.hideOutput()
    x = model.addVar("x", ub=4)
    constr = dt.add_predictor_constr(model, linear_net([0.5]), [x])
    row = model.addCons(constr.output[0, 0] <= 1)
    model.setObjective(constr.output[0, 0], "maximize")
    with pytest.raises(dt.ModelError):
        constr.remove()
    assert dt.solve(model, time_limit=5, log=False).objective == pytest.approx(1.0)
    model.delCons(row)
    model.setObjective(x)
    constr.remove()
    assert model.getNVars() == 1


def test_values_are_those_of_the_solve_whatever_is_changed_later():
    model = Highs().new()
    x, y = model.addVariable(0, 5), model.addVariable(-99, 99)
    model.changeColCost(y.index, -1.0)
    row = [[x, 3.0]]
    constr = dt.add_predictor_constr(model, linear_net([1.0, 10.0]), row, [y])
    dt.solve(model, time_limit=5, log=False)
    row[0][1] = 4.0
    assert constr.input_values.tolist() == [[5.0, 3.0]] and constr.get_error().max() == 0.0
    dt.solve(model, time_limit=5, log=False)
    assert constr.input_values.tolist() == [[5.0, 4.0]] and constr.output_values == 45.0


def test_no_values_names_the_status():
    model = Gurobi().new()
    x, y = model.addVar(ub=1), model.addVar(lb=5, ub=9)
    constr = dt.add_predictor_constr(model, linear_net([1.0]), [x], [y])
    assert dt.solve(model, time_limit=5, log=False).x is None
    with pytest.raises(dt.DovetailError, match="found no point"):
        constr.get_error()
