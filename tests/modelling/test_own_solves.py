"""A model with predictors refuses the solve of its own tool, which would leave them out."""

import copy

import gurobipy as gp
import highspy
import linopy
import pyomo.environ as pyo
import pyscipopt
import pytest
from pyomo.contrib.appsi.solvers import Highs as AppsiHighs

import dovetail as dt
from tests.tools import TOOLS, Gurobi, Highs, Linopy, Pyomo, Scip

ALONE, TIED = 9.0, 1.5
"""The optimum of the model without its predictor, y <= 9, and with it, y = x / 2 and x <= 3."""


def tied(kit):
    """A model with a predictor, and what was attached."""
    model = kit.new()
    x, y = kit.add(model, "x", 0.0, 3.0), kit.add(model, "y", -9.0, ALONE)
    kit.objective(model, [(1.0, y)], "max")
    return model, dt.add_predictor_constr(model, lambda X: 0.5 * X, [x], [y], name="half")


def solve(model):
    return dt.solve(model, target=TIED - 1e-6, log=False).objective


@pytest.fixture
def told(monkeypatch):
    """What is said by an exception that PySCIPOpt prints and does not raise."""
    heard = []
    monkeypatch.setattr("sys.unraisablehook", lambda raised: heard.append(str(raised.exc_value)))
    return heard


def refusal(told, function):
    """What a call says that is refused."""
    with pytest.raises(Exception, match=".") as refused:
        function()
    return " ".join([str(refused.value), *told])


@pytest.mark.parametrize("kit", TOOLS, ids=str)
def test_the_tools_own_solve_is_refused_until_the_predictor_is_removed(kit, told):
    model, constr = tied(kit)
    other = kit.new()
    kit.objective(other, [(1.0, kit.add(other, "z", 0.0, 4.0))], "max")
    assert kit.optimum(other) == pytest.approx(4.0)  # one without predictors is solved as ever
    said = refusal(told, lambda: kit.optimum(model))
    assert "half" in said and "dovetail.solve(model)" in said and "remove()" in said
    if isinstance(kit, Scip):
        model.freeTransform()
    assert solve(model) == pytest.approx(TIED)  # which the refusal has not spoilt
    constr.remove()
    assert kit.optimum(model) == pytest.approx(ALONE)


WAYS = {
    "gurobipy by its class": (Gurobi(), lambda model: gp.Model.optimize(model)),
    "gurobipy tuning": (Gurobi(), lambda model: model.tune()),
    "gurobipy beside": (Gurobi(), lambda model: model.optimizeAsync()),
    "highspy solve": (Highs(), lambda model: model.solve()),
    "highspy maximize": (Highs(), lambda model: model.maximize(model.getObjective()[0])),
    "highspy minimize": (Highs(), lambda model: model.minimize()),
    "highspy in a thread": (Highs(), lambda model: model.startSolve()),
    "highspy by its class": (Highs(), lambda model: highspy.Highs.run(model)),
    "scip without the lock": (Scip(), lambda model: model.optimizeNogil()),
    "scip by threads": (Scip(), lambda model: model.solveConcurrent()),
    "scip by its class": (Scip(), lambda model: pyscipopt.Model.optimize(model)),
    "pyomo's appsi": (Pyomo(), lambda model: AppsiHighs().solve(model)),
    "pyomo's new interface": (Pyomo(), lambda model: pyo.SolverFactory("highs").solve(model)),
    "pyomo by a keyword": (Pyomo(), lambda model: pyo.SolverFactory("gdpopt").solve(model=model)),
    "linopy by its class": (Linopy(), lambda model: linopy.Model.solve(model, "highs")),
}


@pytest.mark.parametrize("way", WAYS)
def test_other_ways_to_solve(way, told):
    kit, solved = WAYS[way]
    model, _ = tied(kit)
    assert "dovetail.solve(model)" in refusal(told, lambda: solved(model))


def test_a_class_derived_from_the_tools(told):
    class Own(gp.Model):
        def go(self):
            super().optimize()

    model = Own(env=gp.Env(params={"OutputFlag": 0}))
    x, y = model.addVar(ub=3.0), model.addVar(ub=ALONE)
    model.setObjective(y, gp.GRB.MAXIMIZE)
    dt.add_predictor_constr(model, lambda X: 0.5 * X, [x], [y])
    assert "dovetail.solve(model)" in refusal(told, model.go)
    assert solve(model) == model.ObjVal == pytest.approx(TIED)


def test_a_predictor_of_a_block_counts_in_the_model_around_it(told):
    model = pyo.ConcreteModel()
    model.b = pyo.Block([0, 1])
    model.b[1].x, model.b[1].y = pyo.Var(bounds=(0, 3)), pyo.Var(bounds=(-9, ALONE))
    model.b[0].z = pyo.Var(bounds=(0, 4))
    model.b[0].goal = pyo.Objective(expr=model.b[0].z, sense=pyo.maximize)
    dt.add_predictor_constr(model.b[1], lambda X: 0.5 * X, model.b[1].x, model.b[1].y)
    solver = pyo.SolverFactory("appsi_highs")
    assert "dovetail.solve(model)" in refusal(told, lambda: solver.solve(model))
    solver.solve(model.b[0])  # where there is none
    assert model.b[0].z.value == pytest.approx(4.0)


COPIES = {
    "gurobipy": (Gurobi(), lambda model: model.copy()),
    "gurobipy relaxed": (Gurobi(), lambda model: model.relax()),
    "pyomo": (Pyomo(), lambda model: model.clone()),
    "linopy": (Linopy(), lambda model: model.copy()),
    "linopy by copy": (Linopy(), copy.deepcopy),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_does_not_forget_in_silence_that_it_has_no_predictors(way, told):
    kit, copied = COPIES[way]
    model, constr = tied(kit)
    for twin in (copied(model), copied(copied(model))):
        for function in (lambda: solve(twin), lambda: kit.optimum(twin)):  # noqa: B023  called at once
            assert "a copy has none of them" in refusal(told, function)
    constr.remove()
    assert kit.optimum(copied(model)) == pytest.approx(ALONE)


def test_a_copy_takes_predictors_of_its_own():
    model, _ = tied(Gurobi())
    model.update()
    twin = model.copy()
    dt.add_predictor_constr(twin, lambda X: X / 3.0, [twin.getVars()[0]], [twin.getVars()[1]])
    assert dt.solve(twin, target=1.0 - 1e-6, log=False).objective == pytest.approx(1.0)


def test_scip_cannot_mark_a_copy_and_refuses_to_make_it(told):
    model, constr = tied(Scip())
    assert "dovetail.solve(model)" in refusal(told, lambda: pyscipopt.Model(sourceModel=model))
    constr.remove()
    assert Scip().optimum(pyscipopt.Model(sourceModel=model)) == pytest.approx(ALONE)


def test_scip_takes_no_predictor_of_a_model_that_it_has_solved():
    model = Scip().new()
    x = Scip().add(model, "x")
    model.optimize()
    with pytest.raises(dt.ModelError, match="freeTransform"):
        dt.add_predictor_constr(model, lambda X: 0.5 * X, [x], [x])


def test_highspy_says_how_to_state_an_objective_without_a_solve(told):
    model, _ = tied(Highs())
    assert "setObjective" in refusal(told, lambda: model.minimize(model.getObjective()[0]))
