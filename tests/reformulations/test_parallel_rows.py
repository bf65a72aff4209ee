"""Rows that limit the same sum become one row, with the tightest sides; the points stay what they are."""

import numpy as np
import pytest
import scipy.sparse as sp

from dovetail.reformulations.redundant import parallel_rows

INF = np.inf


def joined(A, lower, upper):
    A = np.array(A, dtype=float)
    sides = (np.broadcast_to(np.array(side, dtype=float), len(A)) for side in (lower, upper))
    return parallel_rows(sp.csr_array(A), *sides)


def test_two_inequalities_are_an_equation():
    found = joined([[1, -2], [-3, 6], [1, 1]], [0.1, -0.3, -INF], [INF, INF, 1.0])
    assert found.lower[1] == found.upper[1] == -0.3
    assert found.joined.tolist() == [True, False, False]


def test_rows_that_contradict_each_other_stay_as_they_are():
    found = joined([[1, 2], [2, 4], [1, 1], [1, 1]], [1.0, -INF, 0.0, -INF], [INF, 1.0, INF, 1.0])
    assert found.joined.tolist() == [False, False, False, True]
    assert (found.lower[0], found.upper[1], found.upper[2]) == (1.0, 1.0, 1.0)
    assert joined([[1, 2], [2, 4]], [1.0, -INF], [INF, 1.0]) is None


def test_the_tightest_sides_count_in_the_units_of_the_largest_row():
    found = joined([[2, 4], [1, 2], [-0.5, -1]], [-1.0, -2.0, -0.75], [9.0, 4.0, 8.0])
    assert (found.lower[0], found.upper[0]) == (-1.0, 3.0)


def test_units_that_round_are_recognised():
    base = np.array([0.1, 0.7, -1.3])
    found = joined([base, 0.1 * base, -7.0 * base / 3.0], -1.0, 1.0)
    assert found.joined.tolist() == [True, True, False]


@pytest.mark.parametrize(
    "A", [[[1, 2], [1, 2.0000001]], [[1, 2, 0], [1, 0, 2]], [[1, 0], [1, 0]], [[1, 2], [2, 1]]]
)
def test_rows_that_are_not_parallel_and_bounds_stay(A):
    assert joined(A, -1.0, 1.0) is None


@pytest.mark.parametrize("seed", range(8))
def test_the_same_points_are_inside(seed):
    rng = np.random.default_rng(seed)
    base = rng.integers(-2, 3, (3, 4)) + np.eye(3, 4) * 5
    factors = rng.choice([-3.0, -1.0, 0.5, 2.0], 9)
    A = factors[:, None] * base[np.arange(9) % 3]
    lower, upper = -rng.exponential(4, 9), rng.exponential(4, 9)
    found = joined(A, lower, upper)
    assert np.count_nonzero(~found.joined) == 3
    X = rng.uniform(-1, 1, (200, 4)) * rng.uniform(0, 0.5, (200, 1))
    before = np.all((lower <= X @ A.T) & (upper >= X @ A.T), axis=1)
    left = ~found.joined
    after = (found.lower[left] <= X @ A[left].T) & (found.upper[left] >= X @ A[left].T)
    assert np.array_equal(before, np.all(after, axis=1)) and before.any()
