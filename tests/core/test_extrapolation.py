"""Inputs beyond what a predictor saw in training are named, the farthest first."""

import numpy as np

import dovetail as dt
from dovetail.core.extrapolation import extrapolations
from tests.small import linear_net


def trained_on(data):
    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, 1.0], lower=-9.0, upper=9.0))
    problem.add_predictor(linear_net([1.0, 1.0]), [0, 1], [2], name="net", data=data)
    return problem


def test_the_farthest_by_the_width_of_the_range_comes_first():
    problem = trained_on([[0.0, 0.0], [1.0, 10.0]])
    first, second = extrapolations(problem, np.array([-0.5, 12.0, 0.0]))
    assert (first.feature, first.value, first.lower, first.upper) == ("feature 0", -0.5, 0.0, 1.0)
    assert (second.feature, second.amount) == ("feature 1", 2.0)
    assert str(second) == "net, sample 0: feature 1 = 12 is 2 above 10"


def test_the_edge_and_rounding_beyond_it_are_not_named():
    problem = trained_on([[0.0, 0.0], [1.0, 10.0]])
    assert extrapolations(problem, np.array([1.0 + 1e-12, 10.0, 11.0])) == ()


def test_without_training_data_nothing_is_said():
    assert extrapolations(trained_on(None), np.array([99.0, 99.0, 0.0])) == ()
