"""Answers in the owner's model: its own ways of reading them work, and the model stays what it was."""

import gurobipy as gp
import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest

import dovetail as dt
from tests.modelling.tiny import in_gurobi, in_highs, solve
from tests.tools import TOOLS, Gurobi, Highs, Linopy, Pyomo, Scip, numbers

WANTED = np.array([[2.0], [1.0]])
"""Where (x - 2)^2 + (x' - 1)^2 is least."""


def away(X):
    """Squared distance of the first feature from the second."""
    return (X[:, 0] - X[:, 1]) ** 2


def small(kit):
    """Two whole numbers, and how far each is from where it should be; rows and a constant around them."""
    model = kit.new()
    x = kit.variables(model, (2, 1), 0, 3, integer=True)
    y = kit.variables(model, (2, 1), 0.0, 99.0)
    pairs = [[kit.at(x, (0, 0)), 2.0], [kit.at(x, (1, 0)), 1.0]]
    out = [[kit.at(y, (0, 0))], [kit.at(y, (1, 0))]]
    dt.add_predictor_constr(model, away, pairs, out)
    terms = [(1.0, kit.at(x, (0, 0))), (1.0, kit.at(x, (1, 0)))]
    kit.row(model, terms, -np.inf if kit.plain else 0.5, 5.0, "r")
    kit.objective(
        model, [(1.0, kit.at(y, (0, 0))), (1.0, kit.at(y, (1, 0)))], "min", 0.0 if kit.plain else 7.0
    )
    return model, x, y


def read(kit, model, x):
    """Values and objective, as a user of the tool would read them."""
    if isinstance(kit, Scip):
        return np.asarray(model.getVal(x), dtype=float), model.getObjVal()
    if isinstance(kit, Highs):
        return model.val(x), model.val(model.getObjective()[0])
    if isinstance(kit, Gurobi):
        return x.X, model.ObjVal
    if isinstance(kit, Pyomo):
        return np.array([[x[i, 0].value] for i in range(2)]), pyo.value(model.goal)
    return x.solution.values, model.objective.value


@pytest.fixture(params=TOOLS, ids=str)
def kit(request):
    return request.param


def test_the_models_own_ways_of_reading(kit, tmp_path):
    model, x, _ = small(kit)
    before = kit.text(model, tmp_path)
    result = solve(model)
    values, objective = read(kit, model, x)
    assert np.array_equal(values, WANTED) and np.array_equal(numbers(result.value(x)), WANTED)
    assert objective == pytest.approx(result.objective)
    assert np.array_equal(read(kit, model, x)[0], WANTED)  # asking the result has not taken them away
    assert kit.text(model, tmp_path) == before


def test_a_later_answer_takes_the_place_of_an_earlier_one(kit):
    model, x, y = small(kit)
    solve(model)
    kit.objective(model, [(-1.0, kit.at(y, (0, 0))), (1.0, kit.at(y, (1, 0)))], "min")
    second = solve(model)
    values, objective = read(kit, model, x)
    assert np.array_equal(values, [[0.0], [1.0]]) and objective == second.objective == -4.0


def test_not_if_it_is_not_wanted(kit):
    model, x, _ = small(kit)
    result = solve(model, load=False)
    assert not has_values(kit, model, x)
    result.load()
    assert np.array_equal(read(kit, model, x)[0], WANTED)


def has_values(kit, model, x):
    if isinstance(kit, Scip):
        return bool(model.getNSols())
    if isinstance(kit, Highs):
        return bool(model.getSolution().value_valid)
    if isinstance(kit, Gurobi):
        return bool(model.SolCount)
    if isinstance(kit, Pyomo):
        return not x[0, 0].stale
    return model.status == "ok"


def test_without_a_point_earlier_values_are_withdrawn(kit):
    model, x, _ = small(kit)
    solve(model)
    kit.at_most(model, [(1.0, kit.at(x, (0, 0)))], -1.0)
    result = solve(model)
    assert result.status is dt.Status.INFEASIBLE
    assert has_values(kit, model, x) == isinstance(kit, Scip)  # which forgets nothing
    with pytest.raises(dt.DovetailError, match="no solution to read: the status is infeasible"):
        result.load()
    with pytest.raises(dt.DovetailError, match="no solution"):
        result.values  # noqa: B018


def test_variables_that_were_removed_since():
    for kit in (Gurobi(), Pyomo(), Linopy()):
        model, x, _ = small(kit)
        other = kit.add(model, "other")
        result = solve(model)
        kit.remove(model, other)
        result.load()
        assert np.array_equal(read(kit, model, x)[0], WANTED)
    model = in_highs()
    x, y = model.addVariable(0, 3), model.addVariable(0, 3)
    result = solve(model)
    model.deleteVariable(x, y)
    with pytest.raises(dt.ModelError, match="deleted since it was solved"):
        result.load()


