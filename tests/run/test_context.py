"""The context: one frozen view of a solve, and methods that are known by what they offer."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import dovetail as dt
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome
from tests.contexts import context_of
from tests.small import knapsack


class Guess:
    """The smallest method: one candidate."""

    name = "guess"

    def solve(self, context):
        context.incumbent.offer(np.array([1.0, 0.0, 0.0, 1.0, 0.0]), self.name)
        return MethodOutcome(StopReason.ITERATIONS, 1, "guessed")


def test_a_method_sees_the_problem_and_cannot_exchange_it():
    context = context_of(knapsack())
    assert context.problem.mip.n_columns == 5
    with pytest.raises(FrozenInstanceError):
        context.problem = knapsack()


def test_any_object_with_a_name_and_solve_is_a_method():
    result = dt.solve(knapsack(), Guess(), log=False)
    assert (result.objective, result.method, result.iterations) == (-4.0, "guess", 1)
    assert result.stop_reason in ("iterations", "proved")


def test_a_start_is_in_the_context():
    seen = []

    class Looks(Guess):
        def solve(self, context):
            seen.append(context.start.x)
            return super().solve(context)

    dt.solve(knapsack(), Looks(), start=[0.0, 0.0, 0.0, 1.0, -2.0], log=False)
    assert seen[0].tolist() == [0.0, 0.0, 0.0, 1.0, -2.0]
