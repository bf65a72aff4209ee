"""Planes below and above quadratic functions hold wherever the deployed block is asked."""

import numpy as np
import pytest

from dovetail.core.quadratic import QuadraticFunction
from dovetail.methods.quadratic_mip.curve import Curve
from dovetail.reformulations.quadratic_form import QuadraticForm

SLACK = 1e-12


def curve_of(Q, centre, lower, upper):
    function = QuadraticFunction.form(Q, centre)
    n = len(Q)
    return Curve.of(n, np.arange(n), function, (lower, upper), SLACK), QuadraticForm(Q, centre)


@pytest.mark.parametrize("seed", range(12))
def test_planes_hold_for_what_the_block_says(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    Q = rng.normal(size=(n, n))
    Q = Q @ Q.T if seed % 3 == 0 else Q + Q.T
    lower = rng.normal(size=n) - 2.0
    upper = lower + rng.random(n) * 5.0
    upper[rng.random(n) < 0.2] = lower[0] if n == 1 else upper[0] + 9.0
    upper = np.maximum(lower, upper)
    curve, form = curve_of(Q, rng.normal(size=n), lower, upper)
    X = lower + rng.random((200, n)) * (upper - lower)
    Y = form.predict(X)[:, 0]
    planes = [*curve.envelope(), *(curve.below(x) for x in X[:5]), *(curve.above(x) for x in X[:5])]
    for plane in planes:
        missed = [plane.missed(np.append(x, y)) for x, y in zip(X, Y, strict=True)]
        assert max(missed) <= 0.0


def test_tangents_touch_convex_curves():
    curve, form = curve_of(np.array([[2.0, 1.0], [1.0, 3.0]]), np.zeros(2), -np.ones(2), np.ones(2))
    x = np.array([0.3, -0.7])
    plane = curve.below(x)
    assert -1e-10 < plane.missed(np.append(x, form.predict(x[None])[0])) <= 0.0


def test_one_square_needs_no_limits():
    endless = np.full(1, np.inf)
    curve, form = curve_of(np.array([[3.0]]), np.array([0.1]), -endless, endless)
    assert curve.above(np.zeros(1)) is None
    for at in (0.1, 0.1 + 1e-12, -7.0, 1e9):
        plane = curve.below(np.array([at]))
        for x in (0.1, at, -1e12, 1e-7, at * (1.0 + 1e-15), 1e15):
            assert plane.missed(np.array([x, form.predict(np.array([[x]]))[0, 0]])) <= 0.0


def test_mixed_squares_without_limits_have_no_planes():
    endless = np.full(2, np.inf)
    curve, _ = curve_of(np.array([[1.0, -1.0], [-1.0, 2.0]]), np.zeros(2), -endless, endless)
    assert curve.below(np.zeros(2)) is None and not curve.envelope()


def test_products_have_their_four_planes():
    curve, _ = curve_of(np.array([[0.0, 0.5], [0.5, 0.0]]), np.zeros(2), np.zeros(2), np.array([2.0, 3.0]))
    planes = curve.envelope()
    highest = min(-(p.slopes @ [1.0, 1.5] + p.constant) for p in planes if p.sign < 0)
    lowest = max(p.slopes @ [1.0, 1.5] + p.constant for p in planes if p.sign > 0)
    assert (lowest, highest) == (pytest.approx(0.0, abs=1e-9), pytest.approx(3.0, abs=1e-9))
