"""Several solutions, against all of them by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest

import dovetail as dt
from dovetail.core.errors import OptionError, UnsupportedError
from dovetail.report.page.result_page import result_page, side_by_side
from tests.tanh import tanh_net


def whole_problem() -> tuple[dt.Problem, dict[tuple[int, int, int], float]]:
    """min y + cost of three integers, y = net of two of them; and all solutions by enumeration."""
    cost, rows = [0.3, -0.2, 0.1, 1.0], [[1.0, 1.0, 1.0, 0.0]]
    mip = dt.Mip(cost, rows, [1.0], [4.0], [0, 0, 0, -np.inf], [2, 3, 1, np.inf], [True, True, True, False])
    problem, net = dt.Problem(mip), tanh_net(2, seed=3)
    problem.add_predictor(net, [0, 1], [3])
    known = {}
    for x in itertools.product(range(3), range(4), range(2)):
        if 1 <= sum(x) <= 4:
            known[x] = float(mip.cost @ problem.predict(np.array([*x, 0.0])))
    return problem, known


def test_the_best_different_integers():
    problem, known = whole_problem()
    result = dt.solve(problem, solutions=4, log=False)
    wanted = sorted(known.values())[:4]
    assert [each.objective for each in result.solutions] == pytest.approx(wanted, abs=1e-4)
    assert len({tuple(np.round(each.x[:3])) for each in result.solutions}) == 4
    assert all(each.status == "optimal" for each in result.solutions)
    assert all(dt.check(problem, each.x).within() for each in result.solutions)
    assert result.solutions[0] is result
    assert "solutions=4" in result.settings.call


def test_no_more_solutions_than_there_are():
    mip = dt.Mip([1.0, 2.0], [[1.0, 1.0]], [1.0], [1.0], upper=1.0, integer=True)
    result = dt.solve(dt.Problem(mip), solutions=5, log=False)
    assert [each.objective for each in result.solutions] == [1.0, 2.0]


def test_inputs_farther_than_a_distance():
    problem = dt.Problem(dt.Mip([0.0, 1.0], lower=[0.0, -9.0], upper=[4.0, 99.0]))
    problem.add_predictor(lambda X: (X - 1.0) ** 2, [0], [1])
    result = dt.solve(problem, solutions=3, distance=0.2, time_limit=6, log=False)
    x = np.array([each.x[0] for each in result.solutions])
    assert x[0] == pytest.approx(1.0, abs=0.02)
    assert sorted(x[1:]) == pytest.approx([x[0] - 0.8, x[0] + 0.8], abs=0.02)


def test_file_and_page():
    problem, _ = whole_problem()
    result = dt.solve(problem, solutions=3, log=False)
    again = dt.Result.from_json(result.to_json())
    assert [each.objective for each in again.solutions] == [each.objective for each in result.solutions]
    table = side_by_side(result)
    assert table.head == ["variable", "best", "2", "3"]
    assert "Other solutions" in result_page(result)
    assert result_page(again) == result_page(result)
    assert side_by_side(dt.solve(problem, log=False)) is None


def test_a_second_solution_in_its_model():
    model = pyo.ConcreteModel()
    model.a, model.b = pyo.Var(domain=pyo.Binary), pyo.Var(domain=pyo.Binary)
    model.one = pyo.Constraint(expr=model.a + model.b >= 1)
    model.cost = pyo.Objective(expr=model.a + 2 * model.b)
    result = dt.solve(model, solutions=2, log=False)
    assert (pyo.value(model.a), pyo.value(model.b)) == (1, 0)
    second = result.solutions[1]
    assert second.value([model.a, model.b]).tolist() == [0, 1]
    second.load()
    assert (pyo.value(model.a), pyo.value(model.b)) == (0, 1)


def test_refused():
    problem = dt.Problem(dt.Mip([1.0], [[1.0]], [0.5], [3.0], upper=5.0))
    with pytest.raises(UnsupportedError, match="solutions"):
        dt.solve(problem, solutions=2, log=False)
    with pytest.raises(OptionError, match="solutions"):
        dt.solve(problem, solutions=0)
    with pytest.raises(OptionError, match="distance"):
        dt.solve(problem, solutions=2, distance=0.0)
