"""Functions in Pyomo's constraints: solved against scipy on a grid, refused where they are not defined."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.modelling.snapshot import take_snapshot

pyo = pytest.importorskip("pyomo.environ")

CASES = {
    "exp": (lambda f, x, y: f.exp(x) + y**3, lambda f, x, y: x * y, 1.5),
    "log": (lambda f, x, y: x * f.log(y + 2) + y / x, lambda f, x, y: x + 2 * y, 2.0),
    "three": (lambda f, x, y: x * y * (x + y), lambda f, x, y: f.sqrt(x) + 2 * y, 1.0),
    "powers": (lambda f, x, y: x**-2 + y**5 - x**1.5, lambda f, x, y: f.tanh(x) - f.log10(y) * x, 3.0),
}


@pytest.mark.parametrize("case", CASES)
def test_the_best_of_a_grid_is_no_better(case):
    row, cost, limit = CASES[case]
    model = pyo.ConcreteModel()
    model.x, model.y = pyo.Var(bounds=(0.5, 2.0)), pyo.Var(bounds=(0.25, 1.75))
    model.shown = pyo.Expression(expr=row(pyo, model.x, model.y))
    model.row = pyo.Constraint(expr=model.shown >= limit)
    model.goal = pyo.Objective(expr=cost(pyo, model.x, model.y))
    result = dt.solve(model, time_limit=60, gap=1e-3, log=False)
    x, y = np.meshgrid(np.linspace(0.5, 2.0, 1201), np.linspace(0.25, 1.75, 1201))
    grid = np.where(row(np, x, y) >= limit, cost(np, x, y), np.inf).min()
    assert result.status == "optimal" and not result.failures
    assert result.objective == pytest.approx(grid, abs=5e-3)
    assert pyo.value(model.shown) >= limit - 1e-5
    assert pyo.value(model.goal) == pytest.approx(result.objective, abs=1e-5)


def test_the_table_has_the_constraints_of_the_model_only():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0.0, 3.0))
    model.row = pyo.Constraint(expr=pyo.exp(0.5 * model.x + 0.5) + model.x <= 4.0)
    model.goal = pyo.Objective(expr=model.x, sense=pyo.maximize)
    table = dt.solve(model, log=False).constraint_table
    slope = 0.5 * np.exp(0.5 * model.x.value + 0.5) + 1.0
    assert [row.name for row in table] == ["row"]
    assert table["row"].price == pytest.approx(1.0 / slope, rel=1e-3)


def test_one_block_for_each_function():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), bounds=(1.0, 2.0))
    model.row = pyo.Constraint(expr=sum(pyo.exp(model.x[i]) for i in range(3)) + pyo.log(model.x[0]) <= 12.0)
    model.goal = pyo.Objective(expr=-model.x[0] - pyo.exp(2 * model.x[1]))
    problem = take_snapshot(model).problem
    assert {block.name: block.samples for block in problem.blocks} == {"exp": 4, "log": 1}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (lambda x: pyo.log(x - 1.0), "not defined everywhere in the bounds"),
        (lambda x: 1.0 / x, "not defined everywhere in the bounds"),
        (lambda x: x**x, "the functions exp, log, "),
        (lambda x: pyo.asinh(x), "compute another one in a predictor"),
    ],
)
def test_what_is_not_taken_is_named(row, words):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0.0, 2.0))
    model.row = pyo.Constraint(expr=row(model.x) <= 1.0)
    with pytest.raises(dt.UnsupportedError, match=f"constraint row has .*{words}"):
        dt.solve(model, log=False)
