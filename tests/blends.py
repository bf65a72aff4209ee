"""Blends: fractions of materials that add up to one, bought in whole lots, floors on predicted quality."""

from __future__ import annotations

import numpy as np
import torch

import dovetail as dt

LOT = 10.0
AMOUNTS = np.array([60.0, 50.0])
"""Made of each of two products."""
COSTS = np.array([30.0, 20.0, 14.0, 10.0])
"""Of a lot; the better a material, the dearer."""


def blend(seed: int, activation: type[torch.nn.Module] = torch.nn.ReLU) -> dt.Problem:
    """Two products of four materials: floors that a quarter and a tenth of all blends meet."""
    torch.manual_seed(seed)
    samples = torch.as_tensor(np.random.default_rng(seed).dirichlet(np.ones(4), 500))
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 12), activation(), torch.nn.Linear(12, 12), activation(), torch.nn.Linear(12, 1)
    ).double()
    with torch.no_grad():
        for layer in net[:-1:2]:
            layer.weight *= 3.0  # as curved as a trained one
        spread = net(samples).std()
        net[-1].weight /= spread
        net[-1].bias /= spread
        floors = torch.quantile(net(samples), torch.tensor([0.75, 0.9], dtype=torch.float64)).numpy()
        order = np.argsort(-net(torch.eye(4, dtype=torch.float64)).ravel().numpy())
    costs = np.empty(4)
    costs[order] = COSTS
    fractions, lots, qualities = np.arange(8).reshape(2, 4), np.arange(8, 12), np.array([12, 13])
    A = np.zeros((6, 14))
    for product in range(2):
        A[product, fractions[product]] = 1.0
        A[2 + np.arange(4), fractions[product]] = AMOUNTS[product]
    A[2 + np.arange(4), lots] = -LOT
    problem = dt.Problem(
        dt.Mip(
            cost=np.concatenate([np.zeros(8), costs, np.full(2, -0.5)]),
            A=A,
            row_lower=np.concatenate([np.ones(2), np.full(4, -np.inf)]),
            row_upper=np.concatenate([np.ones(2), np.zeros(4)]),
            lower=np.concatenate([np.zeros(12), floors]),
            upper=np.concatenate([np.ones(8), np.full(4, 8.0), np.full(2, np.inf)]),
            integer=np.concatenate([np.zeros(8, bool), np.ones(4, bool), np.zeros(2, bool)]),
        )
    )
    problem.add_predictor(net, fractions, qualities[:, None])
    return problem
