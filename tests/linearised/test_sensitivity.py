"""What right-hand sides are worth, against the change of the optimum that scipy finds for a small step."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

import dovetail as dt
from dovetail.linearised.sensitivity import gained_by_missing, sensitivity, worth_of_rounding
from dovetail.run.budget import Budget
from tests.small import linear_net

STEP = 1e-6


def a_problem(seed):
    """An LP over x, z and y = w'x: two rows, of which one or both bind."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=3)
    A = np.vstack(
        [np.r_[rng.uniform(0.5, 2.0, 3), rng.uniform(0.5, 2.0), 0.0], np.r_[rng.normal(size=4), 1.0]]
    )
    mip = dt.Mip(
        rng.normal(size=5), A, [-np.inf, -1.0], [2.0, 1.0], [0, 0, 0, 0, -99.0], [1.0, 1.0, 1.0, 1.0, 99.0]
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net(weights), [0, 1, 2], [4])
    return problem, weights


def optimum(mip, weights, row=None, output=0.0):
    """By scipy, with the upper limit of a row, or what the predictor says, moved by a step."""
    upper = mip.row_upper.copy()
    if row is not None:
        upper[row] += STEP
    A = mip.A.toarray()
    finite = np.isfinite(mip.row_lower)
    found = linprog(
        mip.cost, np.vstack([A, -A[finite]]), np.r_[upper, -mip.row_lower[finite]],
        [np.r_[-weights, 0.0, 1.0]], [output], list(zip(mip.lower, mip.upper, strict=True)),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip
    return found.fun, found.x


@pytest.mark.parametrize("seed", range(12))
def test_prices_are_what_a_small_step_changes(seed):
    problem, weights = a_problem(seed)
    value, x = optimum(problem.mip, weights)
    found = sensitivity(problem, problem.predict(x), Budget(30.0))
    changed = abs(optimum(problem.mip, weights, output=STEP)[0] - value) / STEP
    assert found[4] == pytest.approx(changed, rel=1e-3, abs=1e-3)
    assert np.all(found[:4] == 0.0)


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("seed", range(6))
def test_a_point_that_misses_a_row_gains_what_the_way_back_costs(seed, row):
    """The way back is a short one, not the cheapest: it may cost more than was gained, and never less."""
    problem, weights = a_problem(seed)
    value, x = optimum(problem.mip, weights)
    beyond, better = optimum(problem.mip, weights, row)
    lost = gained_by_missing(problem, problem.predict(better), Budget(30.0))
    assert value - beyond - 1e-9 <= lost <= 20.0 * STEP * np.abs(problem.mip.cost).sum()
    assert gained_by_missing(problem, problem.predict(x), Budget(30.0)) <= 1e-9


def test_a_point_at_the_bottom_of_a_valley_has_no_way_back():
    """y = |x| <= -1e-7 is met within tolerance at 0, where both sides of the kink lead down."""
    mip = dt.Mip([1.0, 0.0], lower=[-1.0, -1.0], upper=[1.0, -1e-7])
    problem = dt.Problem(mip)
    valley = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)).double()
    with torch.no_grad():
        for layer, weight in ((valley[0], [[1.0], [-1.0]]), (valley[2], [[1.0, 1.0]])):
            layer.weight.copy_(torch.tensor(weight))
            layer.bias.zero_()
    problem.add_predictor(valley, [0], [1])
    assert gained_by_missing(problem, problem.predict(np.array([1e-9, 0.0])), Budget(30.0)) == np.inf


def test_without_time_nothing_is_known():
    problem, weights = a_problem(0)
    x = problem.predict(optimum(problem.mip, weights)[1])
    assert worth_of_rounding(problem, x, Budget(0.0)) is None
    assert gained_by_missing(problem, problem.predict(x + 0.5), Budget(0.0)) is None
