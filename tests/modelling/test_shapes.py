"""Arrays of variables and numbers."""

import numpy as np
import pytest
import xarray as xr

import dovetail as dt
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
