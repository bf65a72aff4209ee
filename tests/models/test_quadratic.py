"""Quadratic objectives and rows of every tool: the same optimum as the tool's own, or as in closed form."""

import gurobipy as gp
import highspy
import linopy
import numpy as np
import pyomo.environ as pyo
import pyscipopt
import pytest

import dovetail as dt
from dovetail.models import foreign_model

Q = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.5]])
COST = np.array([-4.0, -1.0, 0.5])
"""x'Qx + COST'x + 1, over [0, 4]^3 with the sum of x at least 2: convex, x[0] and x[1] mixed."""


def of_gurobi():
    model = gp.Model(env=gp.Env(params={"OutputFlag": 0}))
    x = model.addMVar(3, ub=4.0, name="x")
    model.setObjective(x @ Q @ x + COST @ x + 1.0)
    model.addConstr(x.sum() >= 2.0)
    return model


def of_pyomo():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), bounds=(0, 4))
    square = sum(Q[i, j] * model.x[i] * model.x[j] for i in range(3) for j in range(3))
    model.goal = pyo.Objective(expr=square + sum(COST[i] * model.x[i] for i in range(3)) + 1)
    model.row = pyo.Constraint(expr=sum(model.x.values()) >= 2)
    return model


def of_linopy():
    model = linopy.Model()
    x = [model.add_variables(lower=0, upper=4, name=f"x{i}") for i in range(3)]
    square = sum(Q[i, j] * (x[i] * x[j]) for i in range(3) for j in range(3))
    model.add_objective(square + sum(COST[i] * x[i] for i in range(3)))
    model.add_constraints(x[0] + x[1] + x[2] >= 2)
    return model


def of_highs():
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    x = [model.addVariable(0, 4) for _ in range(3)]
    model.addConstr(x[0] + x[1] + x[2] >= 2)
    model.minimize(sum(float(c) * v for c, v in zip(COST, x, strict=True)) + 1.0)
    hessian = highspy.HighsHessian()
    hessian.dim_, hessian.format_ = 3, highspy.HessianFormat.kTriangular
    lower = np.tril(2.0 * Q)
    column, row = np.nonzero(lower.T)
    hessian.start_ = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=3))])
    hessian.index_, hessian.value_ = row, lower[row, column]
    model.passHessian(hessian)
    return model


def of_scip():
    model = pyscipopt.Model()
    model.hideOutput()
    x = [model.addVar(ub=4.0, name=f"x{i}") for i in range(3)]
    total = model.addVar(lb=None, name="total")
    square = pyscipopt.quicksum(Q[i, j] * x[i] * x[j] for i in range(3) for j in range(3))
    model.addCons(total >= square + pyscipopt.quicksum(COST[i] * x[i] for i in range(3)) + 1.0)
    model.addCons(pyscipopt.quicksum(x) >= 2.0)
    model.setObjective(total)
    return model


TOOLS = {"gurobipy": of_gurobi, "pyomo": of_pyomo, "linopy": of_linopy, "highspy": of_highs, "scip": of_scip}


@pytest.fixture(scope="module")
def best():
    """What Gurobi says."""
    model = of_gurobi()
    model.optimize()
    return model.ObjVal


@pytest.mark.parametrize("tool", TOOLS)
def test_a_convex_objective_in_every_tool(tool, best):
    model = TOOLS[tool]()
    result = dt.solve(model, log=False)
    best -= 1.0 if tool == "linopy" else 0.0  # which has no constants
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, rel=1e-6)
    if tool == "pyomo":
        assert pyo.value(model.goal) == pytest.approx(best, rel=1e-6)
    elif tool == "linopy":
        assert model.objective.value == pytest.approx(best, rel=1e-6)
    elif tool == "scip":
        assert model.getObjVal() == pytest.approx(best, rel=1e-6)
    elif tool == "gurobipy":
        assert model.ObjVal == pytest.approx(best, rel=1e-6)


def test_the_whole_triangle_of_a_hessian_is_read():
    model = of_highs()
    hessian = highspy.HighsHessian()
    hessian.dim_, hessian.format_ = 2, highspy.HessianFormat.kSquare
    hessian.start_, hessian.index_ = np.array([0, 2, 4]), np.array([0, 1, 0, 1])
    hessian.value_ = np.array([2.0, 1.0, 1.0, 4.0])
    model.passHessian(hessian)
    (terms,) = foreign_model(model).read().quadratics
    upper = np.zeros((3, 3))
    np.add.at(upper, (terms.left, terms.right), terms.coefficients)
    x = np.array([1.0, 2.0, 0.0])
    assert x @ upper @ x == pytest.approx(0.5 * (2.0 + 2 * 2.0 + 16.0))


