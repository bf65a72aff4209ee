"""Objects of the user's own in a solve: methods, predictors that fail, options of numpy's types."""

import io

import numpy as np
import pytest

import dovetail as dt
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome
from tests.small import knapsack
from tests.tanh import problem_of, tanh_problem


class Guess:
    """The smallest method: one candidate."""

    name = "guess"

    def solve(self, context):
        context.incumbent.offer(np.array([1.0, 0.0, 0.0, 1.0, 0.0]), self.name)
        return MethodOutcome(StopReason.ITERATIONS, 1, "guessed")


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


def test_a_predictor_that_fails_on_the_way_leaves_the_best_point():
    calls = 0

    def tired(X):
        nonlocal calls
        calls += 1
        if calls > 60:
            raise RuntimeError("tired")
        return X[:, :1] ** 2

    p = problem_of([0.1, 1.0], lower=[-1.0, -np.inf], upper=[1.0, np.inf])
    p.add_predictor(tired, [0], [1])
    with pytest.raises(RuntimeError, match="tired") as caught:
        dt.solve(p, log=False)
    assert caught.value.result.x is not None or caught.value.result.status == "error"


def test_numpy_options_and_a_short_repr():
    p, _ = tanh_problem()
    method = dt.DualDecomposition(rho=np.float32(3.0), iterations=np.int64(2))
    result = dt.solve(p, method, log=np.bool_(False), seed=np.int32(0), time_limit=np.float32(5.0))
    assert dt.Result.from_json(result.to_json()).iterations == 2
    assert len(repr(result)) < 200
    log = io.StringIO()
    dt.solve(p, method, log=log)
    assert "status" in log.getvalue()


class Silent:
    name = "silent"

    def solve(self, context):
        return None


class Nameless:
    def solve(self, context):
        raise AssertionError("never reached")


class Short:
    name = "short"

    def solve(self, context):
        context.incumbent.offer(np.zeros(1), "test")


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (Silent(), "must return a MethodOutcome"),
        (Nameless(), "has no name"),
        (Short(), "offer a value for each of the 2 variables"),
    ],
)
def test_mistakes_in_a_method_of_ones_own_are_named(method, said):
    problem = dt.Problem(dt.Mip([0.0, 1.0], lower=[-1.0, -5.0], upper=[1.0, 5.0]))
    problem.add_predictor(lambda X: X**2, [0], [1])
    with pytest.raises(dt.OptionError, match=said):
        dt.solve(problem, method, log=False)
