"""Boxes hold every feasible point, where large numbers cancel too."""

from fractions import Fraction

import numpy as np

import dovetail as dt
from dovetail.bounds.box import least_cost, propagate
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
