"""The one place that decides what an answer is called."""

import io

import numpy as np
import pytest

import dovetail as dt
from dovetail.run.bound import Bound
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome
from dovetail.run.result import Status
from dovetail.solving.host import HostRelaxation
from dovetail.solving.status import conclude, stop_reason
from tests.contexts import context_of
from tests.small import knapsack

BOUNDED = dt.Mip([1.0], lower=0.0, upper=9.0, integer=True, sense="max", offset=1.0)
"""Maximised: the incumbent's bound is in minimisation form, -(x + 1)."""


def concluded(x=None, bound=-np.inf, reason=StopReason.STALLED, interrupted=False, **host):
    context = context_of(dt.Problem(BOUNDED))
    if x is not None:
        context.incumbent.offer(np.array([x]), "test")
    context.incumbent.raise_bound(Bound(bound))
    if interrupted:
        context.budget.stop(StopReason.INTERRUPT)
    return conclude(BOUNDED, context, HostRelaxation(**host), MethodOutcome(reason, 1))


def test_nothing_found_is_no_proof():
    assert concluded().status == "no_solution"
    assert concluded(reason=StopReason.ERROR).status == "error"
    assert concluded(reason=StopReason.TIME).stop_reason == "time"


def test_a_proof_of_the_host_comes_first():
    found = concluded(infeasible=True, reason=StopReason.TIME)
    assert (found.status, found.stop_reason) == ("infeasible", "proved")
    found = concluded(4.0, ray=True)
    assert (found.status, found.stop_reason, found.objective) == ("unbounded", "proved", None)


def test_optimal_is_a_bound_that_meets_the_point_in_the_users_sense():
    found = concluded(9.0, bound=-10.0, reason=StopReason.TIME, interrupted=True)
    assert (found.status, found.stop_reason, found.bound, found.bound_kind) == (
        "optimal",
        "proved",
        10.0,
        "proven",
    )
    found = concluded(4.0, bound=-10.0, reason=StopReason.TIME)
    assert (found.status, found.stop_reason, found.bound) == ("feasible", "time", 10.0)
    assert concluded(4.0).bound_kind == "none"


@pytest.mark.parametrize("interrupted", [True, False])
def test_an_interrupt_is_the_reason_unless_something_is_proved(interrupted):
    assert concluded(4.0, interrupted=interrupted).stop_reason == ("interrupt" if interrupted else "stalled")
    assert stop_reason(Status.FEASIBLE, StopReason.TIME, interrupted) == (
        "interrupt" if interrupted else "time"
    )
    assert stop_reason(Status.INFEASIBLE, StopReason.TIME, interrupted) == "proved"


def test_a_contradicted_bound_is_dropped_with_a_word(monkeypatch):
    monkeypatch.setenv("DOVETAIL_STRICT", "0")
    monkeypatch.setattr("dovetail.solving.job.analyse_host", lambda *a, **k: HostRelaxation(bound=100.0))
    result = dt.solve(knapsack(), log=False)
    assert result.bound is not None and result.bound <= result.objective + 1e-9
    assert result.status == "optimal" and result.bound_source != "host"
    assert "host proved that no solution is below" in result.message


@pytest.mark.parametrize("forgotten", [True, False])
def test_what_nothing_limits_is_named(forgotten):
    mip = dt.Mip([0.0, 1.0, -1.0], lower=[0.0, -9.0, 0.0], upper=[1.0, 9.0, np.inf], names=["x", "y", "z"])
    problem = dt.Problem(mip)
    if not forgotten:
        problem.add_predictor(lambda X: X, ["x"], ["y"])
    lines = io.StringIO()
    result = dt.solve(problem, log=lines)
    assert result.status == "unbounded"
    assert "nothing limits z" in result.message
    assert "nothing limits z" in " ".join(lines.getvalue().split())
    assert ("no predictor is in this model" in result.message) == forgotten
