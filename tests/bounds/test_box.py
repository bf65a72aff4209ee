"""Boxes hold every feasible point, where large numbers cancel too."""

from fractions import Fraction

import numpy as np

import dovetail as dt
from dovetail.bounds.box import propagate
from tests.conftest import FULL

SEEDS = range(3000 if FULL else 200)


def test_no_feasible_point_is_cut_off():
    """A row with entries up to 1e9 whose side is what a random point makes of it, rounded away from it."""
    for seed in SEEDS:
        chance = np.random.default_rng(seed)
        n = int(chance.integers(2, 7))
        A = chance.normal(size=(3, n)) * 10.0 ** chance.integers(-3, 10, (3, n))
        x = chance.uniform(-10.0, 10.0, n)
        exact = [sum((Fraction(a) * Fraction(v) for a, v in zip(row, x, strict=True))) for row in A.tolist()]
        high = np.array([np.nextafter(float(value), np.inf) for value in exact])
        low = np.array([np.nextafter(float(value), -np.inf) for value in exact])
        box = propagate(dt.Mip(np.zeros(n), A, low, high, -10.0, 10.0))
        assert np.all(box.lower <= x), seed
        assert np.all(x <= box.upper), seed


def test_boxes_are_still_worth_having():
    box = propagate(dt.Mip([0.0, 0.0], [[1.0, 1.0]], [-np.inf], [1.0], 0.0, np.inf))
    assert np.allclose(box.upper, 1.0, atol=1e-6)
