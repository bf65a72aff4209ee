"""What inputs are when nothing is done: given by equalities, distances, their own bounds, or not at all."""

import numpy as np

import dovetail as dt
from dovetail.run.problem_facts import untouched_inputs


def problem(A, row_lower, row_upper, **limits):
    """Two inputs, one class, and whatever else the rows are over."""
    columns = np.shape(A)[1]
    lower, upper = np.zeros(columns), np.full(columns, 10.0)
    lower[:2] = -10.0
    for j, (low, high) in limits.items():
        lower[int(j[1:])], upper[int(j[1:])] = low, high
    upper[2] = 1.0
    mip = dt.Mip(np.zeros(columns), A, row_lower, row_upper, lower, upper)
    made = dt.Problem(mip)
    block = made.add_predictor(
        lambda X: X[:, :1] - 1.0, [[0, 1]], [[2]], output_type="classification", threshold=0.0
    )
    return untouched_inputs(made, block)[0]


def test_an_equality_with_moves():
    values = problem([[1, 0, 0, -1, 1], [0, 2, 0, 0, 1]], [3.0, 5.0], [3.0, 5.0])
    assert np.allclose(values, [3.0, 2.5])


def test_a_distance_in_two_rows_and_a_fixed_input():
    values = problem([[1, 0, 0, -1], [-1, 0, 0, -1]], [-np.inf, -np.inf], [0.3, -0.3], c1=(4.0, 4.0))
    assert np.allclose(values, [0.3, 4.0])


def test_rows_that_say_nothing():
    blend = problem([[1, 1, 0, 0]], [1.0], [1.0])  # two inputs in one row
    assert np.isnan(blend).all()
    capacity = problem([[1, 0, 0, 1]], [-np.inf], [4.0])  # one side only
    assert np.isnan(capacity).all()
    forced = problem([[1, 0, 0, -1]], [3.0], [3.0], c3=(2.0, 5.0))  # the move cannot be 0
    assert np.isnan(forced).all()
    output = problem([[1, 0, -1, 0]], [3.0], [3.0])  # tied to the class
    assert np.isnan(output).all()
