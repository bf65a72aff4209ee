"""General constraints, ordered sets, piecewise-linear functions: the optima that tools find themselves."""

import gurobipy as gp
import linopy
import numpy as np
import pyomo.environ as pyo
import pyscipopt
import pytest
from gurobipy import GRB

import dovetail as dt
from dovetail.models import foreign_model


def answers(model):
    """What dovetail says, and Gurobi."""
    model.optimize()
    theirs = model.ObjVal
    result = dt.solve(model, log=False)
    assert result.status == "optimal"
    assert model.ObjVal == pytest.approx(result.objective, abs=1e-6)
    return result.objective, theirs


GENERAL = {
    "abs": lambda m, r, x, b: m.addGenConstrAbs(r, x[0]),
    "max": lambda m, r, x, b: m.addGenConstrMax(r, x, -1.0),
    "min": lambda m, r, x, b: m.addGenConstrMin(r, x, 1.5),
    "max of variables": lambda m, r, x, b: m.addGenConstrMax(r, x),
    "and": lambda m, r, x, b: (m.addGenConstrAnd(b[0], b[1:]), m.addConstr(r == 2 * b[0] - b[1] + x[0])),
    "or": lambda m, r, x, b: (m.addGenConstrOr(b[0], b[1:]), m.addConstr(r == b[1] - 2 * b[0] - x[1])),
    "1-norm": lambda m, r, x, b: m.addGenConstrNorm(r, x, 1.0),
    "largest norm": lambda m, r, x, b: m.addGenConstrNorm(r, x, GRB.INFINITY),
    "pwl": lambda m, r, x, b: m.addGenConstrPWL(x[0], r, [-1, 0, 1], [2, 0, 1]),
    "indicator": lambda m, r, x, b: (m.addConstr((b[0] == 1) >> (x[0] <= -1)), m.addConstr(r == x[0] - b[0])),
    "SOS1": lambda m, r, x, b: (m.addSOS(GRB.SOS_TYPE1, x), m.addConstr(r == x[0] + x[1] + x[2])),
    "SOS2": lambda m, r, x, b: (m.addSOS(GRB.SOS_TYPE2, x, [3, 1, 2]), m.addConstr(r == x[0] + x[1] + x[2])),
}


@pytest.mark.parametrize("sense", [GRB.MINIMIZE, GRB.MAXIMIZE])
@pytest.mark.parametrize("kind", GENERAL)
def test_general_constraints_of_gurobi(kind, sense):
    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        x = [model.addVar(lb=-2.0 - k, ub=3.0, name=f"x{k}") for k in range(3)]
        b = [model.addVar(vtype="B", name=f"b{k}") for k in range(3)]
        r = model.addVar(lb=-20.0, ub=20.0, name="r")
        GENERAL[kind](model, r, x, b)
        model.addConstr(x[0] + 2 * x[1] - x[2] <= 2.5)
        model.setObjective(r + 0.3 * x[0] - 0.2 * x[1] + 0.1 * x[2] - 0.4 * b[1], sense)
        ours, theirs = answers(model)
        assert ours == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("sense", [GRB.MINIMIZE, GRB.MAXIMIZE])
def test_piecewise_costs_of_gurobi(sense):
    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        x = model.addVar(lb=-3.0, ub=4.0, name="x")
        y = model.addVar(ub=2.0, name="y")
        model.setObjective(0.5 * y, sense)
        model.setPWLObj(x, [-1.0, 0.0, 2.0], [1.0, -1.0, 4.0])
        model.addConstr(x + y >= -2.0)
        ours, theirs = answers(model)
        assert ours == pytest.approx(theirs, abs=1e-6)


def scip_model():
    model = pyscipopt.Model()
    model.hideOutput()
    x = [model.addVar(lb=-1.0, ub=2.0 + k, name="same") for k in range(3)]
    b = [model.addVar(vtype="B", name="same") for _ in range(3)]
    model.addCons(x[0] + x[1] + x[2] <= 5)
    model.setObjective(x[0] + 1.1 * x[1] + x[2] + 0.3 * b[0] + 0.4 * b[1] + 0.5 * b[2], "maximize")
    return model, x, b


SCIP = {
    "SOS1": lambda m, x, b: m.addConsSOS1(x, [1, 2, 3]),
    "SOS2": lambda m, x, b: m.addConsSOS2(x, [3, 1, 2]),
    "cardinality": lambda m, x, b: m.addConsCardinality(x, 2),
    "odd": lambda m, x, b: m.addConsXor(b, True),
    "even": lambda m, x, b: m.addConsXor(b, False),
    "and": lambda m, x, b: m.addConsAnd(b[:2], b[2]),
}


