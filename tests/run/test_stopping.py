"""The stopping rule: its order, its counting, and that nothing else ends a method."""

import math

import pytest

import dovetail as dt
from dovetail.run.bound import Bound
from dovetail.run.budget import Budget, StopReason
from dovetail.run.incumbent import over
from dovetail.run.progress import Progress, StoppingRule, worthwhile
from tests.contexts import context_of
from tests.small import knapsack


def run(rule, gains, ended=None):
    return [rule.after(gained=gained, over=ended) for gained in gains]


def test_patience_counts_what_brought_nothing_in_a_row():
    rule = StoppingRule(patience=2)
    assert run(rule, [False, True, False, False]) == [None, None, None, StopReason.STALLED]
    assert rule.done == 4


def test_as_many_iterations_as_asked_for():
    assert run(StoppingRule(most=3, patience=9), [True] * 3) == [None, None, StopReason.ITERATIONS]


@pytest.mark.parametrize("reason", [StopReason.PROVED, StopReason.TIME, StopReason.INTERRUPT])
def test_what_is_over_for_all_comes_first(reason):
    assert run(StoppingRule(most=1, patience=1), [False], reason) == [reason]


def test_without_limits_it_goes_on():
    assert set(run(StoppingRule(), [False] * 50)) == {None}


def test_a_proof_comes_before_the_clock():
    context = context_of(knapsack())
    x = context.problem.predict(context.problem.mip.lower.copy())
    assert context.incumbent.admit(x, "test") is not None
    assert over(context.incumbent, Budget(0.0)) is StopReason.TIME
    context.incumbent.raise_bound(Bound(context.problem.mip.sign * context.incumbent.objective))
    assert over(context.incumbent, Budget(0.0)) is StopReason.PROVED


@pytest.mark.parametrize("sense", ["min", "max"])
def test_a_target_ends_the_search_with_the_first_point_that_is_good_enough(sense):
    sign = 1.0 if sense == "min" else -1.0
    mip = dt.Mip(cost=[sign, -sign], upper=[3.0, 9.0], integer=[True, False], sense=sense)
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    for method in ("auto", "integer-search", dt.DualDecomposition(iterations=50)):
        result = dt.solve(problem, method, target=sign * 0.5, start=[0.0, 0.0], log=False)
        assert result.stop_reason in ("target", "proved"), method
        assert sign * result.objective <= 0.5
        assert result.iterations <= 1 or result.stop_reason == "proved", method


def test_a_target_out_of_reach_changes_nothing():
    results = [
        dt.solve(knapsack(), dt.SequentialLinear(starts=2), target=target, log=False)
        for target in (None, -1e9)
    ]
    assert results[0].objective == results[1].objective
    assert results[0].stop_reason == results[1].stop_reason != "target"


@pytest.mark.parametrize(
    ("before", "now", "counts"),
    [
        (math.nan, math.nan, False),
        (math.nan, 0.0, True),
        (0.0, -2e-6, True),
        (0.0, -5e-7, False),
        (1e6, 1e6 - 2.0, True),
        (1e6, 1e6 - 0.5, False),
    ],
)
def test_a_gain_within_tolerances_does_not_count(before, now, counts):
    assert worthwhile(before, now) == counts


def test_many_small_gains_count_together():
    """Gains of 4e-7 each: every third makes more than 1e-6."""
    context = context_of(knapsack())
    progress = Progress(context, patience=3)
    for step in range(12):
        context.incumbent.objective = -4e-7 * step
        assert progress.record(0.0) is None
    ends = [progress.record(0.0) for _ in range(3)]
    assert ends[-1] is not None and ends[-1].stop_reason is StopReason.STALLED
