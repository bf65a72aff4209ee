"""Pyomo: every active variable is a column, ranges are one row, and what is not taken is named."""

import numpy as np
import pyomo.environ as pyo
import pyomo.gdp as gdp
import pytest

import dovetail as dt
from dovetail.models import foreign_model
from tests.tools import named


@pytest.fixture
def model():
    return pyo.ConcreteModel()


def test_domains_and_bounds(model):
    model.low = pyo.Param(mutable=True, initialize=-1)
    model.a = pyo.Var(domain=pyo.NonNegativeReals, bounds=(-5, 8))
    model.b = pyo.Var(domain=pyo.Binary)
    model.c = pyo.Var(domain=pyo.PositiveIntegers)
    model.d = pyo.Var(bounds=(model.low * 2, None))
    model.e = pyo.Var(domain=pyo.UnitInterval)
    model.f = pyo.Var(domain=pyo.RangeSet(2, 6))
    mip = foreign_model(model).read().mip
    assert mip.names == tuple("abcdef")
    assert mip.lower.tolist() == [0, 0, 1, -2, 0, 2]
    assert mip.upper.tolist() == [8, 1, np.inf, np.inf, 1, 6]
    assert mip.integer.tolist() == [False, True, True, False, False, True]
    model.low = -7
    assert foreign_model(model).read().mip.lower[3] == -14


@pytest.mark.parametrize("domain", [[1, 5, 7], pyo.RangeSet(0, 10, 2), pyo.Any])
def test_domains_with_holes_are_named(model, domain):
    model.odd = pyo.Var(domain=domain)
    with pytest.raises(dt.UnsupportedError, match="odd has the domain"):
        foreign_model(model).read()


def test_unused_and_fixed_variables_are_columns(model):
    model.x = pyo.Var([1, 2, 3], domain=pyo.Integers, bounds=(0, 9))
    model.idle = pyo.Var()
    model.row = pyo.Constraint(expr=(1, 2 * model.x[1] + 3 * model.x[2] + 4, 30))
    model.goal = pyo.Objective(expr=model.x[1] + 5 * model.x[2] + 1, sense=pyo.maximize)
    model.x[2].fix(0.5)
    model.x[3].fix(12)
    mip = foreign_model(model).read().mip
    assert mip.names == ("x[1]", "x[2]", "x[3]", "idle")
    assert mip.lower.tolist() == [0.0, 0.5, 12.0, -np.inf]
    assert mip.upper.tolist() == [9.0, 0.5, 12.0, np.inf]
    assert mip.integer.tolist() == [True, False, False, False]  # a fixed variable is just a number
    assert (mip.row_lower.tolist(), mip.row_upper.tolist()) == ([-4.5], [24.5])
    x = np.array([3.0, 0.5, 12.0, 0.0])
    assert mip.objective(x) == 3.0 + 2.5 + 1.0
    model.x[2].unfix()
    assert foreign_model(model).read().mip.A.toarray().tolist() == [[2.0, 3.0, 0.0, 0.0]]


def test_a_product_with_a_fixed_variable_is_linear(model):
    model.x = pyo.Var([1, 2])
    model.row = pyo.Constraint(expr=model.x[1] * model.x[2] <= 6)
    assert foreign_model(model).read().quadratics
    model.x[1].fix(3)
    reading = foreign_model(model).read()
    assert not reading.quadratics and reading.mip.A.toarray().tolist() == [[0.0, 3.0]]


def test_rows_without_variables_are_no_errors(model):
    model.x = pyo.Var()
    model.y = pyo.Var()
    model.row = pyo.Constraint(expr=model.x >= 5)
    model.x.fix(2)
    mip = foreign_model(model).read().mip
    assert mip.A.nnz == 0
    assert (mip.row_lower.tolist(), mip.row_upper.tolist()) == ([3.0], [np.inf])  # infeasible, and says so


