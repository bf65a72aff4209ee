"""Indicator constraints in the tools that have them: with bounds rows, without bounds blocks."""

import itertools

import gurobipy as gp
import linopy
import numpy as np
import pytest
from pyscipopt import Model

import dovetail as dt
from dovetail.modelling.snapshot import take_snapshot
from tests.conftest import FULL


def wave(X):
    return np.sin(X[:, :1]) + 0.05 * X[:, :1]


def best(on_is_worth, most):
    """max y + worth b, y = sin(x) + x / 20, 0 <= x <= 16, b = 1 only where x <= most, by a fine grid."""
    grid = np.linspace(0.0, 16.0, 160_001)
    value = wave(grid[:, None])[:, 0]
    return max(value.max(), value[grid <= most].max() + on_is_worth)


def in_scip(bounded, on_is_worth):
    model = Model()
    x = model.addVar("x", lb=0, ub=16)
    free = model.addVar("free", lb=0)
    b, y = model.addVar("b", vtype="B"), model.addVar("y", lb=None)
    model.addCons(free >= x)  # and nothing limits it from above
    model.addConsIndicator((x if bounded else free) <= 3, b, name="calm")
    model.setObjective(y + on_is_worth * b, "maximize")
    return model, x, b, y


def in_gurobi(bounded, on_is_worth):
    model = gp.Model(env=gp.Env(params={"OutputFlag": 0}))
    x, free = model.addVar(ub=16, name="x"), model.addVar()
    b, y = model.addVar(vtype="B"), model.addVar(lb=-gp.GRB.INFINITY)
    model.addConstr(free >= x)
    model.addGenConstrIndicator(b, True, (x if bounded else free) <= 3, name="calm")
    model.setObjective(y + on_is_worth * b, gp.GRB.MAXIMIZE)
    return model, x, b, y


def in_linopy(bounded, on_is_worth):
    model = linopy.Model()
    x = model.add_variables(lower=0, upper=16, name="x")
    free = model.add_variables(lower=0, name="free")
    b, y = model.add_variables(binary=True, name="b"), model.add_variables(name="y")
    model.add_constraints(free - x >= 0)
    model.add_indicator_constraints(b, 1, (x if bounded else free) <= 3, name="calm")
    model.add_objective(y + on_is_worth * b, sense="max")
    return model, x, b, y


EVERY = [*itertools.product([in_scip, in_gurobi, in_linopy], [True, False], [0.2, 0.9])]
CASES = EVERY if FULL else [(in_scip, True, 0.2), (in_gurobi, False, 0.9), (in_linopy, False, 0.9)]


@pytest.mark.parametrize(("tool", "bounded", "on_is_worth"), CASES)
def test_it_is_kept_and_the_optimum_found(tool, bounded, on_is_worth):
    model, x, b, y = tool(bounded, on_is_worth)
    dt.add_predictor_constr(model, wave, x, y)
    if not bounded:  # nothing limits the row: it became a block
        assert any(block.name.startswith("indicator") for block in take_snapshot(model).problem.blocks)
    optimum = best(on_is_worth, 3.0)
    result = dt.solve(model, dt.Auto(effort=20), target=optimum - 1e-4, log=False)
    assert result.objective == pytest.approx(optimum, abs=1e-4)
    assert result.value(b) < 0.5 or result.value(x) <= 3 + 1e-6


@pytest.mark.parametrize(("active", "sense"), [(1, "<="), (0, ">="), (1, "==")])
def test_a_row_without_limits_says_what_it_says(active, sense):
    model = gp.Model(env=gp.Env(params={"OutputFlag": 0}))
    x, b = model.addVar(lb=-gp.GRB.INFINITY, name="x"), model.addVar(vtype="B", name="b")
    row = {"<=": x <= 2, ">=": x >= 2, "==": x == 2}[sense]
    model.addGenConstrIndicator(b, bool(active), row)
    problem = take_snapshot(model).problem
    for on in (0.0, 1.0):
        for value in (1.0, 2.0, 3.5):
            holds = on != active or {"<=": value <= 2, ">=": value >= 2, "==": value == 2}[sense]
            point = np.array([value, on, 0.0])
            violation = dt.check(problem, problem.predict(point))
            assert violation.within() == holds
