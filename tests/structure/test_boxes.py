"""Boxes: hold every feasible point, and are finite wherever the host makes them so.

States between networks, bounded by what the networks can give: held against points, and a closed form.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import nn

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.run.budget import Budget
from dovetail.structure.boxes import input_box, reached_box, tightened_box
from tests.conftest import FULL
from tests.contexts import by_scipy
from tests.differential import reach_cases
from tests.differential.proof_cases import make
from tests.small import linear_net
from tests.tanh import problem_of, tanh_net


def test_budgets_bound_what_has_no_bounds():
    """The paper's water model: x = w + a - b, a and b only limited by totals."""
    from dovetail_study.problems.training import Training
    from dovetail_study.problems.water import formulate

    samples = np.random.default_rng(0).normal(size=(4, 9))
    instance = formulate(samples, linear_net(np.ones(9)), Training(1, 1, 1, 1))
    box = input_box(instance.problem, Budget(10.0))
    treated = instance.treated
    assert box.lower[treated] == pytest.approx(samples - 2.0, abs=1e-5)
    assert box.upper[treated] == pytest.approx(samples + 2.0, abs=1e-5)


def test_random_programs_are_never_cut():
    """Against the LP's own least and largest values: the box contains them."""
    rng = np.random.default_rng(0)
    for _ in range(100 if FULL else 20):
        n, m = int(rng.integers(2, 6)), int(rng.integers(1, 5))
        A = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.7)
        inside = rng.uniform(-2, 2, n)
        side = A @ inside
        mip = dt.Mip(
            cost=np.zeros(n),
            A=A,
            row_lower=np.where(rng.random(m) < 0.5, side - 1, -np.inf),
            row_upper=side + 1,
            lower=np.where(rng.random(n) < 0.6, -3.0, -np.inf),
            upper=np.where(rng.random(n) < 0.6, 3.0, np.inf),
        )
        box = propagate(mip)
        rows = np.vstack([A, -A])
        sides = np.concatenate([mip.row_upper, -mip.row_lower])
        kept = np.isfinite(sides)
        limits = list(zip(mip.lower, mip.upper, strict=True))
        for j in range(n):
            for sign, bound in ((1.0, box.lower[j]), (-1.0, box.upper[j])):
                cost = np.zeros(n)
                cost[j] = sign
                lp = linprog(cost, A_ub=rows[kept], b_ub=sides[kept], bounds=limits)
                if lp.status == 0:
                    assert lp.fun >= sign * bound - 1e-9
                elif lp.status == 3:
                    assert np.isinf(bound)


def test_the_lp_finds_what_single_rows_cannot():
    # x0 + x1 <= 1 and x0 - x1 <= 1 with x free: only together do they bound x0, and only from above
    mip = dt.Mip(
        cost=np.zeros(3),
        A=[[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]],
        row_lower=np.full(2, -np.inf),
        row_upper=[1.0, 1.0],
        lower=-np.inf,
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [2])
    assert np.isinf(propagate(mip).upper[0])
    box = input_box(problem, Budget(10.0))
    assert np.isinf(box.lower[0])
    assert 1.0 <= box.upper[0] == pytest.approx(1.0, abs=1e-5)


def test_integers_get_whole_bounds():
    mip = dt.Mip(
        cost=[0.0], A=[[2.0]], row_lower=[1.0], row_upper=[7.0], lower=-50.0, upper=50.0, integer=True
    )
    box = propagate(mip)
    assert (box.lower[0], box.upper[0]) == (1.0, 3.0)


def test_an_infeasible_host_leaves_sane_boxes():
    mip = dt.Mip(cost=[0.0], A=[[1.0]], row_lower=[5.0], row_upper=[6.0], lower=0.0, upper=1.0)
    box = propagate(mip)
    assert np.all(box.lower <= box.upper)


