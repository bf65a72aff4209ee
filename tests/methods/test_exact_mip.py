"""Whole MIPs: what a host without predictors, or with all of them replaced, is given to."""

import itertools

import numpy as np
import pytest

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.branching import confirmed
from dovetail.methods import exact_mip
from dovetail.reformulations.reformulated import Reformulated
from dovetail.run.bound import Support
from dovetail.run.engine import MipAnswer, MipStatus
from tests.contexts import context_of
from tests.tanh import problem_of


def test_a_mip_without_predictors_gets_all_the_time():
    rng = np.random.default_rng(0)
    A = rng.integers(1, 60, (8, 60)).astype(float)
    p = problem_of(
        -rng.integers(5, 40, 60), A, np.full(8, -np.inf), A.sum(axis=1) * 0.4, upper=1.0, integer=True
    )
    result = dt.solve(p, time_limit=4.0, log=False)
    assert result.stop_reason == "proved" or result.seconds > 3.5


def switches(floor, *, column_floor=-np.inf):
    """Four switches and what a function says of them: 16 points, the most 10 ** 1.3."""
    mip = dt.Mip(
        cost=[1.0, 1.0, 1.0, 1.0, 0.0], A=[[0.0, 0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0, 0.0]],
        row_lower=[floor, -np.inf], row_upper=[np.inf, 3.0], lower=[0.0, 0.0, 0.0, 0.0, column_floor],
        upper=[1.0, 1.0, 1.0, 1.0, np.inf], integer=[True, True, True, True, False],
        names=["a", "b", "c", "d", "y"], row_names=["enough", "at most three"],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: (X @ [[1.0], [2.0], [3.0], [4.0]]) ** 1.3, ["a", "b", "c", "d"], ["y"])
    return problem


def _said(chosen):
    return float(np.dot(chosen, [1.0, 2.0, 3.0, 4.0])) ** 1.3


EVERY = list(itertools.product((0.0, 1.0), repeat=4))
BEST = max(_said(chosen) for chosen in EVERY if sum(chosen) <= 3.0)
"""By enumeration: b, c and d."""
FLOOR = BEST + 49.0
NEAREST = min(max(FLOOR - _said(chosen), sum(chosen) - 3.0) for chosen in EVERY)
"""All four: a little more is said of them than of three, and one too many is missed by less."""


@pytest.mark.parametrize("problem", [switches(FLOOR), switches(0.0, column_floor=FLOOR)])
def test_no_combination_of_a_table_will_do(problem):
    result = dt.solve(problem, log=False)
    assert (result.status, result.stop_reason) == ("infeasible", "proved")
    assert "every combination" in result.message
    assert "without the predictors" not in result.message
    assert f"by {NEAREST:.1e}" in result.message
    assert "from 3 to 4" in result.hints[0]


def test_a_combination_that_just_does_is_found():
    result = dt.solve(switches(BEST), log=False)
    assert result.status == "optimal"
    assert result.value(["a", "b", "c", "d"]).tolist() == [0.0, 1.0, 1.0, 1.0]


def test_within_the_tolerance_nothing_is_called_infeasible():
    assert dt.solve(switches(BEST + 9e-7), dt.Auto(effort=1), log=False).status != "infeasible"


def test_without_the_second_word_nothing_is_proved(monkeypatch):
    monkeypatch.setattr(exact_mip, "has_no_point", lambda *_: False)
    result = dt.solve(switches(FLOOR), dt.Auto(effort=1), log=False)
    assert result.status == "no_solution"
    assert "which is no proof" in result.message


def test_a_number_that_only_the_check_lets_through_is_not_forgotten():
    """0.1 x <= 0.2999995 leaves 2 to the table, and the check takes 3."""
    mip = dt.Mip(
        cost=[0.0, 1.0], A=[[0.1, 0.0], [0.0, 1.0]], row_lower=[-np.inf, 8.5], row_upper=[0.2999995, np.inf],
        upper=[5.0, 99.0], integer=[True, False],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X**2, [0], [1])
    assert dt.check(problem, [3.0, 9.0]).within()
    assert dt.solve(problem, dt.Auto(effort=1), log=False).status != "infeasible"


def test_a_confirming_tree_that_failed_is_not_grown_again(monkeypatch):
    """For the same goal the engine's word is what there is; a lower goal gets a tree of its own."""
    mip = dt.Mip([1.0, 1.0], [[1.0, 1.0]], [0.5], [np.inf], upper=3.0, integer=True)
    context, trees = context_of(dt.Problem(mip)), []

    def unproved(mip, answer, settings, budget, cutoff):
        trees.append(min(answer.value, cutoff))
        return confirmed.Confirmed(answer.bound, answer.x, support=Support.ENGINE)

    monkeypatch.setattr(exact_mip, "stands", unproved)
    written = Reformulated.start(context.problem, propagate(mip))
    run = exact_mip._WholeMip(context, written, None)
    for value in (2.0, 2.0, 2.5, 1.0, 1.5):
        answer = MipAnswer(MipStatus.OPTIMAL, np.array([1.0, 0.0]), value, value)
        found = run._confirmed(answer, written, context.budget, np.inf)
        assert found.bound <= value and found.support is Support.ENGINE
    assert trees == [2.0, 1.0]
    nothing = MipAnswer(MipStatus.INFEASIBLE, None, np.inf, -np.inf)
    run._confirmed(nothing, written, context.budget, 9.0)  # that takes a proof
    assert trees == [2.0, 1.0, 9.0]


@pytest.mark.parametrize("told", [1.0, 2.0])
def test_a_bound_told_on_the_way_that_closes_the_gap_is_looked_at(monkeypatch, told):
    """x + y >= 0.5 over whole numbers costs 1; the engine tells its bound, and has no time to end."""
    mip = dt.Mip([1.0, 1.0], [[1.0, 1.0]], [0.5], [np.inf], upper=3.0, integer=True)
    context = context_of(dt.Problem(mip))
    known = np.array([2.0, 0.0]) if told == 2.0 else np.array([1.0, 0.0])  # the one is no optimum
    context.incumbent.offer(known, "start")

    def tells(self, written, budget, cutoff, heard):
        heard(MipAnswer(MipStatus.LIMIT, None, np.inf, told))
        return None, "its time was over"

    monkeypatch.setattr(exact_mip._WholeMip, "_asked", tells)
    run = exact_mip._WholeMip(context, Reformulated.start(context.problem, propagate(mip)), None)
    run.bound(context.budget)
    assert context.incumbent.bound <= 1.0 + 1e-9
    assert context.incumbent.proof.support is Support.PROOF
    assert context.incumbent.bound >= 1.0 - 1e-4
