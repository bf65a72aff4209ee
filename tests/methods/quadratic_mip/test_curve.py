"""Planes below and above quadratic functions hold wherever the deployed block is asked."""

import math

import numpy as np
import pytest

from dovetail.core.quadratic import QuadraticFunction
from dovetail.methods.quadratic_mip.curve import QuadCurve
from dovetail.reformulations.quadratic_blocks import QuadraticForm

SLACK = 1e-12


def curve_of(Q, centre, lower, upper):
    function = QuadraticFunction.form(Q, centre)
    n = len(Q)
    return QuadCurve.of(n, np.arange(n), function, (lower, upper), SLACK), QuadraticForm(Q, centre)


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


ENDLESS = np.full(2, np.inf)


def test_columns_that_are_not_read_are_left_out():
    """The square of the second of two inputs, whatever the first does; and of one that is fixed."""
    for fixed in (False, True):
        lower, upper = (
            np.array([3.0 if fixed else -np.inf, -np.inf]),
            np.array([3.0 if fixed else np.inf] * 2),
        )
        upper[1] = np.inf
        curve = QuadCurve.of(5, np.array([7, 8]), QuadraticFunction.square(1, 2.0), (lower, upper), np.inf)
        assert curve.inputs.tolist() == [8] and curve.single
        assert QuadCurve.of(
            5, np.array([7, 8]), QuadraticFunction.form(np.diag([0.0, 1.0])), (lower, upper), 0.0
        ).single
    constant = QuadCurve.of(5, np.array([7, 8]), QuadraticFunction.square(0, 1.0), (lower, upper), np.inf)
    assert not constant.single and constant.inputs.size == 0
    assert constant.below(np.zeros(9)).constant == pytest.approx(4.0)
    assert -constant.above(np.zeros(9)).constant == pytest.approx(4.0)


def test_what_is_handed_on_needs_no_limits():
    curve = QuadCurve.of(2, np.arange(2), QuadraticFunction.entry(1), (-ENDLESS, ENDLESS), np.inf)
    z = np.array([0.0, 4.0, 4.0])
    assert [curve.below(z).missed(z), curve.above(z).missed(z)] == [0.0, 0.0]
    assert curve.above(z).missed(z + np.eye(3)[2]) == 1.0


def test_a_product_of_fixed_columns_may_be_negative():
    ends = np.array([-1.0, 1.0])
    curve = QuadCurve.of(2, np.arange(2), QuadraticFunction.product(0, 1), (ends, ends), 0.0)
    assert not curve.convex and not curve.squares
    assert curve.below(np.zeros(3)).constant == pytest.approx(-1.0)


@pytest.mark.parametrize("ends", [(1e6, 1e6), (1e10, 1e-4)])
def test_small_squares_beside_a_product_are_not_forgotten(ends):
    Q = 1e-15 * np.array([[1.0, 1.0], [1.0, 1.0]])
    upper = np.array(ends)
    curve, form = curve_of(Q, np.zeros(2), -upper, upper)
    curve_with = QuadCurve.of(
        2, np.arange(2), QuadraticFunction.form(np.array([[1e-15, 0.5], [0.5, 0.0]])), (-upper, upper), 0.0
    )
    X = np.array([[a, b] for a in (-1.0, -0.3, 0.5, 1.0) for b in (-1.0, 0.0, 1.0)]) * upper
    for made, Y in ((curve, form.predict(X)[:, 0]), (curve_with, X[:, 0] * X[:, 1] + 1e-15 * X[:, 0] ** 2)):
        for plane in made.envelope():
            assert max(plane.missed(np.append(x, y)) for x, y in zip(X, Y, strict=True)) <= 0.0


@pytest.mark.parametrize("limit", [3.0, np.inf])
def test_constants_that_cancel_leave_their_rounding(limit):
    """(x + 0.1 y - 0.1 z + ...)^2 with large fixed columns: the sum of these has few digits of its own."""
    weights = np.array([1.0, 0.1, -0.1, 0.7, -0.7])
    form = QuadraticForm(np.outer(weights, weights), np.zeros(5))
    at = np.array([1e9, 1e9 + 1.0, 3e8 + 0.1, 3e8])
    lower, upper = np.append(-limit, at), np.append(limit, at)
    curve = QuadCurve.of(5, np.arange(5), form.function, (lower, upper), np.inf)
    assert curve.single
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-3.0, 3.0, 100), *(np.full(100, value) for value in at)])
    said = [form.predict(part)[:, 0] for part in (X, X[::-1])] + [
        np.array([math.fsum(weights * row) ** 2 for row in X])
    ]
    for x in X[:10]:
        plane = curve.below(x)
        for Y, rows in zip(said, (X, X[::-1], X), strict=True):
            assert max(plane.missed(np.append(row, y)) for row, y in zip(rows, Y, strict=True)) <= 0.0


def test_a_single_square_is_known_once_it_has_limits():
    curve = QuadCurve.of(2, np.arange(2), QuadraticFunction.square(1), (-ENDLESS, ENDLESS), np.inf)
    assert curve.slack == np.inf
    assert 0.0 < curve.within(np.full(3, -10.0), np.full(3, 10.0)).slack < 1e-9
