"""Cells of a network's inputs: what they say of rows, points and boxes holds for the network itself."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.branching.network_cells import NetworkCells, few_inputs
from dovetail.networks.layers import program_of
from dovetail.run.budget import Budget
from tests.conftest import FULL
from tests.small import random_mlp

FREE = np.full(2, -np.inf), np.full(2, np.inf)
ROUNDING = 1e-9


def network(seed, integer):
    """Two outputs of two inputs and an integer or a third input: cells, and points of the network."""
    rng = np.random.default_rng(seed)
    net = random_mlp(3, 2, width=6, layers=2, seed=seed)
    problem = dt.Problem(dt.Mip(cost=np.zeros(5), lower=-9.0, upper=9.0))
    block = problem.add_predictor(net, [0, 1, 2], [3, 4])
    planes = NetworkPlanes(program_of(block.description.layers_if_known(), 3).graph())
    low, high = np.array([-1.0, 0.0, -1.0]), np.array([1.0, 2.0, 2.0])
    X = rng.uniform(low, high, (3000, 3))
    if integer:
        X[:, 2] = rng.integers(-1, 3, 3000)
    whole = np.array([False, False, integer])

    def cells(limits=FREE):
        return NetworkCells(planes, np.zeros(2), (low, high), whole, limits)

    return cells, X, block.predictor.predict(X), rng


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("seed", range(20 if FULL else 2))
def test_rows_hold_for_the_network_in_every_part_of_the_box(seed, integer):
    cells, X, Y, rng = network(seed, integer)
    made = cells()
    for _ in range(10):
        slopes, weights = rng.normal(size=3), rng.normal(size=2)
        row, values = X @ slopes + Y @ weights, made.least(slopes[None], weights[None])[0]
        ends = np.sort(rng.uniform([-1.0, 0.0, -1.0], [1.0, 2.0, 2.0], (2, 3)), axis=0)
        inside = np.all((ends[0] <= X) & (ends[1] >= X), axis=1)
        least = made.least_in([values], ends[:1], ends[1:])[0, 0]
        assert row.min() >= values.min() - ROUNDING
        assert not inside.any() or row[inside].min() >= least - ROUNDING


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("seed", range(20 if FULL else 2))
def test_points_off_the_network_are_cut_off_and_its_own_are_not(seed, integer):
    cells, X, Y, _ = network(seed, integer)
    made, spread = cells(), np.ptp(Y, axis=0)
    assert made.cut_off(X[0], Y[0], Budget()) is None
    for off in (np.array([2.0, 0.0]), np.array([0.0, -2.0]), np.array([2.0, 2.0])):
        entries, values = made.cut_off(X[0], Y[0] + off * spread, Budget())
        assert entries @ np.append(X[0], Y[0] + off * spread) < values.min()
        assert np.all(np.hstack([X, Y]) @ entries >= values.min() - ROUNDING)


def test_outputs_that_depend_on_each_other_are_cut_off_together():
    """y = (x, -x): each value of y_1 is fine by itself, and so is each of y_2."""
    import torch

    net = torch.nn.Linear(1, 2).double()
    with torch.no_grad():
        net.weight[:], net.bias[:] = torch.tensor([[1.0], [-1.0]]), 0.0
    problem = dt.Problem(dt.Mip(cost=np.zeros(3), lower=-9.0, upper=9.0))
    block = problem.add_predictor(net, [0], [1, 2])
    planes = NetworkPlanes(program_of(block.description.layers_if_known(), 1).graph())
    made = NetworkCells(
        planes, np.zeros(2), (np.array([-1.0]), np.array([1.0])), np.zeros(1, dtype=bool), FREE
    )
    assert made.cut_off(np.array([0.5]), np.array([0.5, -0.5]), Budget()) is None
    assert made.cut_off(np.array([0.5]), np.array([0.5, 0.5]), Budget()) is not None


@pytest.mark.parametrize("seed", range(20 if FULL else 2))
def test_cells_that_limits_of_outputs_exclude_are_dropped(seed):
    cells, X, Y, _ = network(seed, integer=False)
    limit = np.quantile(Y[:, 0], 0.8)
    made, good = cells((np.array([limit, -np.inf]), FREE[1])), X[Y[:, 0] >= limit]
    assert 0 < len(made) < len(cells())
    assert np.all(((good[:, None] >= made.low) & (good[:, None] <= made.high)).all(2).any(1))
    assert not len(cells((np.full(2, Y.max() + 99.0), FREE[1])))


def test_inputs_that_hardly_move_do_not_count():
    low = np.zeros((2, 6))
    high = np.array([[1.0, 1.0, 1.0, 1.0, 2e-6, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]])
    assert few_inputs(low, high).tolist() == [True, False]
