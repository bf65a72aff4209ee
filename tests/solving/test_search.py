"""Sub-solvers that lie or break down never become a wrong point or bound."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.run.engine import MipStatus
from tests.conftest import sample
from tests.small import bowl, knapsack

TRUE_RUN = LoadedHighs.run


def lying(change):
    """HiGHS as it is, but for what `change` does to its reply."""

    def run(self, *asked, **how):
        status, x, bound = TRUE_RUN(self, *asked, **how)
        return change(status, x, bound)

    return run


LIES = {
    "a point that is NaN": lambda s, x, b: (s, None if x is None else np.full_like(x, np.nan), b),
    "an infeasible point": lambda s, x, b: (s, None if x is None else np.ones_like(x), b),
    "fractional integers": lambda s, x, b: (s, None if x is None else np.full_like(x, 0.4), b),
    "a bound above the point": lambda s, x, b: (s, x, 1e9),
    "a bound that is NaN": lambda s, x, b: (s, x, np.nan),
    "no point": lambda s, x, b: (MipStatus.LIMIT, None, -np.inf),
    "infeasible": lambda s, x, b: (MipStatus.INFEASIBLE, None, -np.inf),
    "unbounded": lambda s, x, b: (MipStatus.UNBOUNDED, None, -np.inf),
}


@pytest.mark.parametrize(
    ("lie", "make", "truth"),
    [*((lie, knapsack, -4.0) for lie in LIES), *((lie, bowl, 0.28125) for lie in sample(LIES, 2))],
)
def test_a_lie_never_becomes_a_wrong_point_or_bound(lie, make, truth, monkeypatch):
    problem = make()
    monkeypatch.setattr(LoadedHighs, "run", lying(LIES[lie]))
    result = dt.solve(problem, dt.Auto(effort=1), log=False)
    if result.x is not None:
        assert dt.check(problem, result.x).within()
        # what others prove, after a HiGHS that gets nowhere, is the optimum
        assert result.status != "optimal" or result.objective == pytest.approx(truth, abs=1e-5)
        assert result.bound is None or result.bound <= result.objective + 1e-9
    else:
        assert result.status in ("no_solution", "error", "infeasible")
    assert result.bound is None or result.bound <= truth + 1e-6


def test_infeasible_is_not_believed_at_once(monkeypatch):
    """One wrong "infeasible" is caught by asking again in another way."""
    answers = iter([True])

    def once(self, *asked, **how):
        if next(answers, False):
            return MipStatus.INFEASIBLE, None, -np.inf
        return TRUE_RUN(self, *asked, **how)

    monkeypatch.setattr(LoadedHighs, "run", once)
    result = dt.solve(knapsack(), "dual-decomposition", log=False)
    assert result.status == "feasible"
    assert "did not confirm" in result.message


def test_an_engine_that_breaks_down_ends_the_search_and_keeps_the_point(monkeypatch):
    from dovetail.coupling.augmented_lagrangian import AugmentedLagrangian

    true_step, steps = AugmentedLagrangian.mip_step, []

    def third_time_unlucky(self, *arguments):
        steps.append(1)
        if len(steps) == 3:
            raise dt.EngineError("it broke")
        return true_step(self, *arguments)

    monkeypatch.setattr(AugmentedLagrangian, "mip_step", third_time_unlucky)
    result = dt.solve(bowl(), "dual-decomposition", log=False)
    assert result.stop_reason == "error"
    assert result.status == "feasible"
    assert "it broke" in result.message
