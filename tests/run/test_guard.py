"""The guard: predictors are not asked when the time is over, and asked as ever before."""

import numpy as np
import pytest

from dovetail.run.budget import Budget, OutOfTime, StopReason
from dovetail.run.guard import BEGIN, Guard, unguarded
from tests.small import knapsack

POINT = np.array([1.0, 0.0, 0.0, 1.0, 0.0])


class Late(Budget):
    """A budget that has been over for so many seconds."""

    def __init__(self, seconds):
        super().__init__()
        self.stop(StopReason.TIME)
        self._seconds_late = seconds

    @property
    def late(self):
        return self._seconds_late


def test_in_time_the_problem_is_the_same():
    problem = knapsack()
    guarded = Guard(problem, Budget()).problem
    assert guarded.predict(POINT).tolist() == problem.predict(POINT).tolist()
    assert guarded.blocks[0].predictor is not problem.blocks[0].predictor


def test_a_call_may_begin_shortly_after_the_end_and_not_later():
    assert Guard(knapsack(), Late(0.5 * BEGIN)).problem.predict(POINT)[4] == -5.0
    with pytest.raises(OutOfTime):
        Guard(knapsack(), Late(2.0 * BEGIN)).problem.predict(POINT)


def test_the_last_check_passes_whatever_the_time():
    guard = Guard(knapsack(), Late(100.0))
    guard.armed = False
    assert guard.problem.predict(POINT)[4] == -5.0


def test_the_owner_s_predictor_is_not_guarded():
    problem = knapsack()
    Guard(problem, Late(100.0))
    assert problem.predict(POINT)[4] == -5.0


def test_behind_the_guard_is_the_owner_s_predictor():
    """For other processes; one that is not guarded is its owner's already."""
    problem = knapsack()
    predictor = problem.blocks[0].predictor
    assert unguarded(Guard(problem, Budget()).problem.blocks[0].predictor) is predictor
    assert unguarded(predictor) is predictor


def test_out_of_time_is_not_taken_for_somebody_s_trouble():
    assert not issubclass(OutOfTime, Exception)


def test_copies_are_made_once_for_a_solve():
    predictor = Guard(knapsack(), Budget()).problem.blocks[0].predictor
    assert predictor.snapshot("cpu") is predictor.snapshot("cpu")
