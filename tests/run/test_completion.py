"""Completing candidates: columns outside the blocks are chosen anew, and outputs are moved only at need.

Points moved onto rows within the room of their columns, and no farther.

What is excluded has no point, by an LP of scipy's; much of what has none is excluded.
"""

import numpy as np
import pytest
from scipy.optimize import linprog

import dovetail as dt
from dovetail.core.check import Checker, Violation
from dovetail.mip.highs import HighsEngine
from dovetail.run.budget import Budget
from dovetail.run.completion import Completed, Completion, RepairBounds, near_equations, nearly_met, onto_rows
from dovetail.run.incumbent import UNMOVED, Incumbent
from dovetail.run.work import Stopwatch
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


ALL = np.array([True, True])


def two_rows():
    A = [[2.0, -1.0, 0.0], [0.0, 0.0, 1.0]]
    lower, upper = [-5.0, -5.0, 0.0], [5.0, 5.0, 0.0]
    return dt.Mip([0.0] * 3, A=A, row_lower=[1.0, -9.0], row_upper=[1.0, 9.0], lower=lower, upper=upper)


def test_rows_and_bounds_are_met_within_the_room():
    mip, x, room = two_rows(), np.array([0.5001, 0.0, 1e-4]), np.array([1e-4, 3e-4, 2e-4])
    moved = onto_rows(mip, x, room, ALL)
    assert np.all(np.abs(moved - x) <= room) and moved[2] == 0.0
    assert 2.0 * moved[0] - moved[1] == pytest.approx(1.0, abs=1e-12)
    assert onto_rows(mip, x, np.array([1e-5, 1e-4, 2e-4]), ALL) is None  # the row needs 2e-4
    assert onto_rows(mip, x, np.array([1e-4, 3e-4, 0.0]), ALL) is None  # the bound
    assert onto_rows(mip, x, np.array([0.0, 0.0, 2e-4]), ~ALL).tolist() == [0.5001, 0.0, 0.0]  # no row asked
    assert onto_rows(mip, np.array([0.5, 0.0, 0.0]), np.zeros(3), ALL).tolist() == [0.5, 0.0, 0.0]


def test_only_equations_that_are_nearly_met_are_worth_a_look():
    mip, loose = two_rows(), np.array([True, True, True])
    assert near_equations(mip, np.array([3.00001, 5.0, 0.0]), loose, ALL)
    assert not near_equations(mip, np.array([3.0, 5.0, 0.0]), loose, ALL)  # nothing is missed
    assert not near_equations(mip, np.array([3.1, 5.0, 0.0]), loose, ALL)  # too far
    assert not near_equations(mip, np.array([3.00001, 5.0, 0.0]), ~loose, ALL)  # nothing there is rounded
    assert not near_equations(mip, np.array([3.00001, 5.0, 0.0]), loose, ~ALL)  # others see to that row
    assert not near_equations(mip, np.array([3.000005, 5.00001, 0.0]), loose, ALL)  # a bound with room


def test_what_is_nearly_met_is_so_by_the_size_of_its_columns():
    mip = dt.Mip([0.0, 0.0], A=[[1.0, -1.0]], row_lower=0.0, row_upper=0.0, upper=1e6)
    near = [nearly_met(mip, np.array([1e4 + off, 1e4])) for off in (0.0, 1.0, 3.0)]
    assert near == [True, True, False] and not nearly_met(mip, np.array([2e-4, 0.0]))


def test_a_side_that_leaves_room_is_not_moved_onto():
    """There are answers on the right side of it."""
    one = np.array([True])
    row = dt.Mip([0.0], A=[[1.0]], row_lower=-9.0, row_upper=1.0, upper=2.0)
    for mip, rows in ((row, one), (dt.Mip([0.0], upper=1.0), one[:0])):
        assert not near_equations(mip, np.array([1.00001]), one, rows)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_excluded_has_no_point(seed):
    rng = np.random.default_rng(seed)
    n, m = 6, 5
    A = rng.choice([0.0, 0.0, 1.0, -1.0, 2.5], (m, n))
    lower, upper = np.where(rng.random(n) < 0.3, -np.inf, -rng.random(n)), rng.random(n)
    upper[rng.random(n) < 0.3] = np.inf
    row_lower = np.where(rng.random(m) < 0.4, -np.inf, rng.normal(size=m))
    row_upper = np.where(
        np.isfinite(row_lower) & (rng.random(m) < 0.5), row_lower, row_lower.clip(-1.0) + 2.0
    )
    mip = dt.Mip(np.zeros(n), A, row_lower, row_upper, lower, upper)
    kept, x = rng.random(n) < 0.5, rng.normal(size=n)
    excluded = RepairBounds(mip, kept).exclude(x)
    low, high = np.where(kept, x, lower), np.where(kept, x, upper)
    sides = np.concatenate([row_upper, -row_lower])
    known = np.isfinite(sides)
    answer = linprog(
        np.zeros(n), np.vstack([A, -A])[known], sides[known], bounds=np.stack([low, high], axis=1)
    )
    assert not (excluded and answer.status == 0)


def test_amounts_that_equations_ask_for():
    """x - up + down = w with x given: what it takes to be there is more than there is."""
    mip = dt.Mip(
        np.zeros(3), [[1.0, -1.0, 1.0], [0.0, 1.0, 0.0]], [2.0, -np.inf], [2.0, 0.5], [-9.0, 0.0, 0.0],
        [9.0, np.inf, np.inf],
    )  # fmt: skip
    bounds = RepairBounds(mip, np.array([True, False, False]))
    assert bounds.exclude(np.array([2.6, 0.0, 0.0]))
    assert not bounds.exclude(np.array([2.4, 0.0, 0.0]))
    assert not bounds.exclude(np.array([1.0, 0.0, 0.0]))