def test_mutable_parameters_and_coefficients(model):
    model.p = pyo.Param(mutable=True, initialize=2.0)
    model.x = pyo.Var()
    model.part = pyo.Expression(expr=model.p * model.x + 1)
    model.row = pyo.Constraint(expr=model.part <= 3 * model.p)
    model.goal = pyo.Objective(expr=model.part - model.p)
    foreign = foreign_model(model)
    for value in (2.0, 5.0):
        model.p = value
        mip = foreign.read().mip
        assert mip.A.toarray().tolist() == [[value]]
        assert mip.row_upper.tolist() == [3 * value - 1]
        assert (mip.cost.tolist(), mip.offset) == ([value], 1 - value)
        assert foreign.unpack([model.x, model.p])[1] == value


def test_blocks_and_what_is_deactivated(model):
    model.x = pyo.Var(bounds=(0, 1))
    model.b = pyo.Block([1, 2])
    for i in (1, 2):
        model.b[i].y = pyo.Var()
        model.b[i].row = pyo.Constraint(expr=model.b[i].y + model.x >= i)
    model.off = pyo.Constraint(expr=model.x**2 <= 1)
    model.off.deactivate()
    model.goal = pyo.Objective(expr=model.x)
    model.spare = pyo.Objective(expr=-model.x)
    with pytest.raises(dt.UnsupportedError, match=r"2 active objectives, goal and spare"):
        foreign_model(model).read()
    model.spare.deactivate()
    mip = foreign_model(model).read().mip
    assert mip.names == ("x", "b[1].y", "b[2].y")
    assert mip.row_names == ("b[1].row", "b[2].row")
    model.b[2].deactivate()
    assert foreign_model(model).read().mip.names == ("x", "b[1].y")
    model.goal.deactivate()
    assert foreign_model(model).read().mip.cost.tolist() == [0.0, 0.0]


def test_a_block_of_a_model(model):
    model.x = pyo.Var()
    model.b = pyo.Block([1])
    model.b[1].y = pyo.Var()
    model.b[1].row = pyo.Constraint(expr=model.b[1].y + 2 * model.x >= 1)
    foreign = foreign_model(model.b[1])
    mip = foreign.read().mip
    assert mip.names == ("b[1].y", "x")
    assert mip.A.toarray().tolist() == [[1.0, 2.0]]
    made = foreign.create((1, 1), binary=True, name="y")
    assert made.parent_block() is model.b[1]
    foreign.discard(made)
    assert foreign.read().mip.names == mip.names


def test_references_are_no_columns_of_their_own(model):
    model.x = pyo.Var([1, 2])
    model.also = pyo.Reference(model.x)
    assert foreign_model(model).read().mip.names == ("x[1]", "x[2]")
    assert named(foreign_model(model), model.also) == ["x[1]", "x[2]"]


def test_containers_of_pyomo_keep_their_shape(model):
    model.x = pyo.Var(range(2), ["a", "b", "c"])
    model.single = pyo.Var()
    model.sparse = pyo.Var([(0, 1), (1, 0)])
    model.cube = pyo.Var(range(2), range(2), range(2))
    model.b = pyo.Block([1, 2], rule=lambda block, _: setattr(block, "y", pyo.Var(range(3))))
    model.constant = pyo.Param([1, 2], initialize={1: 3.0, 2: 4.0})
    foreign = foreign_model(model)
    assert foreign.unpack(model.x).shape == (2, 3)
    assert foreign.unpack(model.single).shape == ()
    assert foreign.unpack(model.sparse).shape == (2,)
    assert foreign.unpack(model.cube).shape == (2, 2, 2)
    assert foreign.unpack(model.b[:].y[:]).shape == (2, 3)
    assert foreign.unpack([model.x[0, :], model.x[1, :]]).shape == (2, 3)
    assert foreign.unpack([model.single, 2.0]).shape == (2,)
    assert foreign.unpack(model.constant).tolist() == [3.0, 4.0]
    assert named(foreign, model.x) == [f"x[{i},{j}]" for i in range(2) for j in "abc"]
    assert named(foreign, model.x[:, "b"]) == ["x[0,b]", "x[1,b]"]
    assert named(foreign, [[model.b[1].y[2], model.single]]) == ["b[1].y[2]", "single"]


