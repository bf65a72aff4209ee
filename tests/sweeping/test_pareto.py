"""Fronts, against enumeration of all solutions."""

from __future__ import annotations

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest

import dovetail as dt
from dovetail.core.errors import OptionError
from tests.conftest import FULL, volume
from tests.tanh import tanh_net


def choices() -> tuple[dt.Problem, np.ndarray]:
    """Two integers with cost, risk and the quality that a network gives; and all (cost, quality, risk)."""
    rows = [[1.0, 2.0, 0.0, -1.0, 0.0], [3.0, 1.0, 0.0, 0.0, -1.0]]
    mip = dt.Mip(
        np.zeros(5), rows, 0.0, 0.0, [0, 0, -np.inf, 0, 0], [3, 3, np.inf, 99, 99],
        [True, True, False, False, False], names=["a", "b", "quality", "cost", "risk"],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(tanh_net(2, seed=4), ["a", "b"], ["quality"])
    found = []
    for a, b in itertools.product(range(4), range(4)):
        x = problem.predict(np.array([a, b, 0.0, a + 2.0 * b, 3.0 * a + b]))
        found.append([x[3], x[2], x[4]])
    return problem, np.array(found)


def undominated(values: np.ndarray) -> list[tuple[float, ...]]:
    """Those of the points, to be minimised, that no other one beats."""
    return sorted(
        {tuple(np.round(v, 6)) for v in values if not any(np.all(w <= v) and np.any(w < v) for w in values)}
    )


def test_two_objectives_of_a_network():
    problem, values = choices()
    front = dt.pareto(problem, {"cost": "min", "quality": "max"}, points=30, log=False)
    wanted = undominated(values[:, :2] * [1.0, -1.0])
    found = [(round(c, 6), round(-q, 6)) for c, q in front.values.tolist()]
    assert {found[0], found[-1]} <= {wanted[0], wanted[-1]}
    assert all(min(np.abs(np.subtract(w, f)).max() for w in wanted) < 1e-4 for f in found)
    assert len(found) >= 0.7 * len(wanted)
    assert front.proved.all()
    for result in front:
        assert dt.check(problem, result.x).within()


@volume("two objectives go the same way")
def test_three_objectives():
    problem, values = choices()
    front = dt.pareto(problem, {"cost": "min", "quality": "max", "risk": "min"}, points=49, log=False)
    wanted = undominated(values * [1.0, -1.0, 1.0])
    found = [(c, -q, r) for c, q, r in front.values.tolist()]
    assert all(min(np.abs(np.subtract(w, f)).max() for w in wanted) < 1e-3 for f in found)
    assert len(found) >= 0.4 * len(wanted)
    assert front.plot() is not None


def test_own_objective_sums_and_the_model_of_a_tool():
    model = pyo.ConcreteModel()
    model.a, model.b = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(0, 1))
    model.enough = pyo.Constraint(expr=model.a + model.b >= 1)
    model.cost = pyo.Objective(expr=3 * model.a + model.b + 2)
    front = dt.pareto(model, {"objective": None, "use of b": ("min", {"b": 5.0})}, points=3, log=False)
    assert front.values == pytest.approx(np.array([[3.0, 5.0], [4.0, 2.5], [5.0, 0.0]]), abs=1e-4)
    assert front.to_frame()["use of b"].tolist() == pytest.approx([5.0, 2.5, 0.0], abs=1e-4)
    assert front[1].value(model.b) == pytest.approx(0.5, abs=1e-5)
    front[0].load()
    assert pyo.value(model.b) == pytest.approx(1.0, abs=1e-5)
    axis = front.plot().axes[0]
    assert axis.get_xlabel() == "objective (min)"
    assert "use of b" in repr(front)
    assert "<td>proved</td>" in front._repr_html_()


def test_the_ends_of_three_objectives_and_two_processes():
    """x + y + z >= 1: the front is the triangle between the three ends."""
    mip = dt.Mip(np.zeros(3), [[1.0, 1.0, 1.0]], [1.0], [9.0], upper=1.0, names=["x", "y", "z"])
    goals = {"x": "min", "y": "min", "z": "min"}
    for jobs in (1, 2) if FULL else (2,):
        front = dt.pareto(dt.Problem(mip), goals, points=7, n_jobs=jobs, log=False)
        assert front.values.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
        found = {tuple(point) for point in front.values.round(3).tolist()}
        assert {(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)} <= found and len(found) >= 5


def test_infeasible_has_no_points():
    mip = dt.Mip([1.0, 0.0], [[1.0, 1.0]], [5.0], [9.0], upper=1.0, names=["p", "q"])
    front = dt.pareto(dt.Problem(mip), {"p": "min", "q": "max"}, log=False)
    assert len(front) == 0
    assert front.values.shape == (0, 2)


@pytest.mark.parametrize(
    ("objectives", "word"),
    [
        ({"p": "min"}, "two or three"),
        ({"p": "min", "qq": "max"}, "called 'qq'"),
        ({"p": "least", "q": "max"}, "sense"),
        (["p", "q"], "two or three"),
    ],
)
def test_refused(objectives, word):
    problem = dt.Problem(dt.Mip([1.0, 0.0], upper=1.0, names=["p", "q"]))
    with pytest.raises(OptionError, match=word):
        dt.pareto(problem, objectives, log=False)
