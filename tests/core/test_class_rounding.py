"""Classes of networks that round: no class that float32 gives is excluded by the slack of its logits."""

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core.class_rounding import block_slack, logit


def block_of(net, features, outputs):
    columns = features + outputs
    problem = dt.Problem(dt.Mip(np.zeros(columns), lower=-60.0, upper=60.0))
    threshold = 0.5 if outputs == 1 else None
    return problem.add_predictor(
        net,
        np.arange(features),
        features + np.arange(outputs),
        output_type="classification",
        threshold=threshold,
    )


def test_the_inverse_of_a_sigmoid():
    assert logit(0.5) == 0.0
    assert (logit(0.0), logit(1.0)) == (-np.inf, np.inf)
    assert 1.0 / (1.0 + np.exp(-logit(0.3))) == pytest.approx(0.3)


def test_saturation_makes_every_class_possible():
    """tanh(20) and tanh(21) are both 1.0 in float32: the first class wins although its logit is smaller."""
    net = nn.Sequential(nn.Linear(1, 2), nn.Tanh())
    with torch.no_grad():
        net[0].weight[:] = torch.tensor([[1.0], [1.05]])
        net[0].bias[:] = 0.0
    block = block_of(net, 1, 2)
    point = np.array([[20.0]])
    assert block.decode(block.predictor.predict(point)).tolist() == [[1.0, 0.0]]
    slack = block_slack(block, point, point)
    assert slack[0, 0, 1] >= 1.0  # the smaller logit may lose by 1 and still win
    middle = np.array([[0.5]])
    assert block_slack(block, middle, middle)[0, 0, 1] < 1e-4


def test_a_threshold_moves_by_rounding_only():
    net = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
    block = block_of(net, 2, 1)
    box = np.full((1, 2), -1.0), np.full((1, 2), 1.0)
    slack = block_slack(block, *box)
    assert slack.shape == (1, 2)
    assert np.all((slack > 0.0) & (slack < 1e-4))


def test_nothing_is_known_of_a_black_box():
    block = block_of(lambda X: X[:, :1] + X[:, 1:], 2, 1)
    box = np.full((1, 2), -1.0), np.full((1, 2), 1.0)
    assert np.all(np.isinf(block_slack(block, *box)))
