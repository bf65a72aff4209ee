"""Classes that saturation and rounding decide: what is proved holds for the class that is really given."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from tests.conftest import FULL
from tests.differential.deployed import TABLES, WRITTEN, Case, faults, grid_problem, network

PARTS, TOTAL = (20, 600) if FULL else (2, 4)
ENDS = (nn.Tanh(), nn.Sigmoid(), nn.Softmax(dim=1), nn.Softplus(), nn.ReLU(), nn.Identity())
THRESHOLDS = (0.5, 0.5, 0.3, 0.9999999, 1.0 - 1e-15, 1.0, 1e-8, 1e-40, 1e-300)


def make(seed: int) -> Case:
    """Logits of any size before a decision among several classes, or a sigmoid with an odd threshold."""
    rng = np.random.default_rng(seed)
    dtype = torch.float32 if seed % 2 else torch.float64
    one = seed % 4 == 3
    outputs = 1 if one else int(rng.integers(2, 5))
    problem = grid_problem(rng, outputs, classes=True)
    mip = problem.mip
    features = mip.n_columns - outputs
    net = network(rng, features, outputs, dtype)
    scale = float(10.0 ** rng.uniform(-1, 3))
    with torch.no_grad():
        net[2].weight *= scale
        net[2].bias *= scale
        if rng.random() < 0.5:  # whole numbers tie often
            for parameter in net.parameters():
                parameter.copy_(torch.round(parameter))
    end = nn.Sigmoid() if one else ENDS[int(rng.integers(len(ENDS)))]
    net = nn.Sequential(*net, end)
    threshold = float(rng.choice(THRESHOLDS)) if one else None
    cost = np.concatenate([mip.cost[:features], rng.integers(-3, 4, outputs).astype(float)])
    problem = dt.Problem(
        dt.Mip(cost, mip.A, mip.row_lower, mip.row_upper, mip.lower, mip.upper, mip.integer, mip.sense)
    )
    problem.add_predictor(
        net,
        np.arange(features),
        features + np.arange(outputs),
        output_type="classification",
        threshold=threshold,
    )
    return Case(problem, net, dtype, 0.0 if threshold is None else threshold)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_no_class_is_below_the_bound(part):
    said, proved = [], 0
    for seed in range(part, TOTAL, PARTS):
        case = make(seed)
        result = dt.solve(case.problem, WRITTEN if seed % 3 else TABLES, log=False)
        said += faults(case, result, f"instance {seed}")
        proved += result.status == "optimal"
    assert said == []
    assert proved > 0, "a suite without proofs tests nothing"
