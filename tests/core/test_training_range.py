"""Training ranges: what lies beyond them is named, the farthest first; what lies on them is not."""

import numpy as np
import pandas as pd
import pytest

import dovetail as dt
from dovetail.core.training_range import TrainingRange, extrapolations
from tests.small import linear_net


def problem_with(data):
    problem = dt.Problem(dt.Mip(np.zeros(6), lower=-100.0, upper=100.0))
    net = linear_net([1.0, 1.0])
    problem.add_predictor(net, [[0, 1], [2, 3]], [[4], [5]], data=data, name="net")
    return problem


def test_the_farthest_by_its_own_range_comes_first():
    data = pd.DataFrame({"hot": [0.0, 1.0], "wide": [0.0, 100.0]})
    found = extrapolations(problem_with(data), np.array([2.0, 50.0, 0.5, -60.0, 0.0, 0.0]))
    assert [(where.sample, where.feature) for where in found] == [(0, "hot"), (1, "wide")]
    assert [where.amount for where in found] == [1.0, 60.0]
    assert str(found[1]) == "net, sample 1: wide = -60 is 60 below 0"


def test_the_edge_of_the_data_is_inside():
    data = np.array([[0.0, 0.0], [1.0, 1.0], [np.nan, 0.5]])  # a missing value is passed over
    assert extrapolations(problem_with(data), np.array([0.0, 1.0, 1.0, 0.0, 0.0, 0.0])) == ()


def test_a_block_without_data_has_no_range():
    assert extrapolations(problem_with(None), np.full(6, 99.0)) == ()


@pytest.mark.parametrize("data", [np.ones((3, 1)), [["a", "b"]], np.empty((0, 2)), [[np.nan, 1.0]]])
def test_data_that_does_not_fit_is_refused(data):
    with pytest.raises(dt.PredictorError, match="net: data"):
        TrainingRange.of("net", data, 2)
