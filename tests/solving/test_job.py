"""A solve from the model to the result.

Where a solve begins.
"""

import os
import signal

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.modelling.snapshot import take_snapshot
from dovetail.run import engine as engines
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, Start
from dovetail.solving.starts import read_start
from tests.small import bowl, knapsack, linear_net


def test_takes_problems_only():
    with pytest.raises(dt.ModelError, match="builtins.list"):
        dt.solve([1, 2, 3])


def test_an_input_without_a_box_is_refused_only_where_a_scale_is_needed():
    mip = dt.Mip(cost=[1.0, 1.0], lower=[-np.inf, 0.0], upper=[np.inf, 50.0], names=["u", "y"])
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X[:, 0] ** 2, ["u"], ["y"])
    with pytest.raises(dt.ModelError, match="u is the input of a network"):
        dt.solve(problem, "dual-decomposition", log=False)
    for method in ("paper", "auto"):
        result = dt.solve(problem, method, log=False)
        assert result.objective == pytest.approx(-0.25, abs=1e-2)


def test_the_profile_adds_up():
    result = dt.solve(bowl(), dt.DualDecomposition(iterations=5), log=False)
    shares = result.profile.shares()
    assert sum(shares.values()) == pytest.approx(1.0)
    assert set(shares) == {"engine", "network", "subsolver", "check", "rest"}
    total = sum(getattr(result.profile, name) for name in shares)
    assert total == pytest.approx(result.seconds, rel=0.05)


def test_class_probabilities_are_searched_as_logits():
    """A network that ends in a sigmoid: the class is decided at 0.5 and found."""
    mip = dt.Mip(cost=[0.0, 1.0], lower=[-1.0, 0.0], upper=1.0, sense="max", integer=[False, True])
    problem = dt.Problem(mip)
    problem.add_predictor(
        torch.nn.Sequential(linear_net([40.0], -30.0), torch.nn.Sigmoid()),
        [0],
        [1],
        output_type="classification",
    )
    result = dt.solve(problem, log=False)
    assert result.status == "optimal"
    assert result.x[0] >= 0.75


def test_ctrl_c_in_the_last_moment_of_a_search_is_not_lost():
    """The search ends by itself; whoever calls in a loop must still hear of the interrupt."""

    class AboutToEnd:
        name = "about-to-end"

        def solve(self, context):
            os.kill(os.getpid(), signal.SIGINT)
            return MethodOutcome(dt.StopReason.ITERATIONS, 1)

    assert dt.solve(knapsack(), AboutToEnd(), log=False).stop_reason == "interrupt"


class _Nothing:
    """Ends at once, without a point."""

    name = "nothing"

    def solve(self, context):
        return MethodOutcome(dt.StopReason.STALLED, 1)


def test_a_host_too_large_to_be_asked_first_is_asked_at_last(monkeypatch):
    monkeypatch.setattr(engines, "PER_NONZERO", 1e4)
    limits = {"A": [[1.0, 0.0]], "row_lower": [5.0], "lower": 0.0}
    for upper, status in ((1.0, "infeasible"), (9.0, "feasible")):
        problem = dt.Problem(dt.Mip(cost=[1.0, 1.0], row_upper=[6.0], upper=upper, **limits))
        problem.add_predictor(linear_net([1.0]), [0], [1])
        result = dt.solve(problem, _Nothing(), log=False)
        assert result.status == status


class Counting:
    """Says what it was given of the time."""

    name = "counting"

    def solve(self, context):
        self.budget = context.budget
        return MethodOutcome(StopReason.ITERATIONS, 1)


def test_imports_are_on_the_clock(monkeypatch):
    monkeypatch.setattr("dovetail.run.environment.Interrupts.seconds", 300.0)
    method = Counting()
    result = dt.solve(knapsack(), method, time_limit=1000.0, log=False)
    assert 300.0 <= method.budget.seconds < 900.0
    assert result.seconds >= 300.0


@pytest.mark.parametrize(
    ("start", "culprit"),
    [
        ([1.0, 2.0], "start has 2 entries, expected 5"),
        ([1.0, np.nan, 0.0, 0.0, 0.0], "start is nan for b"),
        ([1.0, np.inf, 0.0, 0.0, 0.0], "start is inf for b"),
    ],
)
def test_refuses_before_any_work(start, culprit):
    with pytest.raises(dt.OptionError, match=culprit):
        dt.solve(knapsack(), start=start, log=False)


def test_a_result_of_another_problem():
    with pytest.raises(dt.OptionError, match="the result of another problem"):
        dt.solve(knapsack(), start=dt.solve(bowl(), log=False), log=False)


def test_a_result_brings_its_point_and_its_prices():
    before = dt.solve(bowl(), dt.DualDecomposition(iterations=3), log=False)
    start = read_start(take_snapshot(bowl()), before)
    assert start.x is before.x and start.multipliers is before.multipliers
    assert read_start(take_snapshot(bowl()), None) == Start()
