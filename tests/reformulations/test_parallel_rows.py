"""Rows that limit the same sum become one row, with the tightest sides; the points stay what they are."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.core.check import check
from dovetail.reformulations.parallel_rows import ParallelRows
from dovetail.reformulations.reformulated import Reformulated
from tests.tanh import tanh_net

INF = np.inf


def applied(A, lower, upper):
    A = np.c_[np.array(A, dtype=float), np.zeros(len(A))]
    n = A.shape[1]
    mip = dt.Mip(np.ones(n), A, lower, upper, -3.0, 3.0)
    problem = dt.Problem(mip)
    problem.add_predictor(tanh_net(), [0], [n - 1])
    return problem, ParallelRows().apply(Reformulated.start(problem, propagate(mip.minimised())))


def test_two_inequalities_are_an_equation():
    _, joined = applied([[1, -2], [-3, 6], [1, 1]], [0.1, -0.3, -INF], [INF, INF, 1.0])
    mip = joined.problem.mip
    assert mip.row_lower[0] == mip.row_upper[0] == 0.1
    assert (mip.row_lower[1], mip.row_upper[1]) == (-INF, INF)
    assert np.diff(mip.A.indptr).tolist() == [2, 0, 2]
    assert "1 row joined" in joined.note


def test_rows_that_contradict_each_other_stay_as_they_are():
    _, joined = applied([[1, 2], [2, 4], [1, 1], [1, 1]], [1.0, -INF, 0.0, -INF], [INF, 1.0, INF, 1.0])
    mip = joined.problem.mip
    assert np.diff(mip.A.indptr).tolist() == [2, 2, 2, 0]
    assert (mip.row_lower[0], mip.row_upper[1], mip.row_upper[2]) == (1.0, 1.0, 1.0)
    assert applied([[1, 2], [2, 4]], [1.0, -INF], [INF, 1.0])[1] is None


def test_the_tightest_sides_count_in_the_units_of_the_first():
    _, joined = applied([[2, 4], [1, 2], [-0.5, -1]], [-1.0, -2.0, -0.75], [9.0, 4.0, 8.0])
    mip = joined.problem.mip
    assert (mip.row_lower[0], mip.row_upper[0]) == (-1.0, 3.0)


@pytest.mark.parametrize(
    "A", [[[1, 2], [1, 2.0000001]], [[1, 2, 0], [1, 0, 2]], [[1, 0], [1, 0]], [[1, 2], [2, 1]]]
)
def test_rows_that_are_not_parallel_and_bounds_stay(A):
    assert applied(A, -1.0, 1.0)[1] is None


@pytest.mark.parametrize("seed", range(8))
def test_the_same_points_are_inside(seed):
    rng = np.random.default_rng(seed)
    base = rng.integers(-2, 3, (3, 4)) + np.eye(3, 4) * 5
    factors = rng.choice([-3.0, -1.0, 0.5, 2.0], 9)
    A = factors[:, None] * base[np.arange(9) % 3]
    problem, joined = applied(A, -rng.exponential(4, 9), rng.exponential(4, 9))
    assert np.count_nonzero(np.diff(joined.problem.mip.A.indptr)) == 3
    judged = []
    for x in rng.uniform(-1, 1, (200, 5)) * rng.uniform(0, 0.5, (200, 1)):
        x = problem.predict(x)
        judged.append(check(problem, x).within(1e-9))
        assert check(joined.problem, x).within(1e-9) == judged[-1]
    assert any(judged)
