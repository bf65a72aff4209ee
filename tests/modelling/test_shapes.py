"""Containers, shapes and numbers that users pass where variables are meant."""

import numpy as np
import pytest
import xarray as xr

import dovetail as dt
from tests.small import linear_net
from tests.tools import Gurobi


def test_bare_integers_are_columns():
    model = Gurobi().new()
    x, y = model.addVar(lb=7, ub=7), model.addVar(lb=-5)
    dt.add_predictor_constr(model, linear_net([0.5]), [x], [y])
    result = dt.solve(model, time_limit=5, log=False)
    again = dt.Result.from_json(result.to_json())
    assert result.value([1, 0]).tolist() == again.value([1, 0]).tolist() == [3.5, 7.0]
    assert result.value([[x, 1.5]]).tolist() == [[7.0, 1.5]]  # beside a variable a number is a number


def test_strange_numbers_and_containers():
    model = Gurobi().new()
    x = model.addVar(ub=1)
    net = linear_net([1.0, 1.0])
    with pytest.raises(dt.ModelError, match="finite"):
        dt.add_predictor_constr(model, net, [[x, 10**400]])
    dt.add_predictor_constr(model, net, [[x, np.bool_(True)]])
    array = xr.DataArray(np.array([[x, 2.0]], dtype=object), dims=["sample", "feature"])
    constr = dt.add_predictor_constr(model, net, array)
    dt.solve(model, time_limit=5, log=False)
    assert constr.input_values[0, 1] == 2.0


def test_both_sizes_are_named():
    model = Gurobi().new()
    x = model.addMVar((4, 3))
    with pytest.raises(dt.PredictorError, match=r"3 columns per sample \(shape \(4, 3\)\).*takes 2 features"):
        dt.add_predictor_constr(model, linear_net([1.0, 1.0]), x)
