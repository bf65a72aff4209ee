"""Completing candidates: columns outside the blocks are chosen anew, and outputs are moved only at need."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.check import Checker, Violation
from dovetail.mip.highs import HighsEngine
from dovetail.run.budget import Budget
from dovetail.run.completion import Completed, Completion
from dovetail.run.incumbent import UNMOVED, Incumbent
from dovetail.run.stopwatch import Stopwatch
from tests.small import linear_net


def test_the_other_columns_are_chosen_for_the_inputs_that_are_kept():
    mip = dt.Mip(
        cost=[0.0, 0.0, 1.0],
        A=[[0.0, 1.0, -1.0]],
        row_lower=[-np.inf],
        row_upper=[0.0],
        upper=[4.0, 9.0, 9.0],
    )
    problem = dt.Problem(mip)  # z >= y = 2 x, and z costs
    problem.add_predictor(linear_net([2.0]), [0], [1])
    completion = Completion(
        problem, Checker(problem), HighsEngine(), Budget(30.0), seed=0, threads=1, steady=False
    )
    for z in (0.0, 9.0):  # too little, and too much
        found = completion.complete(np.array([1.5, 0.0, z]), lambda x: True, own=False)
        assert found.x == pytest.approx([1.5, 3.0, 3.0]) and found.violation.within() and not found.moved


@pytest.mark.parametrize("loss", [0.5 * UNMOVED, 2.0 * UNMOVED])
def test_a_point_whose_outputs_were_not_moved_is_worth_a_small_loss(loss, monkeypatch):
    """Offered in either order, the same point stays."""
    problem = dt.Problem(dt.Mip(cost=[1.0], lower=1.0, upper=2.0))
    offers = [(np.array([1.0]), True), (np.array([1.0 + loss]), False)]
    kept = []
    for order in (offers, offers[::-1]):
        incumbent = Incumbent(problem, HighsEngine(), Budget(30.0), Stopwatch())
        for x, moved in order:
            given = Completed(x, Violation(), moved)
            monkeypatch.setattr(incumbent.completion, "complete", lambda *a, given=given, **k: given)
            incumbent.offer(x, "test")
        kept.append(incumbent.moved)
    assert kept == [loss > UNMOVED] * 2
