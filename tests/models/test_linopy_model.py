"""linopy: labels, masks and scaling come out right, and what is not taken is named."""

import warnings

import linopy
import numpy as np
import pytest
import xarray as xr

import dovetail as dt
from dovetail.modelling.snapshot import take_snapshot
from dovetail.models import foreign_model
from tests.contexts import by_scipy
from tests.tools import named


@pytest.fixture
def model():
    return linopy.Model()


def test_names_masks_and_labels_after_a_removal(model):
    x = model.add_variables(lower=0, upper=5, coords=[range(2), ["a", "b"]], name="x")
    model.add_variables(coords=[range(3)], name="gone")
    mask = xr.DataArray([True, False, True], dims="dim_0")
    k = model.add_variables(coords=[range(3)], mask=mask, name="k", integer=True, lower=-2, upper=7)
    b = model.add_variables(binary=True, name="b")
    model.add_constraints(
        x + b >= 1, name="c", mask=xr.DataArray([[True, False], [True, True]], coords=x.coords)
    )
    model.remove_variables("gone")
    foreign = foreign_model(model)
    mip = foreign.read().mip
    assert mip.names == ("x[0, a]", "x[0, b]", "x[1, a]", "x[1, b]", "k[0]", "k[2]", "b")
    assert mip.row_names == ("c[0, a]", "c[1, a]", "c[1, b]")
    assert mip.A.toarray().tolist() == [[1, 0, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0, 1]]
    assert mip.integer.tolist() == [False] * 4 + [True] * 3
    assert (mip.lower[4], mip.upper[5], mip.upper[6]) == (-2.0, 7.0, 1.0)
    assert named(foreign, x.isel(dim_0=1)) == ["x[1, a]", "x[1, b]"]
    assert named(foreign, [k.at[2], b]) == ["k[2]", "b"]
    with pytest.raises(dt.ModelError, match="masked"):
        named(foreign, k)


def test_shapes(model):
    x = model.add_variables(coords=[range(2), range(3)], name="x")
    cube = model.add_variables(coords=[range(2), range(3), range(4)], name="cube")
    foreign = foreign_model(model)
    assert foreign.unpack(x).shape == (2, 3)
    assert foreign.unpack(x.at[0, 1]).shape == ()
    assert foreign.unpack(cube).shape == (2, 3, 4)
    assert foreign.unpack([x.isel(dim_0=0), [1.0, 2.0, x.at[1, 1]]]).shape == (2, 3)
    assert foreign.unpack(foreign.unpack(x)).shape == (2, 3)  # what is kept is unpacked again
    numbers = foreign.unpack(xr.DataArray([[1.0, 2.0]]))
    assert numbers.tolist() == [[1.0, 2.0]]


def test_scaling_is_undone(model):
    x = model.add_variables(lower=-1, upper=5, coords=[range(2)], name="x")
    i = model.add_variables(lower=-1, upper=5, integer=True, name="i")
    model.add_constraints(2 * x + i <= 7, name="c", scaling=4.0)
    model.add_objective((3 * x).sum() + i, sense="max")
    plain = foreign_model(model).read().mip
    x.scaling, i.scaling, model.objective.scaling = [2.0, 8.0], 4.0, 10.0
    scaled = foreign_model(model).read().mip
    for mip in (plain, scaled):
        assert mip.A.toarray().tolist() == [[2, 0, 1], [0, 2, 1]]
        assert mip.row_upper.tolist() == [7.0, 7.0]
        assert mip.cost.tolist() == [3.0, 3.0, 1.0]
        assert (mip.lower.tolist(), mip.upper.tolist(), mip.sense) == ([-1.0] * 3, [5.0] * 3, "max")


def test_frozen_constraints_and_repeated_terms(model):
    x = model.add_variables(coords=[range(2)], name="x")
    model.add_constraints(x + 2 * x >= 1, name="c", freeze=True)
    model.add_objective((x + x).sum())
    mip = foreign_model(model).read().mip
    assert mip.A.toarray().tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert mip.cost.tolist() == [2.0, 2.0]
    assert mip.row_lower.tolist() == [1.0, 1.0]


def test_fixed_relaxed_and_changed_variables(model):
    x = model.add_variables(lower=0, upper=9, name="x", integer=True)
    c = model.add_constraints(2 * x <= 8, name="c")
    foreign = foreign_model(model)
    x.fix(4)
    assert (foreign.read().mip.lower[0], foreign.read().mip.upper[0]) == (4.0, 4.0)
    x.unfix()
    x.relax()
    c.update(coeffs=5.0)
    mip = foreign.read().mip
    assert (mip.upper[0], mip.integer[0]) == (9.0, False)
    assert mip.A.toarray().tolist() == [[5.0]]


def test_no_rows_and_no_objective(model):
    model.add_variables(name="x")
    mip = foreign_model(model).read().mip
    assert (mip.n_rows, mip.cost.tolist(), mip.sense) == (0, [0.0], "min")


def test_indicators_are_rows(model):
    x = model.add_variables(lower=0, upper=6, coords=[range(2)], name="x")
    b = model.add_variables(binary=True, coords=[range(2)], name="b")
    model.add_indicator_constraints(b, 1, x <= 2, name="on", scaling=3.0)
    model.add_indicator_constraints(b.isel(dim_0=0), 0, x.isel(dim_0=1) == 5, name="off")
    model.add_objective((x + 3 * b).sum(), sense="max")
    mip = take_snapshot(model).problem.mip
    best = max(
        x0 + x1 + 3 * (b0 + b1)
        for b0 in (0, 1)
        for b1 in (0, 1)
        for x0 in range(3 if b0 else 7)
        for x1 in range(3 if b1 else 7)
        if b0 or x1 == 5
    )
    assert by_scipy(mip)[0] == pytest.approx(best, abs=1e-4)


def test_what_is_not_taken_is_named(model):
    model.add_variables(lower=1, upper=4, semi_continuous=True, name="batch")
    with pytest.raises(dt.UnsupportedError, match="batch is semi-continuous"):
        foreign_model(model).read()


def test_a_row_that_holds_a_removed_variable(model):
    x = model.add_variables(name="x")
    model.add_variables(name="y")
    model.add_constraints(x >= 1, name="c")
    model.variables.remove("x")
    with pytest.raises(dt.ModelError, match="'c'"):
        foreign_model(model).read()


def test_expressions_and_labels_are_refused(model):
    x = model.add_variables(coords=[range(2)], name="x")
    foreign = foreign_model(model)
    for wrong in (x + 1, x.sum(), 2 * x.at[0], x * x, "x"):
        with pytest.raises(dt.ModelError, match="not a variable"):
            foreign.key(foreign.unpack([wrong])[0])
    with pytest.raises(dt.ModelError, match="pass the variable itself"):
        foreign.unpack(x.labels)


def test_made_variables_can_be_used_and_taken_back(model):
    x = model.add_variables(lower=0, upper=1, name="out")
    model.add_objective(3 * x, sense="max")
    foreign = foreign_model(model)
    made = foreign.create((2, 1), binary=False, name="out")
    assert made.name not in ("", "out")
    model.add_constraints(made.sum() + x <= 3, name="uses")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # linopy warns that it removes the row
        foreign.discard(made)
    mip = foreign.read().mip
    assert (mip.names, mip.n_rows, mip.cost.tolist(), mip.sense) == (("out",), 0, [3.0], "max")
    assert np.isfinite(mip.upper[0])
