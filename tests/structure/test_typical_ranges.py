"""Stretches: always finite, taken from the network where nothing else says, refused where they must be."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.run.budget import Budget
from dovetail.structure.boxes import input_box, require_finite_inputs, typical_ranges
from tests.small import linear_net


def test_free_outputs_get_the_stretch_of_what_the_network_says():
    mip = dt.Mip(cost=[0.0, 1.0, 1.0], lower=[-1.0, -np.inf, -np.inf], upper=[1.0, np.inf, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([100.0]), [0], [1], name="first")
    problem.add_predictor(linear_net([0.5]), [1], [2], name="second")
    reach = typical_ranges(problem, input_box(problem, Budget(10.0)))
    assert np.isfinite(reach.lower).all()
    assert np.isfinite(reach.upper).all()
    assert 150 < reach.upper[1] - reach.lower[1] < 400
    assert 75 < reach.upper[2] - reach.lower[2] < 300
    assert reach.points["second"].shape == (64, 1)


def test_the_same_seed_gives_the_same_points():
    mip = dt.Mip(cost=[0.0, 1.0], lower=-1.0, upper=1.0)
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1], name="net")
    box = input_box(problem, Budget(10.0))
    assert np.array_equal(
        typical_ranges(problem, box, 3).points["net"], typical_ranges(problem, box, 3).points["net"]
    )
    assert not np.array_equal(
        typical_ranges(problem, box, 3).points["net"], typical_ranges(problem, box, 4).points["net"]
    )


def test_an_input_without_any_bound_is_refused_by_name():
    mip = dt.Mip(cost=[0.0, 1.0], lower=[0.0, -1.0], upper=[np.inf, 1.0], names=["flow", "y"])
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), ["flow"], ["y"])
    with pytest.raises(dt.ModelError, match=r"flow is the input of a network.*Give it bounds"):
        require_finite_inputs(problem, input_box(problem, Budget(10.0)))


def test_an_input_that_another_network_writes_is_not():
    mip = dt.Mip(cost=[0.0, 0.0, 1.0], lower=[0.0, -np.inf, -np.inf], upper=[1.0, np.inf, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1])
    problem.add_predictor(linear_net([1.0]), [1], [2])
    require_finite_inputs(problem, input_box(problem, Budget(10.0)))
    assert len(problem.blocks) == 2
