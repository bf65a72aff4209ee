"""Algorithm 2: its gradient, its schedule, its penalties, and what the incumbent makes of its points."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.mip.highs import HighsEngine
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.run.incumbent import Incumbent
from dovetail.run.monitor import Monitor
from dovetail.run.work import Stopwatch
from dovetail_study.problems.water import water
from dovetail_study.single_step_gradient import _Penalised
from tests.conftest import FULL
from tests.small import Parabola, linear_net, random_mlp


def searching(problem):
    budget, stopwatch = Budget(60.0), Stopwatch()
    incumbent = Incumbent(problem, HighsEngine(), budget, stopwatch)
    return SolveContext(problem, incumbent, budget, Monitor(budget), stopwatch)


def chained():
    """Two networks, the second fed by the first; a row without outputs, a row with, a bounded output."""
    mip = dt.Mip(
        cost=[1.0, -0.5, 0.3, 2.0],
        A=[[1.0, 1.0, 0.0, 0.0], [0.5, 0.0, 1.0, -1.0]],
        row_lower=[0.2, -np.inf],
        row_upper=[0.4, -0.3],
        lower=[-1.0, -1.0, -np.inf, 0.1],
        upper=[1.0, 1.0, np.inf, 0.2],
        sense="max",
    )
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(2, seed=1), [0, 1], [2], name="first")
    problem.add_predictor(random_mlp(2, seed=2), [0, 2], [3], name="second")
    return problem


def penalised_by_hand(problem, x, linear, network):
    """The paper's line 4 in numpy, outputs by the predictors themselves."""
    mip = problem.mip
    z = problem.predict(x)
    activity = mip.A @ z
    missed = np.maximum(activity - mip.row_upper, 0) + np.maximum(mip.row_lower - activity, 0)
    outside = np.maximum(z - mip.upper, 0) + np.maximum(mip.lower - z, 0)
    total = -mip.cost @ z + linear * missed[0] ** 2
    return total + network * (missed[1] ** 2 + outside[2] ** 2 + outside[3] ** 2)


def test_the_gradient_is_that_of_the_penalised_objective():
    problem = chained()
    function = _Penalised(searching(problem), 50.0, 7.0, "scaled-probability")
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = np.append(rng.uniform(-1, 1, 2), [0.0, 0.0])
        loss, slope, _ = function.gradient(torch.as_tensor(x))
        assert loss == pytest.approx(penalised_by_hand(problem, x, 50.0, 7.0), rel=1e-9)
        for j in range(2):
            step = np.zeros(4)
            step[j] = 1e-6
            ahead, behind = (penalised_by_hand(problem, x + s * step, 50.0, 7.0) for s in (1, -1))
            assert float(slope[j]) == pytest.approx((ahead - behind) / 2e-6, rel=1e-4, abs=1e-4)


def test_a_logit_pulls_at_every_sample():
    """max of the class of z = 3 x + 40, far inside class 1: a probability has no slope left there."""
    mip = dt.Mip(cost=[0.0, 1.0], lower=[-1.0, 0.0], upper=[1.0, 1.0], integer=[False, True], sense="max")
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([3.0], 40.0), [0], [1], output_type="classification")
    for surrogate, slope in (("logit", -3.0), ("probability", 0.0)):
        function = _Penalised(searching(problem), 50.0, 7.0, surrogate)
        found = function.gradient(torch.tensor([0.5, 0.0], dtype=torch.float64))[1]
        assert float(found[0]) == pytest.approx(slope, abs=1e-9)


def test_plain_steps_follow_the_paper_s_schedule():
    """min y, y = x, from x = 1: every gradient is 1, so the path is known."""
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=[0.0, -np.inf], upper=[1.0, np.inf]))
    problem.add_predictor(linear_net([1.0], 0.0), [0], [1])
    seen = []
    method = dt.SingleStepGradient(iterations=4, rule="gradient")
    dt.solve(problem, method, start=[1.0, 0.0], callback=lambda e: seen.append(e.row.objective), log=False)
    expected = 1.0 - np.cumsum(0.01 / np.sqrt(1.0 + 0.01 * np.arange(1, 5)))
    np.testing.assert_allclose(seen, expected)


def test_defaults_are_the_paper_s():
    method = dt.SingleStepGradient()
    assert (method.iterations, method.lr, method.decay) == (100, 0.01, 0.01)
    assert (method.linear_penalty, method.network_penalty, method.rule) == (50.0, 50.0, "adam")
    one = dt.SingleStepGradient.one_step()
    assert (one.iterations, one.linear_penalty, one.network_penalty) == (1, 0.0, 0.0)


def test_descends_to_the_bottom_of_a_bowl():
    mip = dt.Mip(cost=[0.0, 0.0, 1.0], lower=[-2.0, -2.0, -np.inf], upper=[2.0, 2.0, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(Parabola((0.5, -0.25)), [0, 1], [2])
    result = dt.solve(problem, dt.SingleStepGradient(iterations=300, lr=0.05), start=np.ones(3), log=False)
    assert result.objective == pytest.approx(0.0, abs=1e-4)


@pytest.mark.skipif(not FULL, reason="volume: a network is trained and 25 samples are solved twice")
def test_flips_samples_but_fewer_than_the_decomposition():
    instance = water(25, "2x16")
    found = {
        name: instance.counts(dt.solve(instance.problem, name, log=False))
        for name in ("single-step-gradient", "dual-decomposition")
    }
    assert found["single-step-gradient"].flipped > 0
    assert found["single-step-gradient"].potable <= found["dual-decomposition"].potable


@pytest.mark.parametrize(
    "options",
    [{"iterations": 0}, {"lr": 0.0}, {"decay": -1.0}, {"rule": "sgd"}, {"linear_penalty": float("nan")}],
)
def test_options_are_checked(options):
    with pytest.raises(dt.OptionError, match=next(iter(options))):
        dt.SingleStepGradient(**options)
