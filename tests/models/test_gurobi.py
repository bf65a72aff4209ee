"""gurobipy: ranges come back as one row, indicators become rows, and what is not taken is named."""

import gurobipy as gp
import numpy as np
import pytest

import dovetail as dt
from dovetail.core.foreign import locate
from dovetail.modelling.snapshot import take_snapshot
from dovetail.models import foreign_model
from tests.contexts import by_scipy

GRB = gp.GRB


@pytest.fixture
def model():
    return gp.Model(env=gp.Env(params={"OutputFlag": 0}))


def test_a_range_is_one_row_without_a_slack(model):
    x = model.addVars(2, name="x")
    model.addRange(x[0] + 2 * x[1], 1, 4, name="both sides")
    model.addRange(x[0] - x[1] + 3, 1, 4)
    reading = foreign_model(model).read()
    assert model.NumVars == 4
    assert reading.mip.names == ("x[0]", "x[1]")
    assert reading.mip.row_lower.tolist() == [1.0, -2.0]
    assert reading.mip.row_upper.tolist() == [4.0, 1.0]
    assert foreign_model(model).read(rows=False).mip.names == reading.mip.names
    model.getVarByName("Rgboth sides").UB = GRB.INFINITY  # the range opened on one side
    assert foreign_model(model).read().mip.row_lower[0] == -np.inf


@pytest.mark.parametrize("spoil", ["cost", "second row", "coefficient", "integer", "name", "indicator"])
def test_a_column_that_is_more_than_a_slack_is_kept(model, spoil):
    x = model.addVars(2, ub=5.0, name="x")
    binary = model.addVar(vtype="B")
    row = model.addRange(x[0] + 2 * x[1], 1, 4, name="r")
    model.update()
    slack = model.getVarByName("Rgr")
    if spoil == "cost":
        slack.Obj = 1.0
    elif spoil == "second row":
        model.addConstr(slack + x[0] <= 9)
    elif spoil == "coefficient":
        model.chgCoeff(row, slack, 2.0)
    elif spoil == "integer":
        slack.VType = "I"
    elif spoil == "name":
        row.ConstrName = "other"
    else:
        model.addGenConstrIndicator(binary, True, slack + x[1] <= 4)
    mip = foreign_model(model).read().mip
    assert "Rgr" in mip.names
    assert mip.n_columns == 4


def test_changes_that_wait_for_an_update_are_seen(model):
    x = model.addVar(name="x")
    row = model.addConstr(2 * x <= 5, name="r")
    assert foreign_model(model).read().mip.A.toarray().tolist() == [[2.0]]
    model.chgCoeff(row, x, 7.0)
    row.RHS = 6.0
    mip = foreign_model(model).read().mip
    assert mip.A.toarray().tolist() == [[7.0]]
    assert mip.row_upper.tolist() == [6.0]


def test_binaries_are_0_or_1_whatever_their_bounds(model):
    b = model.addVar(vtype="B")
    model.update()
    b.LB, b.UB = -2.0, 7.0
    mip = foreign_model(model).read().mip
    assert (mip.lower[0], mip.upper[0], mip.integer[0]) == (0.0, 1.0, True)


def test_indicators_are_rows(model):
    x = model.addVars(3, lb=-4.0, ub=6.0, name="x")
    b = model.addVars(3, vtype="B", name="b")
    model.addGenConstrIndicator(b[0], True, x[0] + x[1] <= 1, name="on")
    model.addConstr((b[1] == 0) >> (x[1] - 2 * x[2] + 1 >= 3))
    model.addConstr((b[2] == 1) >> (x[0] == x[2]))
    model.addRange(b.sum(), 1, 2, name="some")
    model.setObjective(3 * x[0] + x[1] + 2 * x[2] - b[1] * 2 + b[0] + b[2] * 5, GRB.MAXIMIZE)
    mip = take_snapshot(model).problem.mip
    assert mip.n_columns == 6
    assert "on" in mip.row_names
    model.optimize()
    assert by_scipy(mip)[0] == pytest.approx(model.ObjVal, abs=1e-4)


def spoilt(kind, model):
    x = [model.addVar(name=name, ub=9.0) for name in "abcd"]
    model.addConstr(x[0] + x[1] <= 3)
    if kind == "nonlinear":
        model.addGenConstrExp(x[0], x[1], name="growth")
    elif kind == "norm":
        model.addGenConstrNorm(x[0], x[1:], 2.0, name="length")
    elif kind == "jump":
        model.addGenConstrPWL(x[0], x[1], [0, 1, 1, 2], [0, 1, 2, 3], name="stairs")
    elif kind == "endless":
        x[3].UB = GRB.INFINITY
        model.setPWLObj(x[3], [0, 1, 2], [0, 1, 4])
    elif kind == "objectives":
        model.setObjectiveN(x[0], 0)
        model.setObjectiveN(x[1], 1)
    elif kind == "weighted":
        model.setObjectiveN(x[0], 0, weight=-1.0)
    elif kind == "scenarios":
        model.NumScenarios = 2
    else:
        x[2].VType = kind


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("nonlinear", "growth is a function constraint.*predictor"),
        ("norm", "length is a 2-norm.*quadratic expression"),
        ("jump", "stairs has a jump"),
        ("endless", "piecewise linear in d, which.*finite bounds"),
        ("objectives", "2 objectives"),
        ("weighted", "setObjectiveN"),
        ("scenarios", "2 scenarios"),
        ("S", "c is semi"),
        ("N", "c is semi"),
    ],
)
def test_what_is_not_taken_is_named(model, kind, named):
    spoilt(kind, model)
    with pytest.raises(dt.UnsupportedError, match=named):
        foreign_model(model).read()


def test_containers_of_gurobipy_keep_their_shape(model):
    foreign = foreign_model(model)
    X = model.addMVar((2, 3), name="X")
    assert foreign.unpack(X).shape == (2, 3)
    assert foreign.unpack(X.T).shape == (3, 2)
    assert foreign.unpack(X[0]).shape == (3,)
    assert foreign.unpack(X[0, 1]).shape == ()
    assert foreign.unpack(model.addMVar((2, 2, 2))).shape == (2, 2, 2)
    assert foreign.unpack([X[0], X[1], [1.0, 2, 3]]).shape == (3, 3)
    assert foreign.unpack(model.addVars(4)).shape == (4,)
    assert foreign.unpack(model.addVars(2, 3)).shape == (2, 3)
    assert foreign.unpack(model.addVars([(0, 1), (1, 0)])).shape == (2,)
    reading = foreign.read()
    names = [reading.mip.names[j] for j in locate(foreign, reading, "X", foreign.unpack(X.T)).column.ravel()]
    assert names == ["X[0,0]", "X[1,0]", "X[0,1]", "X[1,1]", "X[0,2]", "X[1,2]"]


def test_expressions_and_matrix_expressions_are_refused(model):
    foreign = foreign_model(model)
    X = model.addMVar((2, 2))
    x = X.tolist()[0][0]
    for wrong in (x + 1, 2 * x, x * x, X + 1, X.sum(), X @ X[0], "x"):
        with pytest.raises(dt.ModelError):
            foreign.key(foreign.unpack([wrong])[0])