def spoilt(kind, model):
    model.x = pyo.Var([1, 2], bounds=(0, 5))
    if kind == "objective":
        model.goal = pyo.Objective(expr=model.x[1] ** model.x[2])
    elif kind == "sine":
        model.wave = pyo.Constraint(expr=pyo.asinh(model.x[1]) <= 0.5)
    elif kind == "limits":
        model.between = pyo.Constraint(expr=pyo.inequality(model.x[1], model.x[2], 5))
    elif kind == "sos":
        model.sos = pyo.SOSConstraint(var=model.x, sos=3)
    elif kind == "logic":
        model.flag = pyo.BooleanVar([1, 2])
        model.logic = pyo.LogicalConstraint(expr=model.flag[1].implies(model.flag[2]))
    elif kind == "gdp":
        model.one, model.other = gdp.Disjunct(), gdp.Disjunct()
        model.one.row = pyo.Constraint(expr=model.x[1] >= 1)
        model.other.row = pyo.Constraint(expr=model.x[2] >= 1)
        model.choice = gdp.Disjunction(expr=[model.one, model.other])


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("objective", r"objective goal has x\[1\]\*\*x\[2\]; the functions exp, "),
        ("sine", "constraint wave has asinh"),
        ("limits", "constraint between"),
        ("sos", "sos is a special ordered set of type 3"),
        ("logic", r"logic is a LogicalConstraint.*logical_to_linear"),
        ("gdp", r"one is a Disjunct.*gdp\.bigm"),
    ],
)
def test_what_is_not_taken_is_named(model, kind, named):
    spoilt(kind, model)
    with pytest.raises(dt.UnsupportedError, match=named):
        foreign_model(model).read()


def test_a_disjunction_that_was_transformed_is_read(model):
    spoilt("gdp", model)
    pyo.TransformationFactory("gdp.bigm").apply_to(model)
    mip = foreign_model(model).read().mip
    assert mip.n_columns == 4
    assert mip.n_rows == 3
    assert mip.integer.tolist() == [False, False, True, True]


def test_a_model_without_data():
    abstract = pyo.AbstractModel()
    abstract.x = pyo.Var(bounds=(0, 3))
    with pytest.raises(dt.UnsupportedError, match="create_instance"):
        foreign_model(abstract).read()
    assert foreign_model(abstract.create_instance()).read().mip.upper.tolist() == [3.0]


def test_values_that_are_missing_are_named(model):
    model.p = pyo.Param(mutable=True, within=pyo.Reals)
    model.x = pyo.Var()
    model.row = pyo.Constraint(expr=model.p * model.x <= 1)
    with pytest.raises(dt.ModelError, match="constraint row cannot be computed"):
        foreign_model(model).read()
    with pytest.raises(dt.ModelError, match="p is .* no value"):
        foreign_model(model).unpack([model.p])
    model.p = 1
    model.row.deactivate()
    model.x.fixed = True
    with pytest.raises(dt.ModelError, match="x.* no value"):
        foreign_model(model).read()


def test_expressions_and_members_that_were_deleted(model):
    model.x = pyo.Var([1, 2])
    model.part = pyo.Expression(expr=2 * model.x[1])
    foreign = foreign_model(model)
    for wrong in (model.x[1] + 1, model.part, model.x[1] == 1, "x"):
        with pytest.raises(dt.ModelError, match="not a variable"):
            foreign.key(foreign.unpack([wrong])[0])
    gone = model.x[2]
    del model.x[2]
    with pytest.raises(dt.ModelError, match="not a variable"):
        foreign.key(gone)
    assert foreign.read().mip.names == ("x[1]",)


def test_what_is_made_has_a_name_of_its_own(model):
    model.out = pyo.Var()
    foreign = foreign_model(model)
    made = foreign.create((2, 2), binary=False, name="out")
    assert made.name != "out"
    assert [*model.component_map()] == ["out", made.name]
    foreign.discard(made)
    assert [*model.component_map()] == ["out"]
