"""One more predictor, tried before it is kept."""

import pyomo.environ as pyo
import pytest

import dovetail as dt
from dovetail.core.foreign import locate
from dovetail.modelling import predictor_constr as attachment
from tests.modelling.tiny import in_gurobi, solve, times


def test_a_variable_that_only_rows_of_a_block_know():
    model = pyo.ConcreteModel()
    model.outer = pyo.Var(bounds=(0, 1))
    model.b = pyo.Block()
    model.b.y = pyo.Var(bounds=(-100, 100))
    model.b.row = pyo.Constraint(expr=model.b.y + model.outer <= 50)
    model.b.goal = pyo.Objective(expr=model.b.y, sense=pyo.maximize)
    dt.add_predictor_constr(model.b, times(3.0), model.outer, model.b.y)
    assert solve(model.b).objective == pytest.approx(3.0)


def test_many_small_attachments_do_not_slow_each_other_down(monkeypatch):
    """Variables are looked up as often for the last of many as for the first."""
    counted = []
    monkeypatch.setattr(attachment, "locate", lambda *given: counted.append(1) or locate(*given))
    model = in_gurobi()
    x = model.addMVar((30, 1), ub=1)
    calls = []
    for i in range(30):
        before = len(counted)
        dt.add_predictor_constr(model, times(1.0), x[i])
        calls.append(len(counted) - before)
    assert set(calls[1:]) == {calls[1]}


def test_both_sizes_are_named():
    model = in_gurobi()
    x = model.addMVar((4, 3))
    with pytest.raises(
        dt.PredictorError, match=r"3 variables per sample \(shape \(4, 3\)\).*takes 2 features"
    ):
        dt.add_predictor_constr(model, times(1.0, 1.0), x)
