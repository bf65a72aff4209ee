"""Planes in the host's LP: below every point, whatever point they begin with."""

import itertools

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.methods.planes_lp import PlanesLp, method, planes_plan
from tests.conftest import FULL
from tests.contexts import breach, choices, context_of
from tests.small import random_mlp

SEEDS = range(40 if FULL else 2)
ROUNDS = 8 if FULL else 3
"""Of cells, cuts and boxes: a bound is there after the first."""


def several(seed, integer):
    """Three networks of two inputs each, a budget and a row between their outputs."""
    rng = np.random.default_rng(seed)
    inputs = np.array([[0, 1], [1, 2], [3, 0]])
    outputs = np.array([[4], [5], [6]])
    mip = dt.Mip(
        cost=[*rng.normal(0, 0.3, 4), *rng.normal(0, 1.0, 3)],
        A=[[1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0, -1.0, 0.5]],
        row_lower=[2.0, -3.0],
        row_upper=[6.0, 3.0],
        lower=[0.0, -1.0, 0.0, 0.0, -np.inf, -np.inf, -np.inf],
        upper=[3.0, 2.0, 3.0, 2.0, np.inf, np.inf, np.inf],
        integer=[*[integer] * 4, False, False, False],
        sense="max" if seed % 2 else "min",
    )
    problem = dt.Problem(mip)
    for k in range(3):
        net = random_mlp(2, width=5, layers=1 + (seed + k) % 3, seed=seed + 10 * k)
        problem.add_predictor(net, inputs[k], outputs[k])
    return problem


def points_of(problem, seed):
    """Feasible points: all of them, or a few thousand drawn at random."""
    mip = problem.mip
    if np.any(mip.integer):
        points = choices(problem)
    else:
        rng = np.random.default_rng(seed)
        points = np.zeros((3000, mip.n_columns))
        points[:, :4] = rng.uniform(mip.lower[:4], mip.upper[:4], (3000, 4))
        for block in problem.blocks:
            points[:, block.outputs[0]] = block.predictor.predict(points[:, block.inputs[0]])
    return np.array([x for x in points if breach(mip, x) <= 1e-9])


@pytest.mark.parametrize(
    ("seed", "integer"), itertools.product(SEEDS, (True, False)) if FULL else [(0, True), (1, False)]
)
def test_it_is_below_every_point_whatever_the_cutoff(seed, integer, monkeypatch):
    advance = method.CellPlanes.advance
    monkeypatch.setattr(method.CellPlanes, "advance", lambda run: run.rounds < ROUNDS and advance(run))
    problem = several(seed, integer)
    points = points_of(problem, seed)
    if not len(points):
        return
    values = problem.mip.sign * (points @ problem.mip.cost)
    order = np.argsort(values)
    for known in (None, order[0], order[len(order) // 2]):
        context = context_of(problem)
        if known is not None:
            context.incumbent.offer(points[known], "given")
        assert context.once(planes_plan) is not None
        PlanesLp().solve(context)
        assert context.incumbent.bound <= values.min() + 1e-6 * (1.0 + abs(values.min()))
        assert np.isfinite(context.incumbent.bound)


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_box_holds_every_point_that_is_better(seed, integer):
    """Branching and the exact MIP begin with it."""
    problem = several(seed, integer)
    points = points_of(problem, seed)
    if not len(points):
        return
    values = problem.mip.sign * (points @ problem.mip.cost)
    known = np.argsort(values)[len(values) // 4]
    context = context_of(problem)
    context.incumbent.offer(points[known], "given")
    lower, upper = context.once(method.cell_planes).box(context)
    better = points[values <= values[known]]
    assert np.all(better >= lower - 1e-9) and np.all(better <= upper + 1e-9)
    box = context.once(planes_plan).box
    assert np.all(lower >= box.lower) and np.all(upper <= box.upper)


def test_networks_with_many_inputs_are_left_alone():
    problem = dt.Problem(dt.Mip(cost=np.ones(9), lower=-1.0, upper=1.0))
    problem.add_predictor(random_mlp(8, width=3, layers=1, seed=0), np.arange(8), [8])
    context = context_of(problem)
    assert context.once(planes_plan) is None
    assert "few inputs" in PlanesLp().solve(context).message


@pytest.mark.parametrize("seed", [1, 2, 4, 5])
def test_cells_whose_planes_are_no_numbers_are_kept(seed):
    """A LayerNorm over inputs of 1e9: the least values are about 0, where no plane is known."""
    torch.manual_seed(seed)
    layers = torch.nn.Linear(1, 4), torch.nn.LayerNorm(4), torch.nn.ReLU(), torch.nn.Linear(4, 1)
    net = torch.nn.Sequential(*layers).double().eval()
    problem = dt.Problem(dt.Mip([0.0, 1.0], lower=[-1e9, -np.inf], upper=[1e9, np.inf]))
    problem.add_predictor(net, [0], [1])
    far = problem.predict(np.array([1e8, 0.0]))
    result = dt.solve(problem, PlanesLp(), start=far, time_limit=2.0, log=False)
    with torch.no_grad():
        least = float(net(torch.linspace(-50.0, 50.0, 20_001, dtype=torch.float64)[:, None]).min())
    assert result.bound is None or result.bound <= least
