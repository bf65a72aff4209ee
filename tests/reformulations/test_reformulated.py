"""The chain: what every rewriting promises, alone and after others, whatever it is."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.reformulations.indicators import IndicatorProducts
from dovetail.reformulations.reformulated import Reformulated, picked, reformulate
from dovetail.reformulations.relu_big_m import ReluBigM
from dovetail.reformulations.tables import Tables
from tests.conftest import sample
from tests.contexts import breach, by_scipy
from tests.small import random_mlp

REFORMULATIONS = (Tables(), IndicatorProducts(), ReluBigM())
CHAINS = [
    chain for length in sample((1, 2, 3), 2) for chain in itertools.permutations(REFORMULATIONS, length)
]


def mixed(dtype=torch.float64):
    """One sample over binaries alone, one over an integer beside a real; outputs limited together."""
    mip = dt.Mip(
        cost=[0.1, 0.2, 0.3, 0.1, 1.0, 1.0],
        A=[[0.0, 0.0, 0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]],
        row_lower=[-20.0, -np.inf],
        row_upper=[20.0, 3.0],
        lower=[0.0, 0.0, 0.0, -1.0, -10.0, -10.0],
        upper=[1.0, 1.0, 4.0, 1.0, 10.0, 10.0],
        integer=[True, True, True, False, False, False],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(2, width=3, layers=1, dtype=dtype), [0, 1], [4])
    problem.add_predictor(random_mlp(2, width=3, layers=1, dtype=dtype), [2, 3], [5])
    return problem


def points(problem, count=40):
    rng = np.random.default_rng(0)
    for _ in range(count):
        x = rng.uniform(problem.mip.lower, problem.mip.upper)
        x = problem.predict(np.where(problem.mip.integer, np.round(x), x))
        if breach(problem.mip, x) <= 1e-9:
            yield x


def slack_along(reformulated):
    """How far columns may be from the original's, after all that was rewritten."""
    before = 0.0 if reformulated.previous is None else slack_along(reformulated.previous)
    return before + (0.0 if reformulated.slack is None else np.max(reformulated.slack))


def start(problem):
    return Reformulated.start(problem, propagate(problem.mip))


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: "+".join(step.name for step in chain))
@pytest.mark.parametrize("dtype", sample([torch.float32, torch.float64]))
class TestEveryChain:
    def test_there_and_back(self, chain, dtype):
        problem = mixed(dtype)
        rewritten = reformulate(start(problem), chain)
        assert rewritten.original is problem
        for x in points(problem):
            z = rewritten.lift(x)
            assert z.shape == (rewritten.problem.mip.n_columns,)
            assert np.array_equal(rewritten.restrict(z), x)

    def test_no_point_is_lost_to_a_bound(self, chain, dtype):
        """What the deployed predictors give satisfies the rows that bounds are proved of, and its box."""
        problem = mixed(dtype)
        rewritten = reformulate(start(problem), chain)
        if not rewritten.proves:
            return
        bounds = rewritten.for_bounds
        slack = slack_along(bounds)
        for x in points(problem):
            z = bounds.lift(x)
            assert breach(bounds.problem.mip, z) <= 1e-9 + 2 * slack
            assert np.all(z >= bounds.box.lower - 1e-9) and np.all(z <= bounds.box.upper + 1e-9)
            assert bounds.problem.mip.objective(z) <= problem.mip.objective(x) + 1e-9

    def test_outputs_are_the_predictors(self, chain, dtype):
        """Blocks that are left say of a lifted point what the original's say of the point."""
        problem = mixed(dtype)
        rewritten = reformulate(start(problem), chain)
        for x in points(problem, 10):
            z = rewritten.lift(x)
            assert rewritten.problem.predict(z) == pytest.approx(z, abs=1e-5)


def test_tables_and_neurons_together_have_the_optimum_of_the_problem():
    problem = mixed()
    whole = reformulate(start(problem), (Tables(), ReluBigM()))
    assert whole.problem.blocks == ()
    objective, z = by_scipy(whole.problem.mip)
    x = whole.restrict(z)
    assert problem.predict(np.where(problem.mip.integer, np.round(x), x)) == pytest.approx(x, abs=1e-5)
    assert objective <= min(problem.mip.objective(x) for x in points(problem, 400)) + 1e-7


def test_nothing_to_do_changes_nothing():
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=[-1.0, -5.0], upper=[1.0, 5.0]))
    problem.add_predictor(nn.Sequential(nn.Linear(1, 2), nn.Tanh(), nn.Linear(2, 1)).double(), [0], [1])
    given = start(problem)
    assert reformulate(given, REFORMULATIONS) is given
    assert given.for_bounds is given
    x = np.array([0.5, 0.2])
    assert given.lift(x) is x and np.array_equal(given.restrict(x), x)


def test_a_relaxation_is_rewritten_too():
    """What tables relax for float32 stays relaxed, and without blocks, after neurons are written."""
    problem = mixed(torch.float32)
    tables = reformulate(start(problem), (Tables(),))
    whole = reformulate(tables, (ReluBigM(),))
    assert whole.problem.blocks == () and whole.for_bounds.problem.blocks == ()
    if tables.relaxed is not None:
        assert whole.relaxed is not None
        assert whole.for_bounds.original.mip.n_columns == problem.mip.n_columns


def test_prices_of_the_same_rows():
    """Rows in another order, scaled and over fewer columns; a row with an appended column has no original."""
    before = dt.Problem(dt.Mip([0.0] * 3, [[1.0, 2.0, 0.0], [0.0, 3.0, 0.0], [1.0, 0.0, 1.0]], 0.0, 1.0))
    rows = [[0.0, 1.0, 0.0], [-0.5, -1.0, 0.0], [1.0, 0.0, 1.0]]  # of the first two columns, and a new one
    after = dt.Problem(dt.Mip([0.0] * 3, rows, 0.0, 1.0))
    start = Reformulated.start(before, propagate(before.mip))
    made = Reformulated(after, start, into=picked(np.array([0, 1]), 3))
    assert made.original_prices(np.array([6.0, -4.0, 9.0])).tolist() == [2.0, 2.0, 0.0]
    assert start.original_prices(np.array([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]
    assert made.original_prices(np.ones(2)).tolist() == [0.0, 0.0, 0.0]
