"""The smallest relaxation of an infeasible host: it helps, and nothing smaller does."""

import itertools

import numpy as np
import pytest

import dovetail as dt
from dovetail.methods import elastic
from dovetail.methods.elastic import nearest_point, smallest_relaxation
from dovetail.run.budget import Budget
from tests.contexts import by_scipy
from tests.small import linear_net


def mix(need, integer=False):
    return dt.Mip(
        cost=[1.0, 1.0, 1.0],
        A=[[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
        row_lower=[need, 0.5],
        row_upper=[np.inf, np.inf],
        upper=[1.0, 1.0, 9.0],
        integer=[integer, integer, False],
        names=["cement", "ash", "strength"],
        row_names=["mass", "least cement"],
    )


def test_one_row_gives_way():
    (one,) = smallest_relaxation(dt.Problem(mix(10.0)), Budget(10.0))
    assert (one.name, one.side, one.limit, one.needed) == ("mass", "lower", 10.0, 2.0)


def test_integers_stay_whole():
    """Of 2.5 the relaxed host needs nothing less than whole numbers do not."""
    mip = dt.Mip(
        cost=[1.0], A=[[2.0]], row_lower=3.0, row_upper=3.0, upper=5.0, integer=True, row_names=["odd"]
    )
    (one,) = smallest_relaxation(dt.Problem(mip), Budget(10.0))
    assert one.name == "odd" and one.needed in (2.0, 4.0)


def test_classes_are_0_or_1():
    mip = dt.Mip(cost=[0.0, 1.0], A=[[0.0, 1.0]], row_lower=0.4, row_upper=0.6, lower=-5.0, upper=5.0)
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1], output_type="classification", threshold=0.0)
    (one,) = smallest_relaxation(problem, Budget(10.0))
    assert one.needed in (0.0, 1.0)


@pytest.mark.parametrize("seed", range(10))
def test_of_random_programs(seed):
    """What is suggested makes the host feasible."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-3, 4, size=(6, 4)).astype(float)
    sides = rng.integers(1, 9, size=6).astype(float)
    mip = dt.Mip(rng.normal(size=4), A, sides, np.inf, upper=1.0, integer=rng.random(4) < 0.5)
    found = smallest_relaxation(dt.Problem(mip), Budget(10.0))
    if by_scipy(mip) is not None:
        assert found == ()
        return
    assert found
    lower = mip.row_lower.copy()
    for one in found:
        lower[int(one.name[4:-1])] = one.needed
    lower -= 1e-6  # as the check does
    assert by_scipy(dt.Mip(mip.cost, A, lower, np.inf, upper=1.0, integer=mip.integer)) is not None


def test_without_rows_or_time_there_is_no_advice(monkeypatch):
    assert smallest_relaxation(dt.Problem(dt.Mip(cost=[1.0])), Budget(10.0)) == ()
    assert smallest_relaxation(dt.Problem(mix(10.0)), Budget(0.0)) == ()
    monkeypatch.setattr(elastic, "least_seconds", lambda mip: 100.0)
    assert smallest_relaxation(dt.Problem(mix(10.0)), Budget(10.0)) == ()


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_point_misses_by_least(seed):
    """Of all points of a small grid; the last row is kept, as those of a table are."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-3, 4, (3, 4)).astype(float)
    row_lower = np.array([9.0, 14.0, -2.0])
    mip = dt.Mip(np.zeros(4), A, row_lower, [20.0, 20.0, 2.0], lower=0.0, upper=[2, 2, 2, 0.5], integer=True)
    grid = np.array([*itertools.product(range(3), range(3), range(3), range(-2, 4))], dtype=float)
    rows = grid @ A.T
    kept = (rows[:, 2] >= -2.0) & (rows[:, 2] <= 2.0)
    missed = np.maximum(row_lower[:2] - rows[:, :2], rows[:, :2] - 20.0).max(axis=1)
    beyond = np.maximum(-grid[:, 3], grid[:, 3] - 0.5)  # the bounds of the last column give way as well
    worst = np.maximum(np.maximum(missed, beyond), 0.0)[kept]
    x = nearest_point(mip, 2, np.array([3]), Budget(20.0))
    missing = np.maximum(row_lower[:2] - A[:2] @ x, A[:2] @ x - 20.0).max()
    assert max(missing, -x[3], x[3] - 0.5, 0.0) == pytest.approx(worst.min(), abs=1e-6)
