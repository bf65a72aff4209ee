"""The suite for engines catches engines that lie."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.mip.highs import HighsEngine
from dovetail.run.engine import MipStatus
from dovetail.testing import EngineSuite


class Lying(HighsEngine):
    """HiGHS, with answers that are changed on their way back."""

    def __init__(self, lie):
        self.lie = lie

    def load(self, mip, columns, *, seed=0, threads=1):
        return LyingSession(super().load(mip, columns, seed=seed, threads=threads), self.lie)


class LyingSession:
    def __init__(self, inner, lie):
        self.inner, self.lie, self.kept = inner, lie, {}

    def solve(self, objective, **options):
        return self.lie(self, objective, options)


def honest(session, objective, options):
    return session.inner.solve(objective, **options)


def worse_point(session, objective, options):
    answer = honest(session, objective, options)
    centre = replace(objective, cost=0.0 * objective.cost)  # forgets the costs
    x = session.inner.solve(centre, **options).x
    return answer if x is None else replace(answer, x=x, value=objective.value(x))


def bound_too_high(session, objective, options):
    answer = honest(session, objective, options)
    return replace(answer, bound=answer.bound + 0.01)


def fractions(session, objective, options):
    answer = honest(session, objective, options)
    return answer if answer.x is None else replace(answer, x=answer.x + 1e-9)


def first_objective_kept(session, objective, options):
    session.kept.setdefault("objective", objective)
    return honest(session, session.kept["objective"], options)


def bounds_kept(session, objective, options):
    session.kept.update({name: value for name, value in options.items() if name == "bounds"})
    return honest(session, objective, {**options, **session.kept})


def all_bad_is_infeasible(session, objective, options):
    answer = honest(session, objective, options)
    return answer if answer.x is not None else replace(answer, status=MipStatus.INFEASIBLE)


@pytest.mark.parametrize(
    ("lie", "test", "arguments"),
    [
        (worse_point, "test_finds_the_optimum_again_and_again", ["mixed"]),
        (bound_too_high, "test_finds_the_optimum_again_and_again", ["continuous"]),
        (fractions, "test_finds_the_optimum_again_and_again", ["integer"]),
        (first_objective_kept, "test_a_change_of_weights_is_seen", []),
        (bounds_kept, "test_bounds_for_one_solve_only", []),
        (all_bad_is_infeasible, "test_infeasible_and_unbounded_are_said", [[0]]),
        (all_bad_is_infeasible, "test_no_time_is_a_limit_not_a_verdict", []),
        (all_bad_is_infeasible, "test_a_stop_request_ends_a_solve", []),
    ],
)
def test_a_lie_is_found(lie, test, arguments):
    class Honest(EngineSuite):
        engine = Lying(honest)

    class Suite(EngineSuite):
        engine = Lying(lie)

    getattr(Honest(), test)(*arguments)
    with pytest.raises(AssertionError):
        getattr(Suite(), test)(*arguments)


def test_an_engine_that_refuses_what_it_is_for_or_takes_what_it_is_not_for():
    class Shy(HighsEngine):
        def refuses(self, mip, columns):
            return "integers are not for me" if np.any(mip.integer) else None

    class Everything(EngineSuite):
        engine = Shy()

    class Continuous(EngineSuite):
        engine = Shy()
        takes = ("continuous",)

    class Modest(EngineSuite):
        engine = HighsEngine()
        takes = ("continuous",)

    Continuous().test_finds_the_optimum_again_and_again("binary")
    for suite in (Everything(), Modest()):
        with pytest.raises(AssertionError):
            suite.test_finds_the_optimum_again_and_again("binary")
