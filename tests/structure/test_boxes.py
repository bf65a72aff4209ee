"""Boxes: hold every feasible point, and are finite wherever the host makes them so."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.run.budget import Budget
from dovetail.structure.boxes import input_box, tightened_box
from tests.conftest import FULL
from tests.contexts import by_scipy
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
