"""What an engine answers is looked at: points are judged, values recomputed, impossible bounds dropped."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.run.engine import MipStatus, Quadratic, certified

MIP = dt.Mip([1.0, 1.0], [[1.0, 1.0]], 1.0, 3.0, upper=4.0, integer=[True, False], row_names=["sum"])
COST = Quadratic.linear(MIP.cost)


def answer(x, bound=0.0, **changes):
    return certified("toy", MIP, COST, np.array(x), MipStatus.OPTIMAL, bound, **changes)


def test_a_quadratic_is_what_its_formula_says():
    objective = Quadratic(np.array([1.0, 0.0]), 3.0, np.array([0.0, 2.0]), np.array([0.0, 1.0]))
    assert objective.value(np.array([2.0, 4.0])) == 2.0 + 3.0 + 0.5 * 2.0 * 9.0


def test_nearly_whole_becomes_whole_and_the_value_is_ours():
    said = answer([1.0000001, 0.5])
    assert said.x.tolist() == [1.0, 0.5]
    assert said.value == 1.5
    assert said.exact


@pytest.mark.parametrize(
    ("x", "culprit"),
    [([np.nan, 1.0], "not finite"), ([0.5, 0.5], "fractional"), ([4.0, 4.0], "misses sum")],
)
def test_points_that_are_none_are_errors(x, culprit):
    with pytest.raises(dt.EngineError, match=culprit):
        answer(x)


@pytest.mark.parametrize("bound", [2.0, np.nan])
def test_a_bound_above_the_point_s_own_value_is_dropped(bound):
    assert answer([1.0, 0.5], bound).bound == -np.inf
    assert answer([1.0, 0.5], 1.25).bound == 1.25


def test_bounds_of_one_solve_replace_the_columns_own():
    said = answer([2.0, 1.0], bounds=(np.zeros(2), np.array([2.0, 0.25])))
    assert said.x.tolist() == [2.0, 0.25]
