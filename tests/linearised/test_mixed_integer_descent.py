"""Descents that move integers and classes too: enumerated optima, and none to move."""

import numpy as np
import pytest
from torch import nn

import dovetail as dt
from dovetail.linearised.descent import DescentOptions, MixedIntegerDescent
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.linearised.starts import Starts
from dovetail.run import engine as engines
from tests.blends import blend
from tests.contexts import best_of, breach, choices, context_of
from tests.linearised.test_descent import descent_of, roof
from tests.small import linear_net, random_mlp


def test_without_integers_it_is_a_plain_descent():
    problem, _, _ = roof(0)
    a, b = context_of(problem), context_of(problem)
    one = MixedIntegerDescent(a, ScaledProblem.of(a), DescentOptions()).descend(
        np.zeros(4), 0.2, a.budget, "test"
    )
    other = descent_of(b)[0].run(np.zeros(4), 0.2, b.budget, "test")
    assert one.merit == other.merit
    assert np.array_equal(one.z, other.z)


def test_a_descent_moves_integers_to_the_best_choice():
    """y = W x over binaries, linear: the first outer step knows everything."""
    rng = np.random.default_rng(0)
    mip = dt.Mip(
        cost=np.append(rng.normal(size=6), 1.0),
        A=[np.append(np.ones(6), 0.0)],
        row_lower=[2.0],
        row_upper=[4.0],
        lower=np.append(np.zeros(6), -np.inf),
        upper=np.append(np.ones(6), np.inf),
        integer=np.append(np.ones(6, bool), False),
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net(rng.normal(size=6)), np.arange(6), [6])
    truth, _ = best_of(problem, choices(problem))
    context = context_of(problem)
    iterate = MixedIntegerDescent(context, ScaledProblem.of(context), DescentOptions()).descend(
        np.append(np.full(6, 0.5), 0.0), 0.2, context.budget, "test"
    )
    assert iterate.feasible
    assert iterate.merit == pytest.approx(truth, abs=1e-6)
    assert context.incumbent.objective == pytest.approx(truth, abs=1e-6)


def test_a_descent_flips_a_class_that_pays():
    # y = 1 where x0 + x1 >= 1, worth 10; x costs 1 a unit: go to the boundary and no further
    mip = dt.Mip(cost=[1.0, 2.0, -10.0], lower=0.0, upper=[3.0, 3.0, 1.0])
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0, 1.0], -1.0), [0, 1], [2], output_type="classification")
    context = context_of(problem)
    iterate = MixedIntegerDescent(context, ScaledProblem.of(context), DescentOptions()).descend(
        np.zeros(3), 0.2, context.budget, "test"
    )
    assert iterate.feasible
    assert iterate.z[2] == 1.0
    assert iterate.merit == pytest.approx(-9.0, abs=2e-4)  # epsilon is 1e-4
    assert breach(mip, context.incumbent.x) <= 1e-9


def test_a_descent_mixes_integers_and_reals():
    """An integer input and a real one, a ReLU network: within a hair of a fine grid from a few starts."""
    mip = dt.Mip(
        cost=[0.1, -0.1, 1.0],
        lower=[0.0, -1.0, -np.inf],
        upper=[3.0, 1.0, np.inf],
        integer=[True, False, False],
    )
    problem = dt.Problem(mip)
    net = random_mlp(2, seed=3)
    problem.add_predictor(net, [0, 1], [2])
    grid = np.array(
        [problem.predict(np.array([k, x, 0.0])) for k in range(4) for x in np.linspace(-1, 1, 401)]
    )
    truth = float((grid @ mip.cost).min())
    context = context_of(problem)
    descent = MixedIntegerDescent(context, ScaledProblem.of(context), DescentOptions())
    for start in ([0.0, 0.0, 0.0], [3.0, 0.5, 0.0], [1.0, -0.9, 0.0], [2.0, 0.9, 0.0]):
        descent.descend(np.array(start), 0.2, context.budget, "test")
    assert context.incumbent.objective <= truth + 1e-9
    assert context.incumbent.objective >= truth - 0.02


def test_no_milp_is_begun_that_would_not_end_in_time(monkeypatch):
    mip = dt.Mip([1.0, -1.0], [[1.0, 0.0]], 0.0, 3.0, upper=[3.0, 9.0], integer=[True, False])
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X**2, [0], [1])
    context = context_of(problem)
    descent = MixedIntegerDescent(context, ScaledProblem.of(context), DescentOptions())
    monkeypatch.setattr(engines, "PER_NONZERO", 1e4)
    monkeypatch.setattr(descent, "step", None)  # nobody asks
    assert descent.descend(np.zeros(2), 0.2, context.budget, "test").z.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("seed", "activation"), [(1, nn.ReLU), (6, nn.ReLU), (2, nn.Tanh), (5, nn.Tanh)])
def test_a_descent_goes_on_while_it_misses_less(seed, activation):
    """Floors behind several outer steps: inner descents raise penalties, and must not be judged by them."""
    context = context_of(blend(seed, activation))
    scaled = ScaledProblem.of(context)
    start = Starts(context, scaled).cheapest()
    iterate = MixedIntegerDescent(context, scaled, DescentOptions()).descend(
        start, 0.2, context.budget, "test"
    )
    assert iterate.feasible
    assert context.incumbent.objective == pytest.approx(iterate.merit, abs=1e-6)


def test_relaxed_integers_lead_to_a_point():
    context = context_of(blend(5))
    scaled = ScaledProblem.of(context)
    start = Starts(context, scaled).cheapest()
    relaxed = MixedIntegerDescent(context, scaled, DescentOptions()).relax(start, 0.2, context.budget, "test")
    assert context.incumbent.x is not None
    inputs = scaled.inputs
    assert np.allclose(relaxed[inputs], context.incumbent.x[inputs])
    lots = relaxed[scaled.host.integer]
    assert np.max(np.abs(lots - np.round(lots))) > 1e-3  # and the check has rounded them up


def test_classes_alone_are_not_relaxed():
    problem = dt.Problem(dt.Mip(cost=[1.0, -10.0], upper=[3.0, 1.0]))
    problem.add_predictor(linear_net([1.0], -1.0), [0], [1], output_type="classification")
    context, z = context_of(problem), np.zeros(2)
    descent = MixedIntegerDescent(context, ScaledProblem.of(context), DescentOptions())
    assert descent.relax(z, 0.2, context.budget, "test") is z
