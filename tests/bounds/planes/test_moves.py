"""Closed-form sets: the knapsack against scipy's LPs, and weak duality at random points."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from dovetail.bounds.planes.moves import Moves
from tests.conftest import sample

KINDS = ("box", "simplex", "ball", "priced", "mixed")


def random_moves(rng, kind, sets=4, inputs=5):
    """Sets of one kind, as arrays too."""
    eye = np.eye(inputs)
    directions = {"box": eye, "simplex": eye, "mixed": rng.normal(size=(inputs, 7))}.get(
        kind, np.hstack([eye, -eye])
    )
    m = directions.shape[1]
    weights = np.ones((sets, m)) if kind != "priced" else rng.uniform(0.0, 3.0, (sets, m))
    if kind in ("priced", "mixed"):
        weights[rng.random((sets, m)) < 0.2] = 0.0
    most = np.full(sets, np.inf) if kind == "box" else rng.uniform(0.3, 2.0, sets)
    weights = weights * 0.0 if kind == "box" else weights
    least = most.copy() if kind == "simplex" else np.full(sets, -np.inf)
    limit = rng.uniform(0.4, 1.5, (sets, m))
    if kind == "ball":
        limit[:2] = 5.0
    arrays = (directions, rng.normal(size=(sets, inputs)), limit, weights, least, most)
    return Moves.of(*map(torch.as_tensor, arrays), torch.zeros(sets, inputs, dtype=torch.float64)), arrays


def by_lp(arrays, k, slopes, costs, condition=None):
    directions, origin, limit, weights, least, most = arrays
    rows, sides = [], []
    if np.isfinite(most[k]):
        rows, sides = [weights[k]], [most[k]]
    if np.isfinite(least[k]):
        rows, sides = [*rows, -weights[k]], [*sides, -least[k]]
    if condition is not None:
        a, b = condition
        rows, sides = [*rows, a @ directions], [*sides, -b - a @ origin[k]]
    found = linprog(
        slopes @ directions + costs,
        A_ub=np.array(rows) if rows else None,
        b_ub=sides or None,
        bounds=[(0.0, u) for u in limit[k]],
    )
    return found.fun + slopes @ origin[k] if found.success else np.inf


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", sample(range(10), 4))
def test_the_least_value_is_the_lp_s(kind, seed):
    rng = np.random.default_rng(seed)
    moves, arrays = random_moves(rng, kind)
    slopes, costs = rng.normal(size=(4, 3, 5)), rng.uniform(-0.2, 1.0, arrays[2].shape)
    offsets = torch.zeros(4, 3, dtype=torch.float64)
    found = moves.minimum(torch.as_tensor(slopes), offsets, torch.as_tensor(costs)).numpy()
    for k in range(4):
        for s in range(3):
            true = by_lp(arrays, k, slopes[k, s], costs[k])
            assert found[k, s] <= true + 1e-9
            assert found[k, s] >= true - 1e-8
    at = moves.minimiser(torch.as_tensor(slopes[:, 0]), torch.as_tensor(costs)).numpy()
    reached = (slopes[:, 0] * (arrays[1] + at @ arrays[0].T)).sum(1) + (costs * at).sum(1)
    assert reached == pytest.approx(found[:, 0], abs=1e-7)


@pytest.mark.parametrize("seed", range(10))
def test_the_least_cost_of_a_condition_is_the_lp_s(seed):
    rng = np.random.default_rng(seed)
    moves, arrays = random_moves(rng, "priced")
    slopes, offsets = rng.normal(size=(4, 5)), rng.uniform(-0.5, 1.5, 4)
    costs = arrays[3]
    a, b = torch.as_tensor(slopes), torch.as_tensor(offsets)
    asked = moves.condition_price(a, b, torch.as_tensor(costs))
    price, at = asked.price, asked.moves
    found = moves.minimum((price[:, None] * a)[:, None], (price * b)[:, None], torch.as_tensor(costs))[:, 0]
    for k in range(4):
        true = by_lp(arrays, k, np.zeros(5), costs[k], (slopes[k], offsets[k]))
        if np.isinf(true):
            assert found[k] > arrays[5][k] - 1e-6  # more than the row lets anybody spend
            continue
        assert true - 1e-7 <= found[k] <= true + 1e-9
        assert slopes[k] @ (arrays[1][k] + arrays[0] @ at[k].numpy()) + offsets[k] <= 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_points_lie_in_the_box_and_above_the_least_value(kind):
    rng = np.random.default_rng(3)
    moves, _ = random_moves(rng, kind)
    slopes = torch.as_tensor(rng.normal(size=(4, 6, 5)))
    least = moves.minimum(slopes, torch.zeros(4, 6, dtype=torch.float64))
    for direction in rng.normal(size=(50, 4, 5)):
        x = moves.at(moves.minimiser(torch.as_tensor(direction)))
        assert torch.all(x >= moves.lower) and torch.all(x <= moves.upper)
        assert torch.all((slopes @ x[:, :, None])[:, :, 0] >= least - 1e-9)


def test_give_widens_by_exactly_that_much():
    moves, arrays = random_moves(np.random.default_rng(0), "ball")
    wider = Moves.of(*map(torch.as_tensor, arrays), torch.full((4, 5), 0.1, dtype=torch.float64))
    slopes, nothing = torch.ones(4, 1, 5, dtype=torch.float64), torch.zeros(4, 1, dtype=torch.float64)
    apart = moves.minimum(slopes, nothing) - wider.minimum(slopes, nothing)
    assert apart == pytest.approx(0.5)
