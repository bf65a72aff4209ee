"""Rows that are sums of others are left out, and nothing else: linear programs keep their optima."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from dovetail.reformulations.redundant import implied_sides, sparser_rows

INF = np.inf


def left_out(A, lower, upper):
    low, high = implied_sides(sp.csr_array(np.array(A, dtype=float)), np.array(lower), np.array(upper))
    return low.tolist(), high.tolist()


def test_a_sum_with_room_is_left_out_and_a_tighter_one_stays():
    rows = [[1.0, 1.0, 0.0], [0.0, 2.0, 1.0], [1.0, 3.0, 1.0]]
    assert left_out(rows, [-INF] * 3, [1.0, 2.0, 3.0]) == ([False] * 3, [False, False, True])
    assert left_out(rows, [-INF] * 3, [1.0, 2.0, 2.9]) == ([False] * 3, [False] * 3)


def test_of_an_equation_both_sides_are_implied_or_none():
    rows = [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 2.0, 1.0]]
    assert left_out(rows, [1.0, 1.0, 2.0], [1.0, 1.0, 2.0]) == ([False, False, True], [False, False, True])
    assert left_out(rows, [-INF, -INF, 2.0], [1.0, 1.0, 2.0]) == ([False] * 3, [False] * 3)


def test_rows_that_imply_each_other_are_not_all_left_out():
    """a <= 0, b <= 0 and a + b <= 0 over the same columns, with a and b each a sum of the others."""
    rows = [[1.0, 2.0], [1.0, -2.0], [2.0, 0.5], [0.5, 2.0]]
    low, high = left_out(rows, [-INF] * 4, [0.0] * 4)
    kept = [i for i in range(4) if not high[i]]
    assert not any(low)
    assert len(kept) == 2


@pytest.mark.parametrize("seed", range(20))
def test_linear_programs_keep_their_optima(seed):
    rng = np.random.default_rng(seed)
    rows, columns = 5, 6
    A = rng.integers(-2, 3, (rows, columns)) * (rng.random((rows, columns)) < 0.6)
    upper = rng.integers(0, 4, rows).astype(float)
    sums = rng.integers(0, 3, (4, rows)).astype(float)
    room = rng.choice([0.0, 0.5, -0.25], 4)
    A, upper = np.vstack([A, sums @ A]).astype(float), np.append(upper, sums @ upper + room)
    turned = rng.random(upper.size) < 0.5
    A[turned] *= -1.0
    low, high = np.where(turned, -upper, -INF), np.where(turned, INF, upper)
    gone = implied_sides(sp.csr_array(A), low, high)
    kept = ~(np.where(turned, *gone))
    plain = np.where(turned, -1.0, 1.0)[:, None] * A
    for _ in range(5):
        cost = rng.standard_normal(columns)
        box = [(-1.0, 1.0)] * columns
        whole, part = (linprog(cost, plain[some], upper[some], bounds=box) for some in (upper < INF, kept))
        assert whole.status == part.status
        if whole.status == 0:
            assert part.fun == pytest.approx(whole.fun, abs=1e-7)


def test_a_row_plus_an_equation_becomes_the_row() -> None:
    """Adding multiples of equations is taken back; the rows left have as few entries as those written."""
    rng = np.random.default_rng(0)
    equations = np.array([[1.0, -2.0, 3.0, 0, 0, 0], [0, 0, 0, 1.0, 1.0, -1.0]])
    row = np.array([0, 0, 0, 2.0, 0, 0.5])
    A = np.vstack([equations, row + 0.7 * equations[0]])
    ((i, e, factor),) = sparser_rows(sp.csr_array(A), np.array([True, True, False]))
    assert (i, e) == (2, 0)
    np.testing.assert_allclose(A[i] - factor * A[e], row, atol=1e-15)
    plain = np.vstack([equations, rng.uniform(1.0, 2.0, 6)])
    assert sparser_rows(sp.csr_array(plain), np.array([True, True, False])) == []


def test_a_small_entry_of_an_equation_decides_nothing() -> None:
    A = np.array([[1e-3, 1.0, 1.0], [1.0, 1.0, 0.0]])
    assert sparser_rows(sp.csr_array(A), np.array([True, False])) == []
