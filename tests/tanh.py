"""Problems around one small smooth network, for tests that need a network and not its answer."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import dovetail as dt


def problem_of(cost, *rows, **limits) -> dt.Problem:
    """A problem without predictors yet, from the arguments of its `Mip`."""
    return dt.Problem(dt.Mip(cost, *rows, **limits))


def tanh_net(features=1, outputs=1, dtype=torch.float64, seed=0) -> nn.Sequential:
    """A small smooth network with torch's own random weights."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(features, 8), nn.Tanh(), nn.Linear(8, outputs)).to(dtype)


def tanh_problem() -> tuple[dt.Problem, nn.Sequential]:
    """min 0.1 x + f(x) for x in [-1, 1], f in float32; and f itself."""
    problem = problem_of([0.1, 1.0], lower=[-1.0, -np.inf], upper=[1.0, np.inf])
    network = tanh_net(dtype=torch.float32)
    problem.add_predictor(network, [0], [1])
    return problem, network
