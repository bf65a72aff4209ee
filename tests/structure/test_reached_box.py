"""States between networks, bounded by what the networks can give: held against points, and a closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.run.budget import Budget
from dovetail.structure.boxes import input_box, reached_box
from tests.conftest import FULL
from tests.differential import reach_cases
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


def test_outputs_are_bounded_where_all_inputs_are():
    problem = make(17).problem
    box = input_box(problem, Budget(10.0))
    assert np.all(box.finite[problem.inputs])
    assert not np.all(box.finite[problem.outputs])
    assert np.all(reached_box(problem, box).finite[problem.outputs])


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


def linear(weights, bias=0.0, dtype=torch.float64):
    net = nn.Sequential(nn.Linear(len(weights), 1)).to(dtype)
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([weights]))
        net[0].bias.fill_(bias)
    return net


def two_stages(least, *, net=None, more=(), dtype=torch.float64, **columns):
    """x in [0, 1]; y = 2 x, at least `least`; z = y + 1; rows `more` over x, y and z."""
    free = {"lower": [0.0, least, -np.inf], "upper": [1.0, np.inf, np.inf]} | columns
    A = np.array([row for row, _ in more]) if more else None
    sides = [side for _, side in more]
    mip = dt.Mip([0.0, 0.0, 1.0], A, sides, np.full(len(sides), np.inf), **free)
    problem = dt.Problem(mip)
    problem.add_predictor(linear([2.0], dtype=dtype) if net is None else net, [0], [1])
    problem.add_predictor(linear([1.0], 1.0, dtype), [1], [2])
    return problem.derived(mip.loosened(), problem.blocks)


def emptied(problem):
    return reached_box(problem, input_box(problem, Budget(10.0))).empty


def test_a_bound_that_no_output_meets_is_named():
    column, least, most = emptied(two_stages(3.0))
    assert column == 1
    assert least == pytest.approx(3.0, abs=1e-5)
    assert most == pytest.approx(2.0, abs=1e-5)


def test_what_the_check_forgives_is_no_proof():
    assert emptied(two_stages(2.0 + 2.9e-6)) is None  # x may be beyond 1 by 1e-6, y 1e-6 short: 2 (1 + 1e-6)
    assert emptied(two_stages(2.0 + 3.2e-6)) is not None


def test_what_the_network_rounds_is_no_proof():
    rounding = 2.0 * 2.0**-23
    assert emptied(two_stages(2.0 + 3e-6 + rounding, dtype=torch.float32)) is None
    assert emptied(two_stages(2.0 + 3e-6 + 20.0 * rounding, dtype=torch.float32)) is not None


def test_a_row_over_outputs_that_none_meets_is_a_proof():
    assert emptied(two_stages(0.0, more=[([0.0, 1.0, 1.0], 5.1)])) is not None
    assert emptied(two_stages(0.0, more=[([0.0, 1.0, 1.0], 4.9)])) is None


def test_a_class_that_is_never_given_is_a_proof():
    for bias, given in ((-3.0, 0.0), (3.0, 1.0)):
        for asked in (0.0, 1.0):
            mip = dt.Mip([0.0, 1.0], lower=[-1.0, asked], upper=[1.0, asked]).loosened()
            problem = dt.Problem(mip)
            net = linear([1.0], bias)
            problem.add_predictor(net, [0], [1], output_type="classification", threshold=0.0)
            assert (emptied(problem) is None) == (given == asked)


def test_one_of_several_classes():
    net = nn.Sequential(nn.Linear(1, 3)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0], [-1.0], [0.0]]))
        net[0].bias.copy_(torch.tensor([0.0, 0.0, -2.0]))  # the third is always behind
    for asked, reachable in enumerate((True, True, False)):
        lower = np.zeros(4)
        lower[0], lower[1 + asked] = -1.0, 1.0
        problem = dt.Problem(dt.Mip(np.zeros(4), lower=lower, upper=1.0, integer=[False, *[True] * 3]))
        problem.add_predictor(net, [0], [1, 2, 3], output_type="classification")
        assert (emptied(problem) is None) == reachable


def test_trees_end_where_their_leaves_do():
    rules = dt.RuleList([([(0, "<=", 0.5)], 1.0)], 2.0, 1)
    assert emptied(two_stages(2.5, net=rules)) is not None
    assert emptied(two_stages(1.5, net=rules)) is None


def test_numbers_that_are_too_large_bound_nothing():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 4), nn.LayerNorm(4), nn.ReLU(), nn.Linear(4, 1)).double().eval()
    problem = two_stages(3.0, net=net, lower=[-1e9, -np.inf, -np.inf], upper=[1e9, np.inf, np.inf])
    found = reached_box(problem, input_box(problem, Budget(10.0)))
    assert found.empty is None
    assert not np.any(np.isnan(found.lower)) and not np.any(np.isnan(found.upper))


@pytest.mark.parametrize("seed", range(400 if FULL else 20))
def test_what_some_point_gives_is_within_reach(seed):
    try:
        case = reach_cases.make(seed)
    except dt.DovetailError:
        pytest.skip("refused before a solve")
    problem = case.problem.derived(case.problem.mip.loosened(), case.problem.blocks)
    found = reached_box(problem, input_box(problem, Budget(10.0)))
    z = case.completed(case.sample(500, np.random.default_rng(0)))
    z = z[case.missed(z) <= 1e-7]
    assert found.empty is None or len(z) == 0
    assert np.all(z >= found.lower) and np.all(z <= found.upper)
