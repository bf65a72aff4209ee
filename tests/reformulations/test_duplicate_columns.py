"""Columns with proportional entries become one column; every value of the sum has a way back."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from dovetail.reformulations.redundant import JoinedColumn, duplicate_columns

INF = np.inf


def joined(A, cost, lower, upper, whole):
    A, n = sp.csr_array(np.array(A, dtype=float)), len(cost)
    ends = np.array(lower, dtype=float), np.array(upper, dtype=float)
    found = duplicate_columns(A, np.array(cost, dtype=float), np.ones(n, dtype=bool), ends, np.array(whole))
    return found, ends


def test_what_differs_in_the_cost_or_in_a_row_stays():
    rows = [[1.0, 2.0, 1.0, 3.0], [0.0, 0.0, 1.0, 3.0]]
    found, _ = joined(rows, [1.0, 2.5, 0.5, 1.5], [0.0] * 4, [1.0] * 4, [False] * 4)
    assert [(join.first, join.second, join.ratio) for join in found] == [(2, 3, 3.0)]


def test_binaries_that_count_1_2_4_are_an_integer_and_those_that_leave_a_gap_are_not():
    found, (lower, upper) = joined([[1.0, 2.0, 4.0]], [0.0] * 3, [0.0] * 3, [1.0] * 3, [True] * 3)
    assert len(found) == 2 and (lower[0], upper[0]) == (0.0, 7.0)
    assert joined([[1.0, 3.0]], [0.0] * 2, [0.0] * 2, [1.0] * 2, [True] * 2)[0] == []
    assert joined([[1.0, 1.5]], [0.0] * 2, [0.0] * 2, [9.0] * 2, [True] * 2)[0] == []


def test_an_integer_beside_a_continuous_column_as_wide_as_its_step_is_continuous():
    for wide, count in ((2.0, 1), (1.9, 0)):
        found, (lower, upper) = joined(
            [[1.0, 2.0]], [0.0, 0.0], [0.0, 0.0], [wide, 3.0], [False, True]
        )  # one step of the second is 2 of the first
        assert len(found) == count
    found, (lower, upper) = joined([[1.0, -2.0]], [1.0, -2.0], [0.5, 0.0], [INF, 3.0], [False, True])
    assert (lower[0], upper[0]) == (-5.5, INF)


@pytest.mark.parametrize("seed", range(40))
def test_every_value_of_a_sum_has_a_way_back_and_no_other_value_is_one(seed):
    rng = np.random.default_rng(seed)
    whole = rng.random(2) < 0.6
    entries = rng.choice([-3.0, -2.0, -1.0, 0.5, 1.0, 2.0], 2)
    lower = rng.integers(-3, 2, 2).astype(float)
    upper = lower + rng.integers(1, 5, 2)
    found, (low, high) = joined([entries, 2.0 * entries], entries, lower, upper, whole)
    if not found:
        if whole.all():  # then some whole value between the bounds of the sum is none
            near, far = np.argsort(np.abs(entries), kind="stable")
            ratio = entries[far] / entries[near]
            values = [np.arange(lower[j], upper[j] + 1.0) for j in (near, far)]
            sums = {float(x + ratio * y) for x, y in itertools.product(*values)}
            steps = np.diff(sorted(sums))
            assert steps.max() > 1.0 or any(value != round(value) for value in sums)
        return
    (join,) = found
    z = np.linspace(low[join.first], high[join.first], 41)
    z = np.unique(np.round(z)) if join.whole else z
    for value in z:
        x = np.zeros(2)
        x[join.first], x[join.second] = join.parts(float(value))
        assert x[join.first] + join.ratio * x[join.second] == pytest.approx(value, abs=1e-12)
        assert np.all(x >= lower - 1e-9) and np.all(x <= upper + 1e-9)
        assert np.all(x[whole] == np.round(x[whole]))


def test_what_is_beyond_a_bound_stays_as_small_as_it_was():
    join = JoinedColumn(0, 1, 4.0, (0.0, 1.0), (0.0, 2.0), whole=False, other_whole=False)
    assert join.parts(9.0 + 1e-6) == pytest.approx((1.0 + 1e-6, 2.0), abs=1e-12)
    assert join.parts(-1e-6) == (-1e-6, 0.0)
