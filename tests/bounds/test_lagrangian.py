"""The Lagrangian bound against the optimum by enumeration: no prices may bring it above."""

import itertools

import numpy as np
import pytest

from dovetail import Mip, Problem
from dovetail.bounds.box import Box
from dovetail.bounds.dual_value import lagrangian_constant, priced_cost
from dovetail.structure.components import components
from dovetail.testing.problems import random_mlp


def coupled(seed: int) -> Problem:
    """Two blocks (x, y) each, a shared column s, one row that all are in."""
    rng = np.random.default_rng(seed)
    mip = Mip(
        cost=rng.normal(size=5),
        A=rng.normal(size=(2, 5)),
        row_lower=[-np.inf, -1.0],
        row_upper=[1.0, np.inf],
        lower=[-2.0, -50.0, -2.0, -50.0, -1.0],
        upper=[2.0, 50.0, 2.0, 50.0, 3.0],
        integer=[True, False, True, False, True],
        offset=0.25,
    )
    problem = Problem(mip)
    problem.add_predictor(random_mlp(1, seed=seed), [[0], [2]], [[1], [3]])
    return problem


def outputs_of(problem: Problem, x: np.ndarray) -> np.ndarray:
    return np.asarray(problem.blocks[0].predictor.predict(x[:, None])).ravel()


@pytest.mark.parametrize("seed", range(10))
def test_weak_duality(seed: int) -> None:
    """Least cost over all points of the grid, and the bound at many prices, from 0 to large."""
    problem = coupled(seed)
    mip, parts = problem.mip, components(problem)
    grid, shared = np.arange(-2.0, 3.0), np.arange(-1.0, 4.0)
    f = outputs_of(problem, grid)
    points = np.array(
        [
            [a, ya, b, yb, s]
            for (a, ya), (b, yb), s in itertools.product(
                zip(grid, f, strict=True), zip(grid, f, strict=True), shared
            )
        ]
    )
    activity = points @ mip.A.toarray().T
    inside = np.all((activity >= mip.row_lower) & (activity <= mip.row_upper), axis=1)
    if not inside.any():
        pytest.fail("the grid has no feasible point: choose another seed")
    least = float((points[inside] @ mip.cost).min()) + mip.offset

    G, h = parts.coupling(mip)
    assert G.shape == (2, 5)
    box = Box(mip.lower, mip.upper)
    size = np.maximum(np.abs(mip.lower), np.abs(mip.upper))
    rng = np.random.default_rng(seed)
    best = -np.inf
    for scale in (0.0, 0.1, 1.0, 10.0, 1e6):
        for _ in range(20):
            prices = scale * rng.random(2)
            cost = priced_cost(mip, G, prices)
            blocks = sum(float(np.min(cost[x] * grid + cost[y] * f)) for x, y in ((0, 1), (2, 3)))
            bound = blocks + lagrangian_constant(mip, G, h, prices, parts.shared, box, size)
            assert bound <= least + 1e-12 * (1.0 + abs(least))  # the sums of this test are rounded, too
            best = max(best, bound)
    assert best > least - 100.0  # the bound says something


def test_a_shared_column_without_a_bound_leaves_nothing() -> None:
    problem = coupled(0)
    mip, parts = problem.mip, components(problem)
    G, h = parts.coupling(mip)
    box = Box(np.where(np.arange(5) == 4, -np.inf, mip.lower), np.where(np.arange(5) == 4, np.inf, mip.upper))
    size = np.maximum(np.abs(mip.lower), np.abs(mip.upper))
    assert lagrangian_constant(mip, G, h, np.ones(2), parts.shared, box, size) == -np.inf
