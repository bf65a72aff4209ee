"""States between networks, bounded by what the networks can give: held against points, and a closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.analysis.boxes import input_box
from dovetail.analysis.reached_box import reached_box
from dovetail.run.budget import Budget
from tests.differential.proof_cases import make


def doubling(stages, dtype=torch.float64):
    """s[t+1] = y[t] + u[t] with y[t] = relu(2 s[t]), controls within [0, 1], s[0] = 1; states are free."""
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)).to(dtype)
    with torch.no_grad():
        for parameter, value in zip(net.parameters(), (2.0, 0.0, 1.0, 0.0), strict=True):
            parameter.fill_(value)
    s, y, u = np.arange(stages + 1), stages + 1 + np.arange(stages), 2 * stages + 1 + np.arange(stages)
    A = np.zeros((stages, 3 * stages + 1))
    for t in range(stages):
        A[t, [s[t + 1], y[t], u[t]]] = 1.0, -1.0, -1.0
    free = np.full(stages, np.inf)
    mip = dt.Mip(
        cost=np.zeros(3 * stages + 1), A=A, row_lower=np.zeros(stages), row_upper=np.zeros(stages),
        lower=[1.0, *-free, *-free, *np.zeros(stages)], upper=[1.0, *free, *free, *np.ones(stages)],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(net, s[:-1, None], y[:, None])
    return problem


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_chain_through_rows_is_followed(dtype):
    problem = doubling(4, dtype)
    box = input_box(problem, Budget(10.0))
    assert not box.finite[2]
    found = reached_box(problem, box)
    t = np.arange(4)  # the last state is read by nobody
    assert np.all(found.lower[t] <= 2.0**t)
    assert np.all(found.upper[t] >= 2.0 ** (t + 1) - 1.0)
    np.testing.assert_allclose(found.lower[t], 2.0**t, rtol=1e-4)
    np.testing.assert_allclose(found.upper[t], 2.0 ** (t + 1) - 1.0, rtol=1e-4)


def test_what_has_bounds_is_left_alone():
    problem = make(17).problem
    box = input_box(problem, Budget(10.0))
    assert reached_box(problem, box) is box


def test_an_input_that_nothing_reaches_stays_open():
    problem = doubling(2)
    mip = problem.mip
    lower = mip.lower.copy()
    lower[0] = -np.inf
    open_ended = dt.Problem(dt.Mip(mip.cost, mip.A, mip.row_lower, mip.row_upper, lower, mip.upper))
    block = problem.blocks[0]
    open_ended.add_predictor(block.predictor, block.inputs, block.outputs)
    assert not np.any(reached_box(open_ended, input_box(open_ended, Budget(10.0))).finite[[0, 1]])


STATED = [seed for seed in range(24, 64) if seed // 8 % 4 == 3 and seed % 2]
"""Recurrences by rows."""


@pytest.mark.parametrize("seed", STATED)
def test_no_point_is_outside(seed):
    case = make(seed)
    found = reached_box(case.problem, input_box(case.problem, Budget(10.0)))
    z = case.completed(case.sample(500, np.random.default_rng(0)))
    z = z[case.missed(z) <= 1e-7]
    assert np.all(found.finite[case.problem.inputs])
    assert np.all(z >= found.lower)
    assert np.all(z <= found.upper)
