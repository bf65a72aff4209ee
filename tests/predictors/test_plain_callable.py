"""Functions of batches: what shows of the dtype that is behind them."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.predictors.plain_callable import CallablePredictor


@pytest.fixture(scope="module")
def net():
    """Outputs of some size from terms that cancel: float32 differs by the batch."""
    torch.manual_seed(0)
    linear = [torch.nn.Linear(*sizes) for sizes in ((8, 64), (64, 64), (64, 1))]
    made = torch.nn.Sequential(linear[0], torch.nn.ReLU(), linear[1], torch.nn.ReLU(), linear[2])
    with torch.no_grad():
        made[-1].weight *= 1000.0
    return made


def in_float32(net):
    return lambda X: net(torch.tensor(X, dtype=torch.float32)).detach().numpy()


@pytest.mark.parametrize("as_list", [False, True])
def test_a_float32_network_in_a_function_is_taken(net, as_list):
    said = in_float32(net)
    function = (lambda X: said(X).tolist()) if as_list else said
    free = np.r_[np.ones(16), np.inf, np.inf]
    problem = dt.Problem(dt.Mip(np.r_[np.zeros(16), 1.0, 1.0], lower=-free, upper=free))
    block = problem.add_predictor(function, np.arange(16).reshape(2, 8), [[16], [17]])
    assert block.description.dtypes == ("float32",) and not block.description.has_float64_copy


def test_rows_that_influence_each_other_are_refused_in_float32_too():
    problem = dt.Problem(dt.Mip([0.0, 1.0]))
    with pytest.raises(dt.PredictorError, match="changes with the other samples"):
        problem.add_predictor(lambda X: (X - X.mean(axis=0)).astype(np.float32), [0], [1])


def test_numbers_that_people_write_say_nothing_of_a_dtype():
    X = np.linspace(0, 1, 16)[:, None]
    assert CallablePredictor(lambda X: np.round(X * 8) / 8).describe(X).is_float64
    assert CallablePredictor(lambda X: X / 3).describe(X).is_float64
    assert CallablePredictor(lambda X: (X / 3).astype(np.float32)).describe(X).dtypes == ("float32",)


def test_differences_of_float32_are_longer(net):
    x = torch.full((1, 8), 0.3, dtype=torch.float64, requires_grad=True)
    CallablePredictor(in_float32(net)).snapshot("cpu")(x).sum().backward()
    y = x.detach().float().requires_grad_()
    net(y).sum().backward()
    assert torch.allclose(x.grad, y.grad.double(), rtol=0.02, atol=0.02 * float(y.grad.abs().max()))
