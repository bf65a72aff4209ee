"""Shapes are the peers': two axes whatever was passed, labels where there were some, pictures as such."""

import os

import gurobipy as gp
import numpy as np
import pandas as pd
import pytest
import torch
from pyscipopt import Model

import dovetail as dt
from tests.modelling.tiny import in_gurobi, times

os.environ.setdefault("KERAS_BACKEND", "torch")


def solve(model, target=None):
    return dt.solve(model, gap=1e-3, target=target, log=False)


@pytest.mark.parametrize("given", ["vector", "list", "single", "table", "dictionary"])
def test_gurobi(given):
    """As gurobi-machinelearning has them: an MVar of two axes."""
    model = in_gurobi()
    x, y = model.addMVar((1, 2), ub=[3.0, 1.0]), model.addMVar((1, 1), lb=-9.0)
    model.setObjective(y.sum())
    inputs, outputs = {
        "vector": (x[0], y[0]),
        "list": (x.tolist()[0], y.tolist()[0]),
        "single": (x.tolist(), y[0, 0].item()),
        "table": (x, y),
        "dictionary": (dict(enumerate(x.tolist()[0])), y),
    }[given]
    constr = dt.add_predictor_constr(model, times(-1.0, 1.0), inputs, outputs)
    assert isinstance(constr.input, gp.MVar) and isinstance(constr.output, gp.MVar)
    assert constr.input.shape == (1, 2) and constr.output.shape == (1, 1)
    solve(model)
    assert constr.input_values.tolist() == [[3.0, 0.0]] and constr.output_values.tolist() == [[-3.0]]
    assert constr.get_error().shape == (1, 1) and constr.input.X.tolist() == [[3.0, 0.0]]


def test_one_output_each_of_several_samples():
    model = in_gurobi()
    x, y = model.addMVar((3, 1), ub=2.0), model.addMVar(3, lb=-9.0)
    model.setObjective(y.sum())
    constr = dt.add_predictor_constr(model, times(-1.0), x, y)
    model.addConstr(constr.output[:, 0] >= -1.0)
    solve(model)
    assert constr.output_values == pytest.approx(-1.0) and constr.output.shape == (3, 1)


def test_scip():
    model = Model()
    model.hideOutput()
    x, y = [model.addVar(ub=1.0) for _ in range(2)], [model.addVar(lb=None)]
    constr = dt.add_predictor_constr(model, times(1.0, 2.0), x, y)
    model.setObjective(constr.output[0, 0], "maximize")
    solve(model)
    assert constr.input.shape == (1, 2) and constr.output_values.tolist() == [[3.0]]
    assert model.getVal(constr.input).tolist() == [[1.0, 1.0]]


def test_frames_and_series():
    model = in_gurobi()
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["p", "q"])
    frame["x"] = model.addMVar(2, ub=1.0).tolist()
    row = frame.loc["q"]
    many = dt.add_predictor_constr(model, times(1.0, 1.0), frame)
    one = dt.add_predictor_constr(model, times(1.0, 1.0), row)
    unnamed = dt.add_predictor_constr(model, times(1.0, 1.0), pd.Series([3.0, frame.x["p"]]))
    model.setObjective(many.output.sum() + one.output.sum(), gp.GRB.MAXIMIZE)
    solve(model)
    pd.testing.assert_frame_equal(
        many.input_values, pd.DataFrame({"a": [1.0, 2.0], "x": [1.0, 1.0]}, index=["p", "q"])
    )
    pd.testing.assert_frame_equal(one.input_values, pd.DataFrame({"a": [2.0], "x": [1.0]}, index=["q"]))
    assert many.output_values == pytest.approx(np.array([[2.0], [3.0]]))
    assert unnamed.input_values.index.tolist() == [0]


def brightness():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(2, 1, 2, dtype=torch.float64), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(4, 1, dtype=torch.float64))  # fmt: skip
    with torch.no_grad():
        for part, value in ((net[0], 0.25), (net[3], 1.0)):
            part.weight[:], part.bias[:] = value, 0.0
    return net.eval()


def test_pictures():
    """(n, c, h, w) variables through a CNN."""
    model = in_gurobi()
    x = model.addMVar((2, 2, 3, 3), ub=1.0)
    net = brightness()
    constr = dt.add_predictor_constr(model, net, x)
    model.addConstr(x.sum() <= 2.0)
    model.setObjective(constr.output.sum(), gp.GRB.MAXIMIZE)
    solve(model, target=2.0 - 1e-6)
    assert model.ObjVal == pytest.approx(2.0)
    assert x.X.shape == (2, 2, 3, 3) and constr.input_values.shape == (2, 18)
    picture = torch.tensor(x.X, dtype=torch.float64)
    assert constr.output_values == pytest.approx(net(picture).detach().numpy())


def test_pictures_of_functions_and_of_keras():
    import keras

    keras.utils.set_random_seed(0)
    model = in_gurobi()
    x = model.addMVar((1, 3, 3, 1), ub=1.0)
    cnn = keras.Sequential([keras.Input((3, 3, 1)), keras.layers.Conv2D(1, 2, activation="relu")])
    seen = dt.add_predictor_constr(model, cnn, x)
    mean = dt.add_predictor_constr(model, lambda X: X.mean(axis=(1, 2)), x)
    model.setObjective(seen.output.sum() - mean.output.sum(), gp.GRB.MAXIMIZE)
    solve(model, target=0.0)
    assert seen.output.shape == (1, 4) and mean.output_values[0, 0] == pytest.approx(x.X.mean())
    assert seen.output_values == pytest.approx(cnn.predict(x.X, verbose=0).reshape(1, 4), abs=1e-5)
    with pytest.raises(dt.PredictorError, match="failed on a batch"):
        dt.add_predictor_constr(model, brightness(), x.reshape(1, 9))
    assert np.all(mean.get_error() <= 1e-9)
    with pytest.raises(
        dt.PredictorError, match=r"samples of shape \(3, 3, 1\), and each .* of shape \(3, 1\)"
    ):
        dt.add_predictor_constr(model, cnn, x[0])


def test_pictures_with_their_channels_last():
    model = in_gurobi()
    picture = np.random.default_rng(0).uniform(size=(1, 3, 3, 2))
    x = model.addMVar(picture.shape, lb=picture, ub=picture)
    net = brightness()
    constr = dt.add_predictor_constr(model, net, x)
    solve(model)
    as_torch_has_it = torch.tensor(picture).permute(0, 3, 1, 2)
    assert constr.output_values == pytest.approx(net(as_torch_has_it).detach().numpy())
