"""`solve`: options, refusals, and what happens when a sub-solver lies."""

import os
import signal

import numpy as np
import pytest

import dovetail as dt
from dovetail.mip.highs_model import HighsModel
from dovetail.run.context import MethodOutcome
from dovetail.run.engine import MipAnswer, MipStatus, Quadratic, certified
from tests.small import bowl, knapsack, linear_net


@pytest.mark.parametrize(
    ("options", "error", "culprit"),
    [
        ({"method": "simulated-annealing"}, dt.OptionError, "'simulated-annealing' is not known"),
        ({"method": 7}, dt.OptionError, "method is 7"),
        ({"time_limit": -1.0}, dt.OptionError, "time_limit .* is -1"),
        ({"time_limit": float("nan")}, dt.OptionError, "time_limit .* is nan"),
        ({"n_jobs": 0}, dt.OptionError, "n_jobs is 0"),
        ({"device": "cuda:77"}, dt.OptionError, "device 'cuda:77' cannot be used"),
        ({"device": "toaster"}, dt.OptionError, "device 'toaster' cannot be used"),
        ({"start": [1.0, 2.0]}, dt.OptionError, "start has 2 entries, expected 5"),
        ({"start": [1.0, np.nan, 0.0, 0.0, 0.0]}, dt.OptionError, "start is nan for b"),
        ({"start": [1.0, np.inf, 0.0, 0.0, 0.0]}, dt.OptionError, "start is inf for b"),
        ({"method": dt.DualDecomposition(engine="piqp")}, dt.UnsupportedError, "a is integer"),
        ({"seed": -1}, dt.OptionError, "seed is -1"),
        ({"seed": 1.5}, dt.OptionError, "seed is 1.5"),
        ({"time_limit": "10"}, dt.OptionError, "time_limit .* is '10'"),
        ({"n_jobs": 2.5}, dt.OptionError, "n_jobs is 2.5"),
        ({"callback": 3}, dt.OptionError, "callback is 3"),
        ({"log": "x.log"}, dt.OptionError, "log is 'x.log'"),
        ({"device": "meta"}, dt.OptionError, "device 'meta' cannot be used"),
        ({"method": dt.DualDecomposition}, dt.OptionError, "method is <class"),
        ({"method": dt.LogBarrier}, dt.OptionError, "method is <class"),
    ],
)
def test_refuses_before_any_work(options, error, culprit):
    with pytest.raises(error, match=culprit):
        dt.solve(knapsack(), **{"log": False, **options})


def test_takes_problems_only():
    with pytest.raises(dt.ModelError, match="builtins.list"):
        dt.solve([1, 2, 3])


def test_an_input_without_a_box_is_refused_only_where_a_scale_is_needed():
    mip = dt.Mip(cost=[1.0, 1.0], lower=[-np.inf, 0.0], upper=[np.inf, 50.0], names=["u", "y"])
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X[:, 0] ** 2, ["u"], ["y"])
    with pytest.raises(dt.ModelError, match="u is the input of a network"):
        dt.solve(problem, "dual-decomposition", log=False)
    for method in ("paper", "auto"):
        result = dt.solve(problem, method, log=False)
        assert result.objective == pytest.approx(-0.25, abs=1e-2)


def test_a_missing_engine_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyscipopt", None)
    with pytest.raises(dt.MissingDependencyError, match=r'pip install "dovetail\[scip\]"'):
        dt.solve(knapsack(), dt.DualDecomposition(engine="scip"), log=False)


# --- sub-solvers that lie --------------------------------------------------------------------------

TRUE_RUN = HighsModel.run


def lying(change):
    """HiGHS as it is, but for what `change` does to its reply."""

    def run(self, budget, gap):
        status, x, bound = TRUE_RUN(self, budget, gap)
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


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("make", [knapsack, bowl])
def test_a_lie_never_becomes_a_wrong_point_or_bound(lie, make, monkeypatch):
    problem = make()
    monkeypatch.setattr(HighsModel, "run", lying(LIES[lie]))
    result = dt.solve(problem, log=False)
    if result.x is not None:
        assert dt.check(problem, result.x).within()
        # SCIP, asked after a HiGHS that gets nowhere, does not lie: what it proves is the optimum
        assert result.status != "optimal" or (make is knapsack and result.objective == -4.0)
    else:
        assert result.status in ("no_solution", "error", "infeasible")
    assert result.bound is None or result.bound <= result.objective + 1e-9


