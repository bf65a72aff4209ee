"""Propagation: columns that rows, networks and costs decide, filled in."""

import numpy as np

import dovetail as dt
from dovetail.linearised.propagation import Propagation
from dovetail.linearised.scaled_problem import ScaledProblem
from tests.contexts import context_of
from tests.methods.test_integer_search import configurations
from tests.small import random_mlp


def test_propagation_fills_in_what_rows_and_chained_networks_decide():
    problem, groups, per = configurations()
    scaled = ScaledProblem.of(context_of(problem))
    Z = np.zeros((5, problem.mip.n_columns))
    rng = np.random.default_rng(1)
    for z in Z:
        z[[g * per + rng.integers(per) for g in range(groups)]] = 1.0
    Propagation(scaled).fill(Z)
    for z in Z:
        assert np.allclose(problem.predict(z), z, atol=1e-9)
        equal = problem.mip.row_lower == problem.mip.row_upper
        assert np.allclose((problem.mip.A @ z)[equal], problem.mip.row_lower[equal], atol=1e-9)


def test_a_column_under_several_others_is_pushed_to_the_smallest():
    """max t with t <= y_i: t is what the rows leave."""
    mip = dt.Mip(
        cost=[0.0, 0.0, 0.0, 0.0, 1.0], A=[[0, 0, -1.0, 0, 1.0], [0, 0, 0, -1.0, 1.0]],
        row_lower=-np.inf, row_upper=0.0, lower=[0, 0, -np.inf, -np.inf, -np.inf],
        upper=[3, 3, np.inf, np.inf, np.inf], integer=[True, True, False, False, False], sense="max",
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(1, seed=4), [[0], [1]], [[2], [3]])
    scaled = ScaledProblem.of(context_of(problem))
    Z = np.array([[1.0, 2.0, 0, 0, 0], [3.0, 0.0, 0, 0, 0]])
    Propagation(scaled).fill(Z)
    assert np.allclose(Z[:, 4], Z[:, 2:4].min(axis=1))
