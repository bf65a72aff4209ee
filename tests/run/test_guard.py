"""The guard: predictors are not asked when the time is over, and asked as ever before."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.run.budget import Budget, OutOfTime, StopReason
from dovetail.run.failures import is_users
from dovetail.run.guard import BEGIN, Guard, arrived, counter, unguarded
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
    guarded = Guard(Budget()).guarded(problem)
    assert guarded.predict(POINT).tolist() == problem.predict(POINT).tolist()
    assert guarded.blocks[0].predictor is not problem.blocks[0].predictor


def test_a_call_may_begin_shortly_after_the_end_and_not_later():
    assert Guard(Late(0.5 * BEGIN)).guarded(knapsack()).predict(POINT)[4] == -5.0
    with pytest.raises(OutOfTime):
        Guard(Late(2.0 * BEGIN)).guarded(knapsack()).predict(POINT)


def test_the_last_check_passes_whatever_the_time():
    guard = Guard(Late(100.0))
    guard.armed = False
    assert guard.guarded(knapsack()).predict(POINT)[4] == -5.0


def test_the_owner_s_predictor_is_not_guarded():
    problem = knapsack()
    Guard(Late(100.0)).guarded(problem)
    assert problem.predict(POINT)[4] == -5.0


def test_behind_the_guard_is_the_owner_s_predictor():
    """For other processes; one that is not guarded is its owner's already."""
    problem = knapsack()
    predictor = problem.blocks[0].predictor
    assert unguarded(Guard(Budget()).guarded(problem).blocks[0].predictor) is predictor
    assert unguarded(predictor) is predictor


def test_out_of_time_is_not_taken_for_somebody_s_trouble():
    assert not issubclass(OutOfTime, Exception)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_a_predictor_raises_is_marked(elsewhere):
    """In this process behind the guard, in another one where the block arrives."""

    def odd(X):
        if X[0, 0] == 2.0:
            raise ValueError("odd")
        return X

    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0]))
    block = problem.add_predictor(odd, [0], [1])
    block = arrived(block) if elsewhere else Guard(Budget()).guarded(problem).blocks[0]
    assert arrived(block) is block
    row, copied = np.full((1, 1), 2.0), block.predictor.snapshot("cpu")
    for ask in (lambda: block.predictor.predict(row), lambda: copied(torch.tensor(row))):
        with pytest.raises(ValueError, match="odd") as raised:
            ask()
        assert is_users(raised.value)


def test_layers_that_cannot_be_read_are_not_the_predictor_s_answer():
    def unreadable():
        raise ValueError("odd")

    problem = knapsack()
    object.__setattr__(problem.blocks[0].description, "layers", unreadable)
    with pytest.raises(ValueError, match="odd") as raised:
        Guard(Budget()).guarded(problem).blocks[0].description.layers()
    assert not is_users(raised.value)


def test_copies_are_made_once_for_a_solve():
    predictor = Guard(Budget()).guarded(knapsack()).blocks[0].predictor
    assert predictor.snapshot("cpu") is predictor.snapshot("cpu")


def test_every_sample_is_counted_whoever_asks():
    problem = knapsack()
    guard = Guard(Budget())
    guarded = guard.guarded(problem)
    predictor = guarded.blocks[0].predictor
    X = np.zeros((7, 4))
    predictor.predict(X)
    predictor.snapshot("cpu")(torch.zeros((5, 4), dtype=torch.float64))
    guarded.predict(POINT)
    counter(predictor)(100)
    assert guard.evaluations == 7 + 5 + 1 + 100
    problem.predict(POINT)
    counter(unguarded(predictor))(100)  # in another process nobody counts
    assert guard.evaluations == 113


def test_the_result_says_how_many():
    rows = []

    def summed(X):
        rows.append(len(X))
        return X.sum(axis=1, keepdims=True)

    problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    problem.add_predictor(summed, inputs=[0], outputs=[1])
    before = sum(rows)
    result = dt.solve(problem, dt.IntegerLocalSearch(rounds=2), log=False)
    asked = sum(rows) - before
    assert 0 < result.evaluations <= asked  # probes before the search are not counted
    assert result.trace[-1].evaluations <= result.evaluations
    assert dt.Result.from_json(result.to_json()).evaluations == result.evaluations


def test_a_copy_that_would_end_too_late_is_not_begun():
    """Before one was made, it is expected to take what the guard was told."""
    problem = knapsack()
    asked = Guard(Budget(1000.0), 100.0).guarded(problem).blocks[0].predictor
    assert asked.snapshot("cpu") is not None
    late = Guard(Budget(1000.0), 5000.0).guarded(problem).blocks[0].predictor
    with pytest.raises(OutOfTime):
        late.snapshot("cpu")


def test_a_predictor_says_once_what_it_computes():
    """Blocks of one predictor ask it once in a solve, and again in the next; a refusal is kept as well."""
    net, asked = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)), []
    problem = dt.Problem(dt.Mip(np.zeros(4), lower=-1.0, upper=1.0))
    for k in (0, 2):
        problem.add_predictor(net, [k], [k + 1])

    def program(features):
        asked.append(features)
        if features == 2:
            raise dt.UnsupportedError("two are one too many")
        return object()

    for block in problem.blocks:
        object.__setattr__(block.description, "program", program)
    shared = problem.blocks[0].predictor is problem.blocks[1].predictor
    first = Guard(Budget()).guarded(problem)
    one, other = (block.description.program(1) for block in first.blocks)
    assert (one is other) == shared and first.blocks[0].description.program(1) is one
    for _ in range(3):
        with pytest.raises(dt.UnsupportedError, match="one too many"):
            first.blocks[0].description.program(2)
    assert asked == ([1, 2] if shared else [1, 1, 2])
    assert Guard(Budget()).guarded(problem).blocks[0].description.program(1) is not one
