"""`start=`: what is taken, how it is completed, what is refused."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.modelling.snapshot import take_snapshot
from dovetail.run.budget import Budget
from dovetail.run.monitor import Monitor
from dovetail.solving.starts import completed, read_start
from tests.small import bowl, knapsack

NAMES = ["x[0,a]", "x[0,b]", "x[1,a]", "x[1,b]", "open", "y[0]", "y[1]"]


def problem(limit=1.0):
    """Two samples of two inputs, whose sum may be more than 1 only if something is open."""
    A = [[1.0, 1.0, 1.0, 1.0, -3.0, 0.0, 0.0]]
    mip = dt.Mip(
        [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0], A, -np.inf, limit, [0.0] * 5 + [-np.inf] * 2,
        [1.0] * 5 + [np.inf] * 2, [False] * 4 + [True] + [False] * 2, names=NAMES, sense="max",
    )  # fmt: skip
    stated = dt.Problem(mip)
    net = torch.nn.Linear(2, 1).double()
    with torch.no_grad():
        net.weight[:], net.bias[:] = torch.tensor([[1.0, 2.0]]), 0.0
    stated.add_predictor(net, [[0, 1], [2, 3]], [[5], [6]])
    return stated


def read(start, of=problem):
    return read_start(take_snapshot(of()), start).x


def filled(start):
    snapshot = take_snapshot(problem())
    budget = Budget(10.0)
    given = read_start(snapshot, start)
    return completed(given, snapshot.problem, budget, Monitor(budget), seed=0, threads=1).x


def test_names_families_and_indices():
    nan = np.nan
    expected = [0.5, nan, nan, 0.25, 1.0, nan, nan]
    given = {"x[0,a]": 0.5, "x": {(1, "b"): 0.25}, "open": 1}
    for start in (given, [*given.items()], {0: 0.5, 3: 0.25, 4: 1.0}, {**given, "y[0]": None}):
        assert np.array_equal(read(start), expected, equal_nan=True)
    assert read({"x": [[0.1, 0.2], [0.3, 0.4]]})[:4].tolist() == [0.1, 0.2, 0.3, 0.4]
    assert read({"x": 0.5})[:4].tolist() == [0.5] * 4


def test_frames():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([[0.1, 0.2], [0.3, np.nan]], columns=["a", "b"])
    assert np.array_equal(read({"x": table})[:4], [0.1, 0.2, 0.3, np.nan], equal_nan=True)
    assert read(pandas.Series({"open": 1.0, "x[1,a]": 0.5}))[[2, 4]].tolist() == [0.5, 1.0]
    outputs = pandas.DataFrame({"y": [3.0, 4.0]}, index=[0, 1])
    assert read(outputs)[5:].tolist() == [3.0, 4.0]
    wide = pandas.DataFrame([[1.0, 0.5]], columns=["open", "x[0,a]"])
    assert read(wide)[[0, 4]].tolist() == [0.5, 1.0]


def test_what_is_missing_is_completed():
    x = filled({"x[0,a]": 1.0, "x[0,b]": 1.0})  # more than 1: something has to be open
    assert x[4] == 1.0 and x[5] == 3.0 and dt.check(problem(), x).within()
    x = filled({"x": 0.5, "y": 99.0})  # outputs are those of the predictor
    assert x.tolist() == [0.5] * 4 + [1.0, 1.5, 1.5]
    assert not np.any(
        np.isnan(filled({"x": 1.0, "open": 0.0}))
    )  # violates the constraint: searches begin there


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ({"xx": 1.0}, "start names 'xx', which is no variable; did you mean 'x'"),
        ({"x": {(0, "c"): 1.0}}, r"x has no index \(0, 'c'\)"),
        ({"x": [1.0, 2.0]}, "start gives 2 values for x, which has 4 variables"),
        ({"open": "yes"}, "start gives 'yes' for open; give a number"),
        ({"open": np.inf}, "start holds infinity"),
        ({(0, 1): 1.0}, r"start names \(0, 1\)"),
        ("none.json", "start: there is no file none.json"),
    ],
)
def test_what_does_not_fit_is_named(start, said):
    with pytest.raises(dt.OptionError, match=said):
        dt.solve(problem(), start=start, log=False)


def test_a_result_file_and_a_checkpoint(tmp_path):
    result = dt.solve(problem(), log=False, checkpoint=tmp_path / "run.dove")
    (tmp_path / "s.json").write_text(result.to_json())
    for file in ("s.json", "run.dove"):
        assert np.array_equal(read(tmp_path / file), result.x)
        assert np.array_equal(read(str(tmp_path / file)), result.x)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(dt.OptionError, match="start: .*bad.json"):
        read(tmp_path / "bad.json")


def test_a_result_of_a_similar_problem_is_taken_by_name():
    other = dt.Problem(dt.Mip([1.0, 1.0, 1.0], upper=1.0, names=["open", "z", "x[1,b]"], sense="max"))
    x = read(dt.solve(other, log=False))
    assert np.array_equal(x, [np.nan] * 3 + [1.0, 1.0] + [np.nan] * 2, equal_nan=True)
    with pytest.raises(dt.OptionError, match="the result of another problem"):
        read(dt.solve(knapsack(), log=False))
    assert read(dt.solve(bowl(), log=False), bowl).shape == (bowl().mip.n_columns,)


def model_of(tool):
    """A model, its variables, and how a user gives them values."""
    if tool == "pyomo":
        pyo = pytest.importorskip("pyomo.environ")
        model = pyo.ConcreteModel()
        model.x = pyo.Var(range(3), bounds=(0, 1))
        model.y = pyo.Var()
        model.goal = pyo.Objective(expr=model.y + model.x[2], sense=pyo.maximize)
        model.x[0].value, model.x[1].value = 0.25, 0.5
        return model, [model.x[0], model.x[1]], model.y, {model.x: {0: 0.25, 1: 0.5}}
    if tool == "linopy":
        linopy = pytest.importorskip("linopy")
        model = linopy.Model()
        x, y = model.add_variables(0, 1, coords=[range(3)], name="x"), model.add_variables(name="y")
        model.add_objective(y + x.sel(dim_0=2), sense="max")
        x.solution = x.labels.copy(data=[0.25, 0.5, np.nan])
        return model, x[:2], y, {"x": [0.25, 0.5, None]}
    if tool == "highspy":
        highspy = pytest.importorskip("highspy")
        model = highspy.Highs()
        model.silent()
        x = model.addVariables(3, lb=0, ub=1, name_prefix="x")
        y = model.addVariable(lb=-highspy.kHighsInf, name="y")
        model.setObjective(y + x[2], highspy.ObjSense.kMaximize)
        solution = highspy.HighsSolution()
        solution.col_value = [0.25, 0.5, 0.0, 0.0]
        model.setSolution(solution)
        return model, x[:2], y, [(x[0], 0.25), (x[1], 0.5)]
    if tool == "pyscipopt":
        pyscipopt = pytest.importorskip("pyscipopt")
        model = pyscipopt.Model()
        x, y = model.addMatrixVar(3, lb=0, ub=1, name="x"), model.addVar(lb=None, name="y")
        model.setObjective(y + x[2], "maximize")
        known = model.createOrigSol()
        for k, value in enumerate((0.25, 0.5, 0.0)):
            model.setSolVal(known, x[k], value)
        model.addSol(known)
        return model, x[:2], y, [(x[:2], [0.25, 0.5])]
    gurobipy = pytest.importorskip("gurobipy")
    model = gurobipy.Model(env=gurobipy.Env(params={"OutputFlag": 0}))
    x, y = model.addVars(3, ub=1, name="x"), model.addVar(lb=-gurobipy.GRB.INFINITY, name="y")
    model.setObjective(y + x[2], gurobipy.GRB.MAXIMIZE)
    model.update()
    x[0].Start, x[1].Start = 0.25, 0.5
    return model, [x[0], x[1]], y, {x[0]: 0.25, x[1]: 0.5}


@pytest.mark.parametrize("tool", ["pyomo", "linopy", "highspy", "pyscipopt", "gurobipy"])
def test_values_that_a_model_holds_and_variables_with_values(tool):
    model, inputs, output, given = model_of(tool)
    net = torch.nn.Linear(2, 1).double()
    dt.add_predictor_constr(model, net, inputs, output)
    for start in (model, given):
        snapshot = take_snapshot(model)
        x = read_start(snapshot, start).x
        assert x[:2].tolist() == [0.25, 0.5], start
    result = dt.solve(model, start=model, time_limit=5, log=False)
    assert result.status == "optimal"
    assert result.trace.incumbents[0].source == "start"


@pytest.mark.parametrize("tool", ["pyomo", "linopy", "highspy", "pyscipopt", "gurobipy"])
def test_the_values_of_another_model_and_its_result_are_taken_by_name(tool):
    (yesterday, inputs, output, _), (today, *others) = model_of(tool), model_of(tool)
    for model, read_vars, made in ((yesterday, inputs, output), (today, *others[:2])):
        dt.add_predictor_constr(model, torch.nn.Linear(2, 1).double(), read_vars, made)
    assert read_start(take_snapshot(today), yesterday).x[:2].tolist() == [0.25, 0.5]
    result = dt.solve(yesterday, time_limit=5, log=False)
    assert np.array_equal(read_start(take_snapshot(today), result).x, result.x)


def test_a_model_without_values_says_so():
    pyo = pytest.importorskip("pyomo.environ")
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    model.goal = pyo.Objective(expr=model.x)
    with pytest.raises(dt.OptionError, match="no variable of this Pyomo model holds a value"):
        dt.solve(model, start=model, log=False)
    other = pyo.ConcreteModel()
    other.x = pyo.Var()
    with pytest.raises(dt.OptionError, match="start: .* is not a variable of this Pyomo model"):
        dt.solve(model, start=[(other.x, 1.0)], log=False)


def test_the_log_says_what_became_of_the_start(capsys):
    dt.solve(problem(), start={"x": 0.25}, time_limit=5)
    said = " ".join(capsys.readouterr().out.split())
    assert "start 4 of 7 variables are given; the MIP without predictors completes them" in said
    assert "start a solution with objective" in said
    dt.solve(problem(0.5), start={"x": 1.0}, time_limit=5)
    assert "start no solution, it violates constraint row[0] by 3.5e+00; searches begin near it" in " ".join(
        capsys.readouterr().out.split()
    )
