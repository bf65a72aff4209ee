"""Progress: iterations are put on record with what they found, and one of four things ends them."""

import numpy as np
import pytest

from dovetail.run.bound import Bound
from dovetail.run.budget import StopReason
from dovetail.run.progress import Progress
from tests.contexts import context_of
from tests.small import knapsack

GOOD, BETTER = np.array([0.0, 0.0, 0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0, 1.0, 0.0])


@pytest.fixture
def context():
    return context_of(knapsack())


def test_an_iteration_says_what_improved_the_incumbent(context):
    progress = Progress(context)
    context.incumbent.offer(GOOD, "first")
    assert progress.record(1.5) is None
    assert progress.record(1.5) is None
    first, second = context.monitor.trace
    assert (first.source, first.incumbent, first.lagrangian) == ("first", -2.0, 1.5)
    assert (second.iteration, second.source) == (2, "")


def test_it_ends_after_so_many_iterations(context):
    progress = Progress(context, most=2)
    assert progress.record(0.0) is None
    outcome = progress.record(0.0)
    assert (outcome.stop_reason, outcome.iterations) == (StopReason.ITERATIONS, 2)


def test_it_ends_when_nothing_comes_any_more_and_not_before(context):
    progress = Progress(context, patience=2)
    assert progress.record(0.0) is None
    context.incumbent.offer(GOOD, "late")
    assert progress.record(0.0) is None
    assert progress.record(0.0) is None
    assert progress.record(0.0).stop_reason is StopReason.STALLED


def test_it_ends_with_a_proof_first_of_all(context):
    context.incumbent.offer(BETTER, "best")
    context.incumbent.raise_bound(Bound(-4.0))
    context.budget.stop(StopReason.CALLBACK)
    assert Progress(context, most=1).record(0.0).stop_reason is StopReason.PROVED


def test_it_ends_when_somebody_asks(context):
    context.budget.stop(StopReason.CALLBACK)
    assert Progress(context).record(0.0).stop_reason is StopReason.CALLBACK
    assert Progress(context).exhausted().stop_reason is StopReason.CALLBACK


def test_seconds_belong_to_the_iteration_they_were_spent_in(context):
    context.stopwatch.totals["engine"] = 3.0
    progress = Progress(context)
    context.stopwatch.totals["engine"] += 2.0
    progress.record(0.0)
    progress.record(0.0)
    assert context.monitor.trace.column("mip_seconds") == [2.0, 0.0]
