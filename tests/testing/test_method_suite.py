"""A method in one file passes the suite, and one that breaks a promise does not."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from dovetail.run.bound import Bound
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome
from dovetail.run.progress import Progress
from dovetail.testing import MethodSuite
from dovetail.testing.problems import bowl, knapsack


@dataclass(frozen=True)
class RandomSearch:
    """Random steps from the best point so far, cut to the bounds."""

    iterations: int = 300
    step: float = 0.5

    name = "random-search"

    def solve(self, context):
        rng = np.random.default_rng(context.seed)
        mip, progress = context.problem.mip, Progress(context, most=self.iterations)
        lower = np.where(np.isfinite(mip.lower), mip.lower, -10.0)
        upper = np.where(np.isfinite(mip.upper), mip.upper, 10.0)
        while True:
            best = context.incumbent.x
            centre = best if best is not None else rng.uniform(lower, upper)
            moved = centre + self.step * (upper - lower) * rng.normal(size=lower.size)
            objective = context.incumbent.offer(np.clip(moved, lower, upper), "random")
            outcome = progress.record(objective, objective)
            if outcome is not None:
                return outcome


class TestRandomSearch(MethodSuite):
    method = RandomSearch()
    brief = RandomSearch(iterations=20)
    endless = RandomSearch(iterations=10**9)


def ignores_the_seed(method, context):
    return method.solve(replace(context, seed=int(np.random.default_rng().integers(2**31))))


def ignores_the_callback(method, context):
    for _ in range(5):
        context.incumbent.offer(context.problem.mip.upper.copy(), "upper")
    return MethodOutcome(StopReason.ITERATIONS, 5)


def claims_a_proof(method, context):
    value = context.incumbent.offer(np.zeros(context.problem.mip.n_columns), "zero")
    context.incumbent.raise_bound(Bound(value))
    return MethodOutcome(StopReason.PROVED, 1)


def touches_the_problem(method, context):
    cost = context.problem.mip.cost
    cost.flags.writeable = True
    cost += 1.0
    return method.solve(context)


@dataclass(frozen=True)
class Broken:
    """Random search that breaks a promise."""

    fault: object
    name = "broken"

    def solve(self, context):
        return self.fault(RandomSearch(iterations=20), context)


@pytest.mark.parametrize(
    ("fault", "test", "arguments"),
    [
        (ignores_the_seed, "test_solved_twice_it_has_the_same_iterates_and_is_left_as_it_was", []),
        (ignores_the_callback, "test_a_callback_sees_and_stops", []),
        (touches_the_problem, "test_solved_twice_it_has_the_same_iterates_and_is_left_as_it_was", []),
        (claims_a_proof, "test_points_are_verified_and_claims_are_modest", [knapsack, -4.0]),
    ],
)
def test_a_broken_promise_is_found(fault, test, arguments):
    class Suite(MethodSuite):
        method = Broken(fault)

    with pytest.raises(AssertionError):
        getattr(Suite(), test)(*arguments)


def test_a_method_that_claims_too_much_of_itself():
    class Suite(MethodSuite):
        method = RandomSearch()
        takes_any_predictor = False

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        Suite().test_points_are_verified_and_claims_are_modest(bowl, None)
