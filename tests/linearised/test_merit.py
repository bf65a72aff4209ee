"""Merit functions: by hand, and a held point before any that misses."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.linearised.scaled_problem import CompletedMerit, ScaledProblem, l1_merit
from tests.contexts import context_of
from tests.small import linear_net


def test_merits_are_cost_and_penalised_distance():
    problem = dt.Problem(
        dt.Mip(cost=[1.0, 2.0, 5.0], lower=[-1.0, -9.0, 0.0], upper=[1.0, 9.0, 1.0], offset=7.0)
    )
    problem.add_predictor(linear_net([2.0]), [0], [1])
    problem.add_predictor(linear_net([1.0]), [0], [2], output_type="classification", epsilon=0.1)
    context = context_of(problem)
    scaled = ScaledProblem.of(context)
    Z = np.array([[0.5, 1.0, 1.0], [0.5, 4.0, 0.0], [-0.5, -1.0, 1.0]])
    penalty = np.array([10.0, 100.0])
    merits = l1_merit(scaled, Z, scaled.networks.values(Z), penalty)
    assert merits == pytest.approx(
        [
            0.5 + 2.0 + 5.0,
            0.5 + 8.0 + 10.0 * 3.0 + 100.0 * (0.5 + 0.1),  # class 0 is claimed at logit 0.5
            -0.5 - 2.0 + 5.0 + 100.0 * (0.5 + 0.1),  # class 1 at logit -0.5
        ]
    )


def test_a_held_point_beats_any_that_misses_a_row():
    """However cheap the other one is; among those that miss, less is better."""
    mip = dt.Mip(
        cost=[-1.0, 0.0], A=[[2.0, 0.0]], row_lower=[-np.inf], row_upper=[2.0], lower=[0.0, -9.0], upper=9.0
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1])
    merit = CompletedMerit(ScaledProblem.of(context_of(problem)))
    held, just, far = merit.of(np.array([[1.0, 1.0], [1.0 + 1e-6, 1.0], [3.0, 3.0]]))
    assert held == -1.0
    assert held < just < far
    assert merit.of(np.array([[np.nan, 0.0]]))[0] == np.inf
