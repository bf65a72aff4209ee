"""Small problems with known answers, shared by tests."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from torch import nn

import dovetail as dt


def linear_net(weights, bias=0.0, dtype=torch.float64) -> nn.Linear:
    """y = weights x + bias with exactly these numbers."""
    weights = np.atleast_2d(np.asarray(weights, dtype=float))
    net = nn.Linear(weights.shape[1], weights.shape[0], dtype=dtype)
    with torch.no_grad():
        net.weight.copy_(torch.from_numpy(weights))
        net.bias.copy_(torch.as_tensor(np.broadcast_to(bias, weights.shape[0]).copy()))
    return net


class Parabola(nn.Module):
    """y = sum (x - centre)^2: smooth, convex, with a known minimum."""

    def __init__(self, centre) -> None:
        super().__init__()
        self.register_buffer("centre", torch.as_tensor(centre, dtype=torch.float64))

    def forward(self, x):
        return ((x - self.centre) ** 2).sum(dim=1, keepdim=True)


def random_mlp(features, outputs=1, width=8, layers=2, seed=0, dtype=torch.float64) -> nn.Sequential:
    """A ReLU network with fixed random weights."""
    generator = torch.Generator().manual_seed(seed)
    parts: list[nn.Module] = []
    sizes = [features, *[width] * layers]
    for into, out in itertools.pairwise(sizes):
        parts += [nn.Linear(into, out, dtype=dtype), nn.ReLU()]
    net = nn.Sequential(*parts, nn.Linear(width, outputs, dtype=dtype))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=dtype) * 0.7)
    return net


def knapsack(sense="min") -> dt.Problem:
    """Four binaries, at most two of them, and a linear network that prices the choice.

    min  x0 + y,  y = -3 x0 + 2 x1 - x2 - 2 x3   over  x0 + ... + x3 <= 2: the optimum is -4 at x0 = x3 = 1.
    The maximum is 2 at x1 = 1.
    """
    mip = dt.Mip(
        cost=[1.0, 0.0, 0.0, 0.0, 1.0],
        A=[[1.0, 1.0, 1.0, 1.0, 0.0]],
        row_lower=[-np.inf],
        row_upper=[2.0],
        lower=[0.0, 0.0, 0.0, 0.0, -np.inf],
        upper=[1.0, 1.0, 1.0, 1.0, np.inf],
        integer=[True, True, True, True, False],
        sense=sense,
        names=["a", "b", "c", "d", "y"],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([-3.0, 2.0, -1.0, -2.0]), [0, 1, 2, 3], [4], name="price")
    return problem


def bowl(target=(0.5, -0.25)) -> dt.Problem:
    """min y, y = |x - target|^2, x0 + x1 = 1, x in [-2, 2]^2: the optimum is (1 - sum target)^2 / 2."""
    mip = dt.Mip(
        cost=[0.0, 0.0, 1.0],
        A=[[1.0, 1.0, 0.0]],
        row_lower=[1.0],
        row_upper=[1.0],
        lower=[-2.0, -2.0, -np.inf],
        upper=[2.0, 2.0, np.inf],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(Parabola(target), [0, 1], [2], name="bowl")
    return problem