def test_infeasible_is_not_believed_at_once(monkeypatch):
    """One wrong "infeasible" is caught by asking again in another way."""
    answers = iter([True])

    def once(self, budget, gap):
        if next(answers, False):
            return MipStatus.INFEASIBLE, None, -np.inf
        return TRUE_RUN(self, budget, gap)

    monkeypatch.setattr(HighsModel, "run", once)
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


MIP = dt.Mip(
    cost=[1.0, 1.0],
    A=[[1.0, 1.0]],
    row_lower=[1.0],
    row_upper=[2.0],
    lower=0.0,
    upper=5.0,
    integer=[True, False],
)
GOAL = Quadratic.linear(np.ones(2))


@pytest.mark.parametrize(
    ("x", "culprit"),
    [
        ([np.nan, 0.0], "not finite"),
        ([np.inf, 0.0], "not finite"),
        ([0.5, 1.0], "fractional"),
        ([0.0, 0.5], r"misses row\[0\]"),
        ([3.0, 0.0], r"misses row\[0\]"),
    ],
)
def test_engine_points_are_looked_at(x, culprit):
    with pytest.raises(dt.EngineError, match=culprit):
        certified("engine", MIP, GOAL, np.array(x), MipStatus.OPTIMAL, 0.0)


def test_engine_values_are_recomputed_and_impossible_bounds_dropped():
    answer = certified("engine", MIP, GOAL, np.array([1.0 + 1e-9, 0.0]), MipStatus.OPTIMAL, 7.0)
    assert isinstance(answer, MipAnswer)
    assert answer.value == 1.0
    assert answer.bound == -np.inf


def test_a_contradicted_bound_is_dropped_with_a_word(monkeypatch):
    from dovetail.analysis import host

    monkeypatch.setattr("dovetail.solving.job.analyse_host", lambda *a, **k: host.HostRelaxation(bound=100.0))
    result = dt.solve(knapsack(), log=False)
    assert result.bound is None
    assert result.status == "feasible"
    assert "contradicted" in result.message


def test_n_jobs_is_given_back():
    import torch

    before = torch.get_num_threads()
    dt.solve(bowl(), dt.DualDecomposition(iterations=1), n_jobs=2, log=False)
    assert torch.get_num_threads() == before


def test_the_profile_adds_up():
    result = dt.solve(bowl(), dt.DualDecomposition(iterations=5), log=False)
    shares = result.profile.shares()
    assert sum(shares.values()) == pytest.approx(1.0)
    assert set(shares) == {"engine", "network", "subsolver", "check", "rest"}
    total = sum(getattr(result.profile, name) for name in shares)
    assert total == pytest.approx(result.seconds, rel=0.05)


def test_class_probabilities_are_searched_as_logits():
    """A network that ends in a sigmoid: the class is decided at 0.5 and found."""
    import torch

    mip = dt.Mip(cost=[0.0, 1.0], lower=[-1.0, 0.0], upper=1.0, sense="max", integer=[False, True])
    problem = dt.Problem(mip)
    problem.add_predictor(
        torch.nn.Sequential(linear_net([40.0], -30.0), torch.nn.Sigmoid()),
        [0],
        [1],
        output_type="classification",
    )
    result = dt.solve(problem, log=False)
    assert result.status == "optimal"
    assert result.x[0] >= 0.75


def test_ctrl_c_in_the_last_moment_of_a_search_is_not_lost():
    """The search ends by itself; whoever calls in a loop must still hear of the interrupt."""

    class AboutToEnd:
        name = "about-to-end"

        def solve(self, context):
            os.kill(os.getpid(), signal.SIGINT)
            return MethodOutcome(dt.StopReason.ITERATIONS, 1)

    assert dt.solve(knapsack(), AboutToEnd(), log=False).stop_reason == "interrupt"