@pytest.mark.parametrize("kind", SCIP)
def test_special_constraints_of_scip(kind):
    model, x, b = scip_model()
    SCIP[kind](model, x, b)
    result = dt.solve(model, log=False)
    same, x, b = scip_model()
    SCIP[kind](same, x, b)
    same.optimize()
    assert result.status == "optimal"
    assert result.objective == pytest.approx(same.getObjVal(), abs=1e-6)


def test_ordered_sets_and_piecewise_functions_of_pyomo():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 5))
    model.y = pyo.Var()
    model.curve = pyo.Piecewise(
        model.y, model.x, pw_pts=[0, 2, 5], f_rule=[3, 1, 4], pw_constr_type="EQ", pw_repn="SOS2"
    )
    model.z = pyo.Var([1, 2, 3], bounds=(0, 2))
    model.one = pyo.SOSConstraint(var=model.z, sos=1)
    model.goal = pyo.Objective(expr=model.y + 0.1 * model.x - sum(model.z[k] * k for k in model.z))
    result = dt.solve(model, log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(1.0 + 0.2 - 6.0, abs=1e-6)
    assert [round(pyo.value(model.z[k]), 6) for k in model.z] == [0.0, 0.0, 2.0]


@pytest.mark.parametrize(("kind", "best"), [(1, 3.0), (2, 5.0)])
def test_ordered_sets_of_linopy(kind, best):
    model = linopy.Model()
    x = model.add_variables(lower=0, upper=[2.0, 3.0, 2.0], coords=[range(3)], name="x")
    model.add_sos_constraints(x, sos_type=kind, sos_dim="dim_0")
    model.add_objective(x.sum(), sense="max")
    result = dt.solve(model, log=False)
    assert (result.status, result.objective) == ("optimal", pytest.approx(best))


def test_auxiliary_columns_are_nobodys():
    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        x = model.addVar(lb=-2.0, ub=3.0, name="x")
        r = model.addVar(name="r")
        model.addRange(x + r, 1.0, 4.0, name="between")
        model.addGenConstrAbs(r, x, name="size")
        reading = foreign_model(model).read()
        assert reading.mip.n_columns == 3 and len(reading.keys) == 2
        assert reading.mip.names[2].startswith("size")
        model.setObjective(r + 0.5 * x)
        result = dt.solve(model, log=False)
        slack = next(v for v in model.getVars() if v.VarName == "Rgbetween")
        assert result.value(slack) == pytest.approx(slack.X, abs=1e-6)
        assert result.value([x, r]) == pytest.approx(np.array([x.X, r.X]))


def test_a_maximum_without_a_constant_has_none():
    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        x = [model.addVar(ub=3.0) for _ in range(3)]
        model.addGenConstrMax(x[0], x[1:])
        model.addGenConstrMin(x[1], x[2:])
        assert len(foreign_model(model).read().indicators) == 2 + 1


def test_a_size_that_nothing_limits_is_kept():
    """Without bounds there is no big M: a block takes the place of rows, and points are still exact."""
    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        x = model.addVar(lb=-GRB.INFINITY, name="x")
        r = model.addVar(name="r")
        model.addGenConstrAbs(r, x)
        model.addConstr(x <= -3.0)
        model.setObjective(r)
        result = dt.solve(model, log=False)
        assert result.objective == pytest.approx(3.0, abs=1e-4)


def test_absolute_values_of_pyomo():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(-3, 3))
    model.y = pyo.Var(bounds=(-3, 3))
    model.row = pyo.Constraint(expr=abs(model.x - 2) + 0.5 * abs(model.y) <= 1)
    model.goal = pyo.Objective(expr=model.x - model.y + 0.25 * abs(model.x + model.y) + model.y**2)
    result = dt.solve(model, log=False)
    X, Y = np.meshgrid(np.linspace(-3, 3, 601), np.linspace(-3, 3, 601))
    inside = np.abs(X - 2) + 0.5 * np.abs(Y) <= 1.0 + 1e-9
    best = (X - Y + 0.25 * np.abs(X + Y) + Y**2)[inside].min()
    assert result.status == "optimal"
    assert best - 1e-3 <= result.objective <= best + 1e-6
    assert pyo.value(model.goal) == pytest.approx(result.objective, abs=1e-5)
    assert len(result.value([model.x, model.y])) == 2


def test_absolute_values_of_pyomo_are_called_what_they_are_of():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(9), bounds=(-3, 3))
    model.goal = pyo.Objective(expr=abs(model.x[0] - 2) + abs(sum(model.x.values())))
    names = foreign_model(model).read().mip.names
    assert {"abs(x[0] - 2)", "x[0] - 2"} <= set(names)
    (long,) = (name for name in names if name.startswith("abs(x[0] + x[1]") and name.endswith(" ..."))
    assert len(long) <= 60