def test_a_linopy_objective_that_is_scaled():
    model = linopy.Model()
    x = model.add_variables(lower=-9, upper=9, name="x")
    model.add_objective(3.0 * (x * x) - 6.0 * x)
    result = dt.solve(model, log=False)
    assert result.status == "optimal" and result.objective == pytest.approx(-3.0, abs=1e-6)
    assert float(x.solution) == pytest.approx(1.0, abs=1e-3)


def test_quadratic_rows_of_gurobi_and_both_senses():
    model = gp.Model(env=gp.Env(params={"OutputFlag": 0, "NonConvex": 2}))
    x = model.addMVar(2, lb=-3.0, ub=3.0)
    z = model.addVar(lb=-9.0, ub=9.0)
    model.addConstr(x @ x <= 4.0, name="disc")
    model.addConstr(x[0] * x[1] == z, name="area")
    model.addConstr(x[0] * x[0] - x[1] >= 0.5, name="hollow")
    model.setObjective(z + 0.25 * x[0].item(), gp.GRB.MAXIMIZE)
    result = dt.solve(model, time_limit=60.0, log=False, load=False)
    model.optimize()
    assert result.status == "optimal"
    assert result.objective == pytest.approx(model.ObjVal, abs=1e-5)


def test_rows_of_scip_whose_slacks_are_left_out_stay_in_their_places():
    model = pyscipopt.Model()
    model.hideOutput()
    x, y = (model.addVar(lb=-2.0, ub=2.0, name=name) for name in "xy")
    b = model.addVar(vtype="B", name="b")
    model.addConsIndicator(x <= 0.5, binvar=b, name="on")
    model.addCons(b >= 1)
    model.addCons(x * x + y * y <= 1.0, name="disc")
    model.setObjective(x + 0.1 * y, "maximize")
    result = dt.solve(model, log=False)
    assert result.objective == pytest.approx(0.5 + 0.1 * np.sqrt(0.75), abs=1e-4)
    assert model.getVal(x) == pytest.approx(0.5, abs=1e-3)


def test_a_range_slack_in_the_linear_part_of_a_quadratic_row_is_a_column():
    """It is not known by its name alone: leaving it out would put the next column in its place."""
    model = gp.Model(env=gp.Env(params={"OutputFlag": 0}))
    x = model.addVar(ub=4.0, name="x")
    model.addRange(x, 1.0, 3.0, name="r")
    model.update()
    z = model.addVar(ub=5.0, name="z")
    model.addQConstr(x * x + model.getVarByName("Rgr") <= 4.0)
    model.setObjective(x + z, gp.GRB.MAXIMIZE)
    result = dt.solve(model, time_limit=60.0, log=False, load=False)
    model.optimize()
    assert result.status == "optimal" and result.objective == pytest.approx(model.ObjVal, rel=1e-5)


@pytest.mark.parametrize("row", ["3+<x>^2+<y> <= 5", "-9 <= 3+<x>^2+<y> <= 5", "-3.5+<x>*<y>+<x>^2 <= 0"])
def test_the_constant_of_a_quadratic_row_that_scip_read_counts(row, tmp_path):
    path = tmp_path / "model.cip"
    variables = "".join(f"  [continuous] <{name}>: obj=1, original bounds=[1,9]\n" for name in "xy")
    path.write_text(
        f"STATISTICS\nOBJECTIVE\n  Sense : maximize\nVARIABLES\n{variables}CONSTRAINTS\n"
        f"  [nonlinear] <c>: {row};\nEND\n"
    )
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(str(path))
    result = dt.solve(model, time_limit=60.0, log=False, load=False)
    model.optimize()
    assert result.objective == pytest.approx(model.getObjVal(), rel=1e-4)


def test_integer_quadratics_by_enumeration():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), bounds=(-3, 3), domain=pyo.Integers)
    x = model.x
    model.goal = pyo.Objective(expr=x[0] * x[1] - 2 * x[1] * x[2] + x[2] ** 2 - 1.5 * x[0] + x[1] ** 2)
    model.row = pyo.Constraint(expr=x[0] * x[2] <= 2)
    result = dt.solve(model, log=False)
    grid = np.stack(np.meshgrid(*[np.arange(-3, 4)] * 3), -1).reshape(-1, 3)
    a, b, c = grid[grid[:, 0] * grid[:, 2] <= 2].T
    assert result.status == "optimal"
    assert result.objective == pytest.approx((a * b - 2 * b * c + c**2 - 1.5 * a + b**2).min())
