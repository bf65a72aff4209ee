"""Quadratic functions: factors say what the matrix says, and a single square stays one."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.quadratic import QuadraticFunction, factors


@pytest.mark.parametrize("seed", range(5))
def test_factors_multiply_out_to_the_matrix(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    Q = rng.normal(size=(n, n))
    Q = Q + Q.T
    F, G = factors(Q)
    assert len(F) + len(G) <= n
    np.testing.assert_allclose(F.T @ F - G.T @ G, Q, atol=1e-12)


def test_what_is_convex_has_no_directions_down():
    half = np.random.default_rng(0).normal(size=(2, 5))
    F, G = factors(half.T @ half)
    assert len(F) == 2 and len(G) == 0


def test_one_square_is_as_it_was_written():
    (row,), none = factors(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    assert row.tolist() == [1.0, -1.0] and len(none) == 0
    none, (row,) = factors(np.array([[-4.0, 2.0], [2.0, -1.0]]))
    assert row.tolist() == [2.0, -1.0] and len(none) == 0


def test_functions_of_single_and_of_two_inputs():
    square, product = QuadraticFunction.square(1, 2.0), QuadraticFunction.product(0, 2)
    x = np.array([2.0, 5.0, 7.0])
    twice, entry = QuadraticFunction.product(1, 1), QuadraticFunction.entry(2)
    for function, value in ((square, 9.0), (product, 14.0), (twice, 25.0), (entry, 7.0)):
        z = x[function.places]
        apart = z - function.centre
        assert apart @ function.Q @ apart + function.linear @ z == value


def test_a_function_is_as_large_as_what_it_reads():
    functions = dt.Square().describe(np.zeros((1, 784))).quadratic(784)
    assert len(functions) == 784
    assert sum(function.Q.size for function in functions) == 784
