"""Programs with curves give way to what is rounded, and no further."""

import numpy as np

import dovetail as dt
from dovetail.core.quadratic import QuadraticFunction
from dovetail.methods.quadratic_mip.curve import QuadCurve
from dovetail.methods.quadratic_mip.method import given_way, propagated

INPUTS = np.arange(2)


def square_of(lower, upper, slack, place=0):
    function = QuadraticFunction.square(place)
    return QuadCurve.of(2, INPUTS, function, (np.array(lower), np.array(upper)), slack)


def test_rows_and_bounds_give_way_by_what_is_rounded():
    mip = dt.Mip([1.0, 0.0, 0.0], [[1.0, 0.0, -2.0], [1.0, 1.0, 0.0]], [1.0, 0.0], [2.0, np.inf], 0.0, 5.0)
    wide = given_way(mip, [square_of([0.0, 0.0], [5.0, 5.0], 0.25)])
    slack = -wide.lower[2]
    assert 0.25 <= slack < 0.25 + 1e-9
    np.testing.assert_allclose(wide.row_lower, [1.0 - 2.0 * slack, 0.0])
    np.testing.assert_allclose(wide.row_upper, [2.0 + 2.0 * slack, np.inf])
    assert wide.lower[:2].tolist() == [0.0, 0.0] and wide.upper[2] == 5.0 + slack


def test_what_is_not_known_leaves_its_rows_open():
    mip = dt.Mip([1.0, 0.0, 0.0], [[1.0, 0.0, -2.0], [1.0, 1.0, 0.0]], [1.0, 0.0], [2.0, 3.0], 0.0, 5.0)
    product = QuadCurve.of(
        2, INPUTS, QuadraticFunction.product(0, 1), (np.zeros(2), np.full(2, np.inf)), np.inf
    )
    wide = given_way(mip, [product])
    assert wide.row_lower.tolist() == [-np.inf, 0.0] and wide.row_upper.tolist() == [np.inf, 3.0]


def test_a_bounded_square_bounds_what_is_squared_and_no_other():
    mip = dt.Mip([0.0, 0.0, 1.0], lower=-np.inf, upper=[np.inf, np.inf, 4.0])
    box = propagated(mip, [square_of([3.0, -np.inf], [3.0, np.inf], np.inf, place=1)])
    assert box.lower[2] == 0.0
    np.testing.assert_allclose([box.lower[1], box.upper[1]], [-2.0, 2.0], atol=1e-5)
    assert box.upper[0] == np.inf


def test_a_product_of_fixed_columns_bounds_nothing():
    ends = np.array([-1.0, 1.0])
    mip = dt.Mip([0.0, 0.0, 1.0], lower=[-1.0, 1.0, -9.0], upper=[-1.0, 1.0, 9.0])
    curve = QuadCurve.of(2, INPUTS, QuadraticFunction.product(0, 1), (ends, ends), 0.0)
    assert propagated(mip, [curve]).lower[2] == -9.0
