"""Architectures: signals that survive depth."""

import torch

from dovetail.testing.problems import ResidualNetwork, mlp


def spread(net):
    with torch.no_grad():
        return float(net(torch.randn(500, 9)).std())


def test_depth_kills_the_signal_with_torchs_own_start_and_not_with_ours():
    torch.manual_seed(0)
    assert spread(mlp(9, 1, 32, 64, init="default")) < 1e-6
    assert spread(mlp(9, 1, 32, 64)) > 1e-3
    assert spread(ResidualNetwork(9, 1, 32, 64)) > 1e-2


def test_residual_branches_start_as_nothing():
    torch.manual_seed(0)
    net = ResidualNetwork(9, 1, 4, 8)
    x = torch.randn(3, 9)
    plain = net.head(torch.relu(net.stem(x)))
    assert torch.equal(net(x), plain)
