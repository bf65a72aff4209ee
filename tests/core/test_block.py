"""What decides a class."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.block import classes_of


def test_a_single_value_counts_from_its_threshold_on():
    values = np.array([[0.2], [0.5], [np.nextafter(0.5, 0.0)]])
    assert classes_of(values, 0.5).tolist() == [[0.0], [1.0], [0.0]]
    assert classes_of(np.array([[0.0], [-1e-300]])).tolist() == [[1.0], [0.0]]


def test_of_several_the_largest_and_of_equal_ones_the_first():
    values = np.array([[1.0, 3.0, 2.0], [2.0, 2.0, 1.0]])
    assert classes_of(values, 0.5).tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]


@pytest.mark.parametrize("inputs", [[[3, 4], [5, 6]], [[4, 3], [5, 6]], [[3, 5], [4, 6]], [[0, 0], [1, 1]]])
def test_inputs_are_read_into_an_array_of_its_own(inputs):
    """Whether they are one piece of the point or not."""
    problem = dt.Problem(dt.Mip(cost=np.zeros(9), upper=1.0))
    block = problem.add_predictor(lambda X: X.sum(axis=1), np.array(inputs), [[7], [8]])
    x = np.arange(9.0)
    found = block.read(x)
    assert found.tolist() == inputs
    found += 100.0
    assert np.array_equal(x, np.arange(9.0))


def test_consecutive_columns_are_looked_at_where_they_are():
    problem = dt.Problem(dt.Mip(cost=np.zeros(9), upper=1.0))
    block = problem.add_predictor(lambda X: X.sum(axis=1), [[3, 4], [5, 6]], [[8], [7]])
    x = np.arange(9.0)
    assert np.shares_memory(block.view(x), x)
    assert block.outputs_of(x).tolist() == [[8.0], [7.0]]
    block.write(x, np.array([[1.0], [2.0]]))
    assert x[7:].tolist() == [2.0, 1.0]
    other = dt.Problem(dt.Mip(cost=np.zeros(9), upper=1.0))
    block = other.add_predictor(lambda X: X.sum(axis=1), [[4, 3], [5, 6]], [[7], [8]])
    assert not np.shares_memory(block.view(x), x)
    block.write(x, np.array([[3.0], [4.0]]))
    assert x[7:].tolist() == [3.0, 4.0]
