"""Arrays of variables and numbers."""

import numpy as np
import pytest
import xarray as xr

import dovetail as dt
from dovetail.core.foreign import NUMBER, Places
from dovetail.modelling.attachment import as_samples, columns_of, with_numbers
from tests.modelling.tiny import in_gurobi, solve, times


def test_strange_numbers_and_containers():
    model = in_gurobi()
    x = model.addVar(ub=1)
    net = times(1.0, 1.0)
    with pytest.raises(dt.ModelError, match="finite"):
        dt.add_predictor_constr(model, net, [[x, 10**400]])
    dt.add_predictor_constr(model, net, [[x, np.bool_(True)]])
    array = xr.DataArray(np.array([[x, 2.0]], dtype=object), dims=["sample", "feature"])
    constr = dt.add_predictor_constr(model, net, array)
    solve(model)
    assert constr.input_values[0, 1] == 2.0


@pytest.mark.parametrize(("given", "samples"), [((3,), (1, 3)), ((2, 3), (2, 3)), ((2, 3, 4), (2, 12))])
def test_samples(given, samples):
    assert as_samples(np.zeros(given)).shape == samples


def test_each_number_is_one_column():
    mip = dt.Mip([0.0, 0.0])
    inputs = Places(np.array([[1, NUMBER], [NUMBER, NUMBER]]), np.array([[0.0, 7.0], [-2.0, 7.0]]))
    wider = with_numbers(mip, [inputs])
    assert wider.lower.tolist()[2:] == wider.upper.tolist()[2:] == [-2.0, 7.0]
    assert columns_of(wider, 2, inputs).tolist() == [[1, 3], [2, 3]]
    assert with_numbers(mip, []) is mip
