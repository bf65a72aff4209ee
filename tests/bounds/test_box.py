"""Boxes hold every feasible point, where large numbers cancel too."""

from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

import dovetail as dt
from dovetail.bounds.box import common, least_cost, narrow, needed_ends, propagate
from tests.conftest import FULL

SEEDS = range(3000 if FULL else 200)


def test_no_feasible_point_is_cut_off():
    """A row with entries up to 1e9 whose side is what a random point makes of it, rounded away from it."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 7))
        A = rng.normal(size=(3, n)) * 10.0 ** rng.integers(-3, 10, (3, n))
        x = rng.uniform(-10.0, 10.0, n)
        exact = [sum((Fraction(a) * Fraction(v) for a, v in zip(row, x, strict=True))) for row in A.tolist()]
        high = np.array([np.nextafter(float(value), np.inf) for value in exact])
        low = np.array([np.nextafter(float(value), -np.inf) for value in exact])
        box = propagate(dt.Mip(np.zeros(n), A, low, high, -10.0, 10.0))
        assert np.all(box.lower <= x), seed
        assert np.all(x <= box.upper), seed
        assert box.empty is None, seed


def test_boxes_are_still_worth_having():
    box = propagate(dt.Mip([0.0, 0.0], [[1.0, 1.0]], [-np.inf], [1.0], 0.0, np.inf))
    assert np.allclose(box.upper, 1.0, atol=1e-6)


def test_what_cancels_leaves_room_for_its_rounding():
    """Two fixed columns whose parts of the row are 1e14 and cancel: the third is known to hundredths."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        a = 1e14 * rng.uniform(0.5, 1.0)
        x = np.array([*rng.uniform(0.0, 1.0, 1), 0.0, rng.uniform(-1.0, 1.0)])
        x[1] = x[0] + rng.uniform(-1e-13, 1e-13)
        row = [a, -a, 1.0]
        exact = sum(Fraction(v) * Fraction(w) for v, w in zip(row, x.tolist(), strict=True))
        side = np.nextafter(float(exact), np.inf)
        fixed = np.array([x[0], x[1], -9.0]), np.array([x[0], x[1], 9.0])
        for low, high in ((-np.inf, side), (np.nextafter(float(exact), -np.inf), np.inf)):
            box = propagate(dt.Mip(np.zeros(3), [row], [low], [high], *fixed))
            assert box.lower[2] <= x[2] <= box.upper[2], seed


def test_the_least_cost_of_a_box_is_never_above_the_exact_one():
    rng = np.random.default_rng(0)
    for _ in range(50):
        cost, lower = rng.standard_normal(9) * 10.0 ** rng.integers(-6, 6, 9), -rng.random(9)
        mip = dt.Mip(cost=cost, lower=lower, upper=1.0 / 3.0, offset=float(rng.standard_normal()))
        exact = Fraction(mip.offset)
        for c, low, high in zip(mip.cost.tolist(), mip.lower.tolist(), mip.upper.tolist(), strict=True):
            exact += Fraction(c) * Fraction(low if c > 0.0 else high)
        found = least_cost(mip, mip.lower, mip.upper)
        assert Fraction(found) <= exact
        assert found >= float(exact) - 1e-12 * float(np.abs(cost).sum())


def test_a_box_without_a_limit_that_counts_has_no_least_cost():
    mip = dt.Mip(cost=[1.0, 0.0], lower=[-np.inf, -np.inf])
    assert least_cost(mip, mip.lower, mip.upper) == -np.inf
    assert least_cost(mip, np.array([2.0, -np.inf]), mip.upper) <= 2.0


def one(lower, upper, least, most):
    """`common` of single intervals."""
    low, high, apart = common(*(np.array([end], dtype=float) for end in (lower, upper, least, most)))
    return float(low[0]), float(high[0]), bool(apart[0])


def test_a_computed_bound_that_is_no_number_says_nothing():
    assert one(0.0, 1.0, np.nan, np.nan) == (0.0, 1.0, False)
    assert one(0.0, 1.0, np.nan, 0.5) == (0.0, 0.5, False)
    assert one(-np.inf, np.inf, np.nan, 2.0) == (-np.inf, 2.0, False)


def test_a_computed_bound_at_the_wrong_infinity_says_nothing():
    assert one(0.0, 1.0, np.inf, np.inf) == (0.0, 1.0, False)
    assert one(0.0, 1.0, -np.inf, -np.inf) == (0.0, 1.0, False)


def test_intervals_that_are_apart_leave_the_first_one():
    assert one(5.0, np.inf, 0.0, 1.0) == (5.0, np.inf, True)
    assert one(0.0, 1.0, 0.25, 0.5) == (0.25, 0.5, False)
    assert one(1.0, 2.0, 0.0, 1.0) == (1.0, 1.0, False)


def test_what_rounding_explains_is_no_proof():
    for size in (1.0, 1e9):
        assert one(size, np.inf, 0.0, np.nextafter(size, 0.0)) == (size, np.inf, False)
        assert one(size, np.inf, 0.0, size * (1.0 - 1e-12)) == (size, np.inf, True)


