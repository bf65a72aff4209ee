"""Inputs beyond what a predictor saw in training are named, the farthest first."""

import numpy as np

import dovetail as dt
from dovetail.core.extrapolation import Extrapolation, extrapolations, notable
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
    assert str(second) == "net, sample 0: x[1] (feature 1) = 12 is 2 above 10"


def test_the_edge_and_rounding_beyond_it_are_not_named():
    problem = trained_on([[0.0, 0.0], [1.0, 10.0]])
    assert extrapolations(problem, np.array([1.0 + 1e-12, 10.0, 11.0])) == ()


def test_without_training_data_nothing_is_said():
    assert extrapolations(trained_on(None), np.array([99.0, 99.0, 0.0])) == ()


def test_what_is_nearer_than_a_hundredth_of_the_range_is_on_record_but_not_told():
    """The least value of a sample is 0.00124 where 0 is meant."""
    found = extrapolations(trained_on([[0.00124, 0.0], [5.0, 10.0]]), np.array([0.0, 10.2, 0.0]))
    assert [where.feature for where in found] == ["feature 1", "feature 0"]
    assert [where.feature for where in notable(found)] == ["feature 1"]


def test_a_feature_that_never_changed_is_left_by_more_than_rounding():
    (found,) = extrapolations(trained_on([[1.0, 0.0], [1.0, 10.0]]), np.array([1.0 + 1e-7, 5.0, 0.0]))
    assert not found.notable
    (found,) = extrapolations(trained_on([[1.0, 0.0], [1.0, 10.0]]), np.array([1.1, 5.0, 0.0]))
    assert found.notable


def test_the_column_stands_beside_the_feature_where_it_has_another_name():
    where = Extrapolation("net", 0, "heat", 9.0, 0.0, 1.0, "x[3]")
    assert str(where).startswith("net, sample 0: x[3] (heat) = 9 is 8 above 1")
    same = Extrapolation("net", 0, "heat", 9.0, 0.0, 1.0, "heat")
    assert str(same).startswith("net, sample 0: heat = 9")