def random_program(rng):
    """A bounded LP with a network over all its columns but the last, and some integers."""
    n, m = int(rng.integers(3, 7)), int(rng.integers(2, 6))
    A = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.7)
    A[:, -1] = 0.0
    integer = rng.random(n) < 0.3
    inside = rng.uniform(-2, 2, n)
    inside[integer] = np.round(inside[integer])
    side = A @ inside
    mip = dt.Mip(
        cost=np.zeros(n),
        A=A,
        row_lower=np.where(rng.random(m) < 0.5, side - 0.5, -np.inf),
        row_upper=side + 0.5,
        lower=-3.0,
        upper=3.0,
        integer=np.append(integer[:-1], False),
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net(np.ones(n - 1)), np.arange(n - 1), [n - 1])
    return problem


def test_a_tightened_box_holds_every_feasible_point_and_is_no_wider():
    """Vertices in random directions, integers and all, found by scipy."""
    rng = np.random.default_rng(1)
    shrunk = 0
    for _ in range(60 if FULL else 12):
        problem = random_program(rng)
        mip = problem.mip
        box, plain = tightened_box(problem, Budget(60.0)), input_box(problem, Budget(60.0))
        assert np.all(box.lower >= plain.lower) and np.all(box.upper <= plain.upper)
        assert np.all(box.lower >= mip.lower) and np.all(box.upper <= mip.upper)
        shrunk += int(np.any(box.upper - box.lower < plain.upper - plain.lower - 1e-3))
        for _ in range(12):
            found = by_scipy(replace(mip, cost=rng.normal(size=mip.n_columns)))
            assert found is not None
            assert np.all(found[1] >= box.lower - 1e-7)
            assert np.all(found[1] <= box.upper + 1e-7)
    assert shrunk > 0


def test_a_tightened_box_is_the_relaxations_own():
    rng = np.random.default_rng(2)
    for _ in range(5):
        problem = random_program(rng)
        mip = replace(problem.mip, integer=np.zeros(problem.mip.n_columns, dtype=bool))
        box = tightened_box(problem.derived(mip, problem.blocks), Budget(60.0))
        for j in problem.inputs:
            cost = np.zeros(mip.n_columns)
            cost[j] = 1.0
            least, most = (by_scipy(replace(mip, cost=cost, sense=sense))[0] for sense in ("min", "max"))
            assert box.lower[j] == pytest.approx(least, abs=1e-5)
            assert box.upper[j] == pytest.approx(most, abs=1e-5)


def test_a_tightened_box_of_an_infeasible_host_is_sane():
    mip = dt.Mip(
        cost=np.zeros(3), A=[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]], row_lower=[3.0, -np.inf],
        row_upper=[np.inf, 2.0], lower=-9.0, upper=9.0,
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0, 1.0]), [0, 1], [2])
    box = tightened_box(problem, Budget(10.0))
    assert np.all(box.lower <= box.upper)


def test_without_time_a_tightened_box_is_the_plain_one():
    problem = random_program(np.random.default_rng(3))
    box, plain = tightened_box(problem, Budget(0.0)), propagate(problem.mip)
    assert np.array_equal(box.lower, plain.lower) and np.array_equal(box.upper, plain.upper)


@pytest.mark.parametrize("seconds", [0.0, 1e-3])
def test_no_time_to_find_the_boxes_is_no_mistake_of_the_model(seconds):
    A = [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]]
    p = problem_of([1.0, 1.0, 1.0], A, np.full(4, -np.inf), np.ones(4), lower=-np.inf)
    p.add_predictor(tanh_net(2), [0, 1], [2])
    assert dt.solve(p, time_limit=seconds, log=False).stop_reason == "time"
    assert dt.solve(p, dt.Auto(effort=1), log=False).status in ("feasible", "optimal")


def test_a_box_that_is_no_box_is_refused_by_name():
    p = problem_of([0.0, 1.0], lower=[-1e15, -np.inf], upper=[1e15, np.inf], names=["far", "y"])
    p.add_predictor(tanh_net(), ["far"], ["y"])
    with pytest.raises(dt.ModelError, match=r"far .* no useful box"):
        dt.solve(p, "dual-decomposition", log=False)


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


@pytest.mark.parametrize("seed", range(400 if FULL else 10))
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