def test_the_column_that_has_no_value_left_is_named():
    lower, upper = np.array([0.0, 5.0, 0.0]), np.array([1.0, 9.0, 1.0])
    columns = np.array([[2], [1]])
    found = narrow(lower, upper, columns, np.array([[0.5], [0.0]]), np.array([[2.0], [4.0]]))
    assert found == (1, 5.0, 4.0)
    assert lower.tolist() == [0.0, 5.0, 0.5]
    assert upper.tolist() == [1.0, 9.0, 1.0]


def sums_to(side, integer=False):
    """Two columns within [0, 1] whose sum is at least `side`."""
    return dt.Mip([0.0, 0.0], [[1.0, 1.0]], [side], [np.inf], 0.0, 1.0, integer=integer)


def test_rows_that_nothing_meets_are_seen():
    assert propagate(sums_to(2.5)).empty is not None
    assert propagate(sums_to(2.0 + 1e-9)).empty is None
    assert propagate(sums_to(2.0)).empty is None


def test_the_tolerance_of_the_check_is_left_to_whoever_loosens():
    assert propagate(sums_to(2.0 + 0.9e-6).loosened()).empty is None
    assert propagate(sums_to(2.0 + 9e-6).loosened()).empty is not None


def test_bounds_of_an_empty_box_do_not_cross():
    box = propagate(sums_to(2.5, integer=True))
    assert np.all(box.lower <= box.upper)


def test_needed_ends_leave_a_best_point_in():
    """Random programs, half of the columns without an end: the least cost is what it was."""
    made = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(2, 6)), int(rng.integers(1, 6))
        A = rng.integers(-2, 3, (m, n)) * (rng.random((m, n)) < 0.7)
        upper, lower = rng.integers(0, 5, m).astype(float), rng.integers(-5, 1, m).astype(float)
        upper[rng.random(m) < 0.5], lower[rng.random(m) < 0.5] = np.inf, -np.inf
        mip = dt.Mip(
            rng.integers(-2, 3, n), A, lower, upper,
            np.where(rng.random(n) < 0.3, -np.inf, -1.0), np.where(rng.random(n) < 0.6, np.inf, 2.0),
        )  # fmt: skip
        low, high, free = mip.lower.copy(), mip.upper.copy(), rng.random(n) < 0.9
        found = needed_ends(mip.A, (mip.row_lower, mip.row_upper), mip.cost, free, low, high)
        assert np.array_equal(low[~free], mip.lower[~free]) and np.array_equal(high[~free], mip.upper[~free])
        before, after = (_least(mip, *ends) for ends in ((mip.lower, mip.upper), (low, high)))
        if found and np.isfinite(before):
            made += 1
            assert after <= before + 1e-6 * (1.0 + abs(before)), seed
    assert made > 20


def test_needed_ends_are_no_tighter_than_exact_arithmetic_where_large_terms_cancel():
    """a x0 + p x1 - q x2 + r x3 >= side with x1 and x2 fixed, p x1 = q x2 but for rounding, up to 1e13."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        lower = np.append(0.0, rng.normal(size=3))
        upper = lower + np.array([np.inf, 0.0, 0.0, rng.random()])
        A = rng.normal(size=(2, 4))
        A[:, 1] *= 10.0 ** rng.integers(0, 14, 2)
        A[:, 2] = -A[:, 1] * lower[1] / lower[2]
        side, high = rng.normal(size=2), upper.copy()
        free = np.array([True, False, False, False])
        needed_ends(sp.csr_array(A), (side, np.full(2, np.inf)), np.zeros(4), free, lower.copy(), high)
        asked = [_asked(row, end, lower, upper) for row, end in zip(A, side, strict=True)]
        assert Fraction(high[0]) >= max(asked), seed


def _asked(row, side, lower, upper):
    """The most that a row asks of its first column, exactly; 0 where it asks for nothing."""
    if row[0] <= 0.0:
        return Fraction(0)
    others = range(1, row.size)
    least = sum(min(Fraction(row[j]) * Fraction(end) for end in (lower[j], upper[j])) for j in others)
    return (Fraction(side) - least) / Fraction(row[0])


def _least(mip, lower, upper):
    """The least cost by another engine; infinity where there is none."""
    A = np.vstack([mip.A.toarray(), -mip.A.toarray()])
    sides = np.concatenate([mip.row_upper, -mip.row_lower])
    kept = np.isfinite(sides)
    found = linprog(mip.cost, A[kept], sides[kept], bounds=np.c_[lower, upper])
    return found.fun if found.status == 0 else np.inf


def test_an_epigraph_needs_no_more_than_its_rows_ask_for():
    """a >= x - 0.5 and a >= 0.5 - x with x from 0 to 2; b <= x, of which more is better, from below."""
    mip = dt.Mip(
        [0.0, 1.0, -1.0], [[-1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]], [-0.5, 0.5, -np.inf],
        [np.inf, np.inf, 0.0], [0.0, -np.inf, -np.inf], [2.0, np.inf, 9.0],
    )  # fmt: skip
    low, high = mip.lower.copy(), mip.upper.copy()
    assert needed_ends(
        mip.A, (mip.row_lower, mip.row_upper), mip.cost, np.array([False, True, True]), low, high
    )
    assert np.allclose(high, [2.0, 1.5, 9.0], atol=1e-6) and np.allclose(low[2], 0.0, atol=1e-6)
    assert low[1] == -np.inf