def test_a_problem_has_no_place_for_values():
    result = dt.solve(dt.Problem(dt.Mip([1.0])), log=False)
    for without in (result, dt.Result.from_json(result.to_json())):
        with pytest.raises(dt.DovetailError, match=r"no model to write into.*result\.values"):
            without.load()
    with pytest.raises(dt.OptionError, match="load is 'yes'"):
        dt.solve(dt.Problem(dt.Mip([1.0])), load="yes", log=False)


class TestGurobi:
    def test_parameters_are_put_back_and_nothing_is_said(self, capfd):
        model = gp.Model()
        model.Params.TimeLimit = 0.0
        x = model.addVars(["a", "b"], ub=2.0, name="x")
        model.setObjective(x["a"] - x["b"], gp.GRB.MAXIMIZE)
        model.addRange(x["a"] + x["b"], 1.0, 3.0, name="r")
        capfd.readouterr()
        result = solve(model)
        assert "Set parameter" not in capfd.readouterr().out
        assert (model.Params.TimeLimit, model.Params.OutputFlag, model.Params.FeasibilityTol) == (0, 1, 1e-6)
        assert model.getAttr("X", x) == result.value(x) == {"a": 2.0, "b": 0.0}
        assert isinstance(result.value(x), gp.tupledict)
        assert result.value(model.getVars()).tolist() == [2.0, 0.0, 1.0]  # with the slack of the range
        assert result.value("Rgr") == 1.0 and x["a"].X == 2.0
        model.update()
        assert (x["a"].LB, x["a"].UB) == (0.0, 2.0)
        with pytest.raises((AttributeError, gp.GurobiError)):
            x["a"].X  # noqa: B018

    def test_beyond_a_restricted_licence(self, caplog):
        model = in_gurobi()
        x = model.addMVar(2001, ub=1.0)
        model.setObjective(x.sum(), gp.GRB.MAXIMIZE)
        result = solve(model)
        if model.SolCount:
            pytest.skip("a licence of Gurobi without a limit on variables")
        assert "it has 2001 variables" in result.message and "it has 2001 variables" in caplog.text
        assert result.value(x).sum() == 2001.0 and set(model.getAttr("UB")) == {1.0}

    def test_errors_are_gurobis_own(self):
        model = in_gurobi()
        x, y = model.addVar(name="x"), model.addVar(name="y")
        dt.add_predictor_constr(model, away, [[x, 1.0]], [y])
        with pytest.raises((AttributeError, gp.GurobiError)) as failure:
            x.X  # noqa: B018
        assert "to_numpy" not in str(failure.value) and "columns" not in str(failure.value)


class TestScip:
    def test_indicators_have_slacks(self):
        kit = Scip()
        model = kit.new()
        x, b = kit.add(model, "x", 0, 9), model.addVar("b", vtype="B")
        model.addConsIndicator(x <= 2.0, binvar=b, name="c")
        model.setObjective(x + 3.0 * b, "maximize")
        result = solve(model)
        values = dict(zip([v.name for v in model.getVars()], result.value(model.getVars()), strict=True))
        slack = next(name for name in values if name not in ("x", "b"))
        assert (values["x"], values["b"], values[slack]) == (9.0, 0.0, 7.0)
        assert result.value(slack) == model.getVal(model.getVars()[-1]) == 7.0
        assert model.getObjVal() == 9.0

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_a_model_that_scip_was_asked_to_solve(self, caplog):
        model, x, _ = small(Scip())
        with pytest.raises(Exception, match="SCIP"):
            model.optimize()
        result = solve(model)
        assert "freeTransform" in result.message and "freeTransform" in caplog.text
        model.freeTransform()
        result.load()
        assert np.array_equal(read(Scip(), model, x)[0], WANTED)


def test_linopy_says_how_it_ended():
    model, x, _ = small(Linopy())
    solve(model)
    assert (model.status, model.termination_condition) == ("ok", "optimal")
    assert x.solution.dims == x.dims and set(model.solution) == set(model.variables)


def test_frames_in_frames_out():
    model = in_gurobi()
    frame = pd.DataFrame({"a": [0.5, 1.0]}, index=["p", "q"])
    frame["x"] = [model.addVar(ub=3.0, vtype="I", name=name) for name in frame.index]
    frame = frame[["x", "a"]]
    y = pd.Series([model.addVar(), model.addVar()], index=frame.index, name="y")
    model.setObjective(gp.quicksum(y))
    constr = dt.add_predictor_constr(model, away, frame, y)
    result = solve(model)
    assert isinstance(result.value(frame), pd.DataFrame) and isinstance(result.value(y), pd.Series)
    assert list(constr.input_values.columns) == ["x", "a"] and constr.input_values["a"].tolist() == [0.5, 1.0]
    assert constr.output_values.shape == (2, 1) and constr.output_values[1, 0] == 0.0
    assert constr.get_error().max() <= 1e-9


def test_a_dictionary_of_containers_gives_each_as_it_is():
    model, x, y = small(Pyomo())
    result = solve(model)
    found = result.value({"x": x, "y": y, "one": x[0, 0]})
    assert found == {"x": {(0, 0): 2.0, (1, 0): 1.0}, "y": {(0, 0): 0.0, (1, 0): 0.0}, "one": 2.0}
