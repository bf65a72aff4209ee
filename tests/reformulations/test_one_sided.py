"""Indicators as one-sided rows: the most that each can be is rounded up, never down."""

from fractions import Fraction

import numpy as np
import pytest

import dovetail as dt
from dovetail.bounds.box import Box
from dovetail.core.special_constraints import Indicator
from dovetail.reformulations.indicators import OneSided


@pytest.mark.parametrize("seed", range(20))
def test_the_most_is_no_less_than_in_exact_arithmetic(seed):
    rng = np.random.default_rng(seed)
    n = 30
    scale = 10.0 ** rng.integers(-6, 7, size=n)
    box = Box(np.append(0.0, -scale * rng.random(n)), np.append(1.0, scale * rng.random(n)))
    mip = dt.Mip(np.zeros(n + 1), lower=box.lower, upper=box.upper, integer=[True] + [False] * n)
    entries = rng.normal(size=n)
    sides = OneSided.of(mip, [Indicator(0, 1, range(1, n + 1), entries, -1.0, 1.0, "c")], box)
    for sign, most in zip((1.0, -1.0), sides.most(box), strict=True):
        exact = sum(
            Fraction(sign * c) * Fraction(float(box.upper[j + 1] if sign * c > 0 else box.lower[j + 1]))
            for j, c in enumerate(entries)
        )
        assert Fraction(float(most)) >= exact
        assert most == pytest.approx(float(exact), rel=1e-9, abs=1e-9 * float(np.max(scale)))


def test_a_binary_that_the_box_fixes():
    mip = dt.Mip([0.0, 0.0], lower=[0, -1], upper=1, integer=[True, False])
    indicator = Indicator(0, 1, [1], [1.0], -np.inf, 0.0, "c")
    low, high = np.array([0.0, -1.0]), np.array([1.0, 1.0])
    assert OneSided.of(mip, [indicator], Box(np.array([1.0, -1.0]), high)).always.tolist() == [True]
    assert OneSided.of(mip, [indicator], Box(low, np.array([0.0, 1.0]))).count == 0
    assert OneSided.of(mip, [indicator], Box(low, high)).always.tolist() == [False]


def test_the_binary_in_its_own_row_is_switched_off():
    mip = dt.Mip([0.0, 0.0], lower=[0, -1], upper=1, integer=[True, False])
    box = Box(mip.lower, mip.upper)
    sides = OneSided.of(mip, [Indicator(0, 1, [0, 1], [5.0, 1.0], -np.inf, 0.0, "c")], box)
    assert sides.most(box) == pytest.approx([1.0])  # not 6: b is 0
