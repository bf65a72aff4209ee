"""What bounds alone say, part by part: no more than the written-out program says, and no less."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.bounds import box
from dovetail.bounds.safe_lp import least_cost, no_whole_number
from dovetail.structure.boxes import class_limits
from tests.structure.stated_problems import campaign, floors, net, treatments


@pytest.mark.parametrize("build", [treatments, campaign, floors])
def test_the_least_cost_is_that_of_the_box(build):
    problem = build(7)
    mip = problem.mip.minimised()
    lower, upper, _ = class_limits(problem, mip.lower, mip.upper)
    assert np.isclose(least_cost(problem), box.least_cost(mip, lower, upper), rtol=1e-12)


def test_it_is_rounded_outward():
    problem = dt.Problem(dt.Mip(cost=[0.1] * 3, lower=0.1, upper=1.0))
    exact = 3 * 0.1 * 0.1  # of numbers that no float is
    assert exact - 1e-15 < least_cost(problem) <= exact


@pytest.mark.parametrize(("upper", "column"), [(0.9, None), (0.6, 3)])
def test_integers_and_classes_between_whole_numbers(upper, column):
    problem = dt.Problem(sense="min")
    most = np.array([2.0, 2.0, 2.0, upper if column else 2.0])
    made = problem.add_template(
        4, {"y": dt.Family(lower=0.3 if column else 0.0, upper=most), "x": dt.Family(upper=1.0)}
    )
    problem.add_predictor(net(1), made["x"], made["y"], output_type="classification", threshold=0.0)
    assert no_whole_number(problem) == column
    assert no_whole_number(dt.Problem(dt.Mip([1.0, 1.0], lower=0.2, upper=0.8, integer=[False, True]))) == 1
