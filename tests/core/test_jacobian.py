"""Jacobians of a batch against differences, and of what does not depend on its inputs."""

import pytest
import torch

from dovetail.core.jacobian import jacobian
from tests.small import random_mlp


def test_every_sample_has_its_own_derivatives():
    net = random_mlp(3, 2, seed=1)
    u = torch.randn((5, 3), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = jacobian(net(u.requires_grad_(True)), u)
    assert found.shape == (5, 2, 3)
    for i in range(5):
        truth = torch.autograd.functional.jacobian(lambda x: net(x[None])[0], u[i].detach())
        assert found[i].numpy() == pytest.approx(truth.numpy(), abs=1e-12)


def test_what_does_not_depend_on_the_inputs_has_the_derivative_0():
    u = torch.ones((2, 3), dtype=torch.float64, requires_grad=True)
    free = torch.ones((2, 1), dtype=torch.float64, requires_grad=True)
    constant = torch.ones((2, 1), dtype=torch.float64)
    assert torch.all(jacobian(constant, u) == 0.0)
    assert torch.all(jacobian(2.0 * free, u) == 0.0)
