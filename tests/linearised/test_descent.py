"""Descents: known optima of concave kinks, equalities through networks, integers that must move.

Local optima: the same one is known again, another is new.
"""

from dataclasses import replace

import numpy as np
import pytest
from torch import nn

import dovetail as dt
from dovetail.linearised.descent import Descent, DescentOptions, Iterate, increase_penalty
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.linearised.trust_region import LinearStep, TrustRegionSubproblem
from dovetail.methods.sequential_linear import LocalOptima
from tests.contexts import context_of
from tests.small import linear_net, random_mlp


def lowest_of(planes, offsets):
    """y = min_k (planes_k x + offset_k), as a ReLU network: min(a, b) = a - relu(a - b)."""

    class Lowest(nn.Module):
        def __init__(self):
            super().__init__()
            self.planes = linear_net(planes, offsets)

        def forward(self, x):
            return self.planes(x).min(dim=1, keepdim=True).values

    return Lowest()


def roof(seed=0, dimension=3, planes=8):
    """max y, y the lowest of some planes, over a box and a row: an LP in disguise."""
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(planes, dimension)), rng.uniform(0, 2, planes)
    mip = dt.Mip(
        cost=np.append(rng.normal(0, 0.1, dimension), 1.0),
        A=[np.append(np.ones(dimension), 0.0)],
        row_lower=[-1.0],
        row_upper=[1.0],
        lower=np.append(np.full(dimension, -2.0), -np.inf),
        upper=np.append(np.full(dimension, 2.0), np.inf),
        sense="max",
    )
    problem = dt.Problem(mip)
    problem.add_predictor(lowest_of(W, b), np.arange(dimension), [dimension])
    return problem, W, b


def descent_of(context, options=None):
    options = options or DescentOptions()
    scaled = ScaledProblem.of(context)
    program = TrustRegionSubproblem(scaled, context.stopwatch, integer=False, bundle_size=options.bundle_size)
    return Descent(context, scaled, options, program), scaled


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 30, 38, 39])  # the last ones stop at kinks of several planes
def test_a_concave_maximum_is_reached_from_anywhere(seed):
    from scipy.optimize import linprog

    problem, W, b = roof(seed)
    d, mip = W.shape[1], problem.mip
    truth = linprog(
        -mip.cost,
        A_ub=np.vstack([np.hstack([-W, np.ones((len(W), 1))]), [*np.ones(d), 0.0], [*-np.ones(d), 0.0]]),
        b_ub=np.concatenate([b, [1.0, 1.0]]),
        bounds=[(-2, 2)] * d + [(None, None)],
    )
    context = context_of(problem)
    descent, _ = descent_of(context)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        z = np.append(rng.uniform(-0.3, 0.3, d), 0.0)
        iterate = descent.run(z, 0.2, context.budget, "test")
        assert iterate.feasible
        assert -iterate.merit == pytest.approx(-truth.fun, abs=1e-5)
    assert context.incumbent.objective == pytest.approx(-truth.fun, abs=1e-5)
    assert context.incumbent.source == "test"
    assert dt.check(problem, context.incumbent.x).within()


def test_an_equality_through_a_network_is_met_to_the_last_digits():
    """y = f(x) with y held at a value the network takes somewhere in the box."""
    net = random_mlp(3, seed=2)
    mip = dt.Mip(cost=np.zeros(4), lower=-1.0, upper=1.0)
    bare = dt.Problem(replace(mip, lower=[-1, -1, -1, -np.inf], upper=[1, 1, 1, np.inf]))
    bare.add_predictor(net, [0, 1, 2], [3])
    target = bare.predict(np.array([0.7, -0.4, 0.5, 0.0]))[3]
    problem = dt.Problem(
        replace(mip, cost=[1.0, 0.0, 0.0, 0.0], lower=[-1, -1, -1, target], upper=[1, 1, 1, target])
    )
    problem.add_predictor(net, [0, 1, 2], [3])
    context = context_of(problem)
    descent, _ = descent_of(context)
    iterate = descent.run(np.zeros(4), 0.2, context.budget, "test")
    assert iterate.feasible
    assert abs(problem.predict(iterate.z)[3] - target) <= 1e-9
    assert context.incumbent.x is not None


