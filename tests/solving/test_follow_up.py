"""What is asked after a solve: constraints with prices, and the same solve with other limits."""

from __future__ import annotations

import io
import pickle
import sys
from dataclasses import replace

import linopy
import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest

import dovetail as dt
from dovetail.core.errors import DovetailError, OptionError
from dovetail.report.page.result_page import held_back, result_page
from dovetail.run.constraints import ConstraintTable
from tests.tanh import tanh_net


def plan() -> dt.Problem:
    """min -x - 2 z, x + z <= 3, 1 <= x, z <= 1 in a row of its own."""
    mip = dt.Mip(
        [-1.0, -2.0], [[1.0, 1.0], [0.0, 2.0], [1.0, 0.0]], [-np.inf, -np.inf, 0.0], [3.0, 2.0, 50.0],
        [1.0, 0.0], [9.0, 9.0], names=["x", "z"], row_names=["budget", "hours", "loose"],
    )  # fmt: skip
    return dt.Problem(mip)


@pytest.fixture(scope="module")
def result():
    return dt.solve(plan(), log=False)


def test_table(result):
    frame = result.constraints
    assert list(frame.index) == ["budget", "hours", "loose"]
    assert frame.price.tolist() == pytest.approx([-1.0, -0.5, 0.0])
    assert frame.binding.tolist() == [True, True, False]
    assert frame.slack.tolist() == pytest.approx([0.0, 0.0, 2.0])
    assert frame.price_from.tolist() == ["linearised", "linearised", "not binding"]


def test_prices_of_a_solution_that_is_not_proved_are_local(result):
    open_end = replace(result, status=dt.Status.FEASIBLE)
    assert open_end.constraints.price_from.tolist() == ["local", "local", "not binding"]


def test_without_pandas(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = result.constraints
    assert isinstance(table, ConstraintTable)
    assert table["budget"].activity == 3.0
    assert "budget" in repr(table)
    assert "<td>budget</td>" in table._repr_html_()
    with pytest.raises(KeyError, match="budget"):
        table["budgett"]


def test_file_and_copy_have_the_table(result):
    for again in (dt.Result.from_json(result.to_json()), pickle.loads(pickle.dumps(result))):
        pd.testing.assert_frame_equal(again.constraints, result.constraints)
        with pytest.raises(DovetailError, match="file"):
            again.what_if({"budget": 1.0})


def test_log_names_the_hardest():
    log = io.StringIO()
    dt.solve(plan(), log=log)
    assert "binding     budget (-1 per unit), hours (-0.5 per unit)" in log.getvalue()


def test_no_solution_has_no_constraints():
    mip = dt.Mip([1.0], [[1.0]], [2.0], [9.0], upper=1.0)
    with pytest.raises(DovetailError, match="infeasible"):
        dt.solve(dt.Problem(mip), log=False).constraints  # noqa: B018


def test_what_if(result):
    found = result.what_if({"budget": 2.0, "hours": -1.0})
    assert found.result.objective == pytest.approx(-5.5)
    assert found.change == pytest.approx(-1.5)
    assert found.estimate == pytest.approx(-1.5)
    assert found.decisions == {"x": (2.0, 4.5), "z": (1.0, 0.5)}
    assert str(found).startswith("budget +2, hours -1: objective -4 to -5.5 (-1.5; by their prices -1.5)")


def test_what_if_of_a_variable_and_of_two_limits(result):
    found = result.what_if({"x": (0.5, 0.0), "loose": (0.0, -49.0)})
    assert found.result.status == "infeasible"
    assert found.change is None
    assert "infeasible" in str(found)
    assert found.decisions == {}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"budgett": 1.0}, "budget"),
        ({"loose": 1.0}, "two limits"),
        ({"budget": "much"}, "number"),
        ({"loose": (60.0, 0.0)}, "limits of loose would be"),
        ({}, "names with shifts"),
    ],
)
def test_what_if_refuses(result, changes, word):
    with pytest.raises(OptionError, match=word):
        result.what_if(changes)


def test_maximised_objective_keeps_its_sign():
    mip = dt.Mip([2.0, 1.0], [[1.0, 1.0]], [-np.inf], [1.0], sense="max", row_names=["cap"])
    found = dt.solve(dt.Problem(mip), log=False)
    assert found.constraints.price["cap"] == pytest.approx(2.0)
    assert found.what_if({"cap": 1.0}).change == pytest.approx(2.0)


def test_pyomo_takes_the_prices():
    model = pyo.ConcreteModel()
    model.x, model.y = pyo.Var(bounds=(0, 2)), pyo.Var()
    model.cap = pyo.Constraint(expr=model.x <= 1.5)
    model.cost = pyo.Objective(expr=model.y - 3.0 * model.x)
    model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    dt.add_predictor_constr(model, tanh_net(), [model.x], [model.y])
    result = dt.solve(model, log=False)
    assert model.dual[model.cap] == result.constraints.price["cap"] < -1.0
    assert result.what_if({"cap": 0.1}).change == pytest.approx(0.1 * model.dual[model.cap], rel=0.1)
    assert pyo.value(model.x) == pytest.approx(1.5)


def test_linopy_takes_the_prices():
    model = linopy.Model()
    x = model.add_variables(lower=0, upper=2, coords=[pd.Index(["a", "b"], name="i")], name="x")
    model.add_constraints(x <= 1.5, name="cap")
    model.add_objective(-2 * x.sum())
    dt.solve(model, log=False)
    assert model.constraints["cap"].dual.values.tolist() == pytest.approx([-2.0, -2.0])


def test_page_has_the_hardest_first(result):
    held = held_back(result)
    assert held.sentence.startswith("2 of 3 inequalities are at a limit.")
    assert [(name, cells[2].text) for name, cells in held.table.rows] == [
        ("budget", "\u22121"),
        ("hours", "\u22120.5"),
    ]
    assert "What holds it back" in result_page(result)
    assert result_page(dt.Result.from_json(result.to_json())) == result_page(result)
