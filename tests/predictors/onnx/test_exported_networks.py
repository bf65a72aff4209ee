"""Networks through torch's exporters, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dovetail.core.predictor import as_predictor
from tests.conftest import FULL, volume
from tests.predictors.onnx.exported import exported, random_network
from tests.predictors.onnx.oracle import answer_of, error_of, slope_error

POINTS = 100


def compare(seed, dtype, dynamo):
    """Errors of a random network's values (relative) and slope, and who judged the values."""
    net, shape = random_network(seed, dtype)
    model = exported(net, shape, dtype, dynamo=dynamo)
    X = np.random.default_rng(seed).uniform(-2, 2, (POINTS, *shape))
    X = X.astype(np.float64 if dtype == torch.float64 else np.float32)
    rows = X.reshape(POINTS, -1).astype(np.float64)
    truth, judge = answer_of(model, X), "onnxruntime"
    if truth is None:  # it lacks many kernels in float64
        with torch.no_grad():
            truth, judge = net(torch.tensor(X)).double().numpy(), "torch"
    predictor = as_predictor(model)
    error = error_of(predictor.predict(rows), truth.reshape(POINTS, -1))
    return error, slope_error(predictor, rows[:10]), judge


def assert_like_the_oracle(seed, dtype, dynamo=False):
    error, slope, judge = compare(seed, dtype, dynamo)
    assert error < (1e-5 if dtype == torch.float32 else 1e-10), (seed, error, judge)
    assert slope < 1e-4, (seed, slope)


@pytest.mark.parametrize("chunk", range(28 if FULL else 1))
def test_random_networks(chunk):
    for seed in range(10 * chunk, 10 * chunk + 10):
        assert_like_the_oracle(seed, torch.float64 if chunk % 4 == 3 else torch.float32)


@volume("seconds for each; test_model.py takes a network through it")
@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1030))
def test_random_networks_through_the_new_exporter(seed):
    assert_like_the_oracle(seed, torch.float32, dynamo=True)