@pytest.mark.parametrize("share", [0.3, 0.03])
def test_penalties_that_are_too_small_are_raised_until_the_output_is_true(share):
    """y = x must be 0.7 while x costs 1 a unit: a penalty below 1 would rather miss y and lower x."""
    problem = dt.Problem(dt.Mip(cost=[1.0, 0.0], lower=[-1.0, 0.7], upper=[1.0, 0.7]))
    problem.add_predictor(linear_net([1.0]), [0], [1])
    context = context_of(problem)
    scaled = replace(ScaledProblem.of(context), penalty=np.array([share]))
    descent = Descent(
        context,
        scaled,
        DescentOptions(bundle_size=0),
        TrustRegionSubproblem(scaled, context.stopwatch, integer=False),
    )
    iterate = descent.run(np.array([0.0, 0.7]), 0.2, context.budget, "test")
    assert iterate.feasible
    assert iterate.z == pytest.approx([0.7, 0.7], abs=1e-9)


def test_two_networks_that_must_agree():
    """f(x) = g(x') as a row between outputs: met to 1e-9 too."""
    mip = dt.Mip(
        cost=[1.0, 0.5, -0.2, 0.3, 0.0, 0.0],
        A=[[0.0, 0.0, 0.0, 0.0, 1.0, -1.0]],
        row_lower=[0.0],
        row_upper=[0.0],
        lower=[-1.0, -1.0, -1.0, -1.0, -np.inf, -np.inf],
        upper=[1.0, 1.0, 1.0, 1.0, np.inf, np.inf],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(2, seed=1), [0, 1], [4])
    problem.add_predictor(random_mlp(2, seed=6), [2, 3], [5])
    context = context_of(problem)
    descent, _ = descent_of(context)
    iterate = descent.run(np.zeros(6), 0.2, context.budget, "test")
    assert iterate.feasible
    y = problem.predict(iterate.z)
    assert abs(y[4] - y[5]) <= 1e-9


def test_merits_never_rise_on_the_way():
    problem, _, _ = roof(1)
    context = context_of(problem)
    descent, scaled = descent_of(context)
    first = descent.evaluate(np.zeros(4), scaled.penalty, "test")
    last = descent.run(np.zeros(4), 0.2, context.budget, "test")
    assert last.merit <= first.merit
    assert descent.steps > 0


def test_a_descent_without_time_is_its_start():
    problem, _, _ = roof(1)
    context = context_of(problem)
    descent, _ = descent_of(context)
    z = np.zeros(4)
    iterate = descent.run(z, 0.2, context.budget.part(0.0), "test")
    assert iterate.z[:3].tolist() == [0.0, 0.0, 0.0]
    assert descent.steps == 0


def test_penalties_rise_only_where_something_was_let_pass():
    step = LinearStep(np.zeros(2), 0.0, np.array([0.5, 0.0, 1.0]), np.zeros(3))
    assert increase_penalty(np.array([1.0, 1.0, 1e9]), step).tolist() == [3.0, 1.0, 1e9]


def ended(value: float, feasible: bool = True) -> Iterate:
    return Iterate(np.zeros(1), value, feasible)


def test_an_optimum_is_new_once():
    optima = LocalOptima()
    assert [optima.add(ended(value)) for value in (3.0, 3.0 + 1e-7, 2.0, 3.0 - 1e-7, 2.0001)] == [
        True, False, True, False, True,
    ]  # fmt: skip


def test_a_descent_that_found_no_point_teaches_nothing():
    assert not LocalOptima().add(ended(1.0, feasible=False))
