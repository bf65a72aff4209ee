"""Bounds of networks that round: no answer of the deployed network, in any batch, is below them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import dovetail as dt
from tests.conftest import FULL
from tests.differential.deployed import TABLES, WRITTEN, Case, faults, grid_problem, network

PARTS, TOTAL = (20, 600) if FULL else (2, 4)
DTYPES = (torch.float32, torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)


def make(seed: int) -> Case:
    """Offsets from 1 to 1e6, in the bias or by way of a neuron, taken off again in the objective or not."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[seed % len(DTYPES)]
    coarse = dtype in (torch.float16, torch.bfloat16)
    offset = float(10.0 ** rng.uniform(0, 2 if coarse else 6))
    known = offset if rng.random() < 0.7 else 0.0
    problem = grid_problem(rng, 1, classes=False, offset=known, widest=32 if seed % 3 else 8)
    features = problem.mip.n_columns - 1
    net = network(rng, features, 1, dtype, offset=offset)
    problem.add_predictor(net, np.arange(features), [features])
    return Case(problem, net, dtype)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_no_answer_is_below_the_bound(part):
    said, proved = [], 0
    for seed in range(part, TOTAL, PARTS):
        case = make(seed)
        result = dt.solve(case.problem, WRITTEN if seed % 3 else TABLES, log=False)
        said += faults(case, result, f"instance {seed}")
        proved += result.bound is not None
    assert said == []
    assert proved > 0, "a suite without bounds tests nothing"
