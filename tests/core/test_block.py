"""What decides a class.

Training ranges: read from arrays and frames, and what an answer does beyond them is named.
"""

import numpy as np
import pandas as pd
import pytest

import dovetail as dt
from dovetail.core.block import TrainingData, classes_of
from tests.small import linear_net


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


def beyond(x, data):
    """The extrapolations of a problem whose only point is `x`: two samples of two features."""
    x = np.asarray(x)
    outputs = x.reshape(2, 2).sum(axis=1)
    problem = dt.Problem(dt.Mip(np.zeros(6), lower=np.append(x, outputs), upper=np.append(x, outputs)))
    problem.add_predictor(linear_net([1.0, 1.0]), [[0, 1], [2, 3]], [[4], [5]], data=data, name="net")
    return dt.solve(problem, log=False).extrapolations


def test_ranges_have_the_names_of_the_frame_and_pass_over_what_is_missing():
    known = TrainingData.of("net", pd.DataFrame({"hot": [0.0, np.nan, 2.0], "wet": [5.0, 4.0, 6.0]}), 2).range
    assert (known.lower.tolist(), known.upper.tolist()) == ([0.0, 4.0], [2.0, 6.0])
    assert known.names == ("hot", "wet")
    assert TrainingData.of("net", np.ones((3, 2)), 2).names == ("feature 0", "feature 1")


def test_the_farthest_by_its_own_range_comes_first():
    data = pd.DataFrame({"hot": [0.0, 1.0], "wide": [0.0, 100.0]})
    found = beyond([2.0, 50.0, 0.5, -60.0], data)
    assert [(where.sample, where.feature) for where in found] == [(0, "hot"), (1, "wide")]
    assert [where.amount for where in found] == [1.0, 60.0]
    assert str(found[1]) == "net, sample 1: x[3] (wide) = -60 is 60 below 0"


def test_the_edge_of_the_data_is_inside():
    assert beyond([0.0, 1.0, 1.0, 0.0], np.array([[0.0, 0.0], [1.0, 1.0]])) == ()


def test_a_block_without_data_has_no_range():
    assert beyond([99.0, 99.0, 99.0, 99.0], None) == ()


@pytest.mark.parametrize("data", [np.ones((3, 1)), [["a", "b"]], np.empty((0, 2)), [[np.nan, 1.0]]])
def test_data_that_does_not_fit_is_refused(data):
    with pytest.raises(dt.PredictorError, match="net: data"):
        TrainingData.of("net", data, 2)
