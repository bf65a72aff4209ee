"""A torch layer made of given numbers: it draws none of its own."""

import numpy as np
import torch

from dovetail.core.linear import as_linear


def test_it_has_the_numbers_and_draws_none():
    weight, bias = np.array([[1.0, -2.0]]), np.array([0.5])
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    layer = as_linear(weight, bias)
    assert torch.equal(torch.rand(1), expected)
    assert type(layer) is torch.nn.Linear
    assert layer(torch.tensor([[3.0, 1.0]], dtype=torch.float64)).item() == 1.5
    weight[0, 0] = 9.0
    assert layer.weight[0, 0].item() == 1.0
