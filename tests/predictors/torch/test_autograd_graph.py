"""What one evaluation's graph shows: kinks anywhere, the operation at the end."""

import pytest
import torch
from torch import nn

from dovetail.predictors.torch.module import ends_in_sigmoid, is_smooth


def graph(*parts):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), *parts)(torch.rand(5, 3, requires_grad=True))


@pytest.mark.parametrize(
    ("parts", "smooth", "sigmoid"),
    [
        ([], True, False),
        ([nn.ReLU()], False, None),
        ([nn.ReLU(), nn.Linear(4, 1)], False, False),
        ([nn.Tanh(), nn.Linear(4, 1), nn.Sigmoid()], True, True),
        ([nn.Tanh(), nn.Linear(4, 1), nn.Sigmoid(), nn.Flatten(0)], True, True),
        ([nn.Hardtanh(), nn.Sigmoid()], False, True),
        ([nn.Softmax(dim=1)], True, None),
    ],
)
def test_smoothness_and_the_end(parts, smooth, sigmoid):
    outputs = graph(*parts)
    assert is_smooth(outputs) == smooth
    assert ends_in_sigmoid(outputs) is sigmoid


def test_a_bias_is_looked_through_and_a_mean_of_sigmoids_is_not():
    values = graph()
    assert ends_in_sigmoid(values @ torch.rand(4, 1) + torch.rand(1)) is False
    assert ends_in_sigmoid(0.5 * torch.sigmoid(values) + 0.5 * torch.sigmoid(2.0 * values)) is None


def test_a_constant_has_no_graph():
    assert is_smooth(torch.ones(2, 1)) and ends_in_sigmoid(torch.ones(2, 1)) is None
