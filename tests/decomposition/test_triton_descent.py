"""Whole descents in one kernel against the same step by step; without a GPU by Triton's interpreter."""

import os

import pytest
import torch

from dovetail.decomposition.oracle import GROW, LEAST_SLOPE, SHRINK, WIDEST, _trouble
from dovetail.decomposition.plan import plan_of
from dovetail.decomposition.shard import PricingOptions, Shard, usual_spread
from dovetail.structure.structure import Structure
from dovetail_study.problems import water

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 5


@pytest.mark.parametrize(("kind", "differ"), [("1x8", False), ("3x16", False), ("1x8", True)])
def test_it_ends_where_steps_end(kind, differ):
    """Also where blocks differ in what they may move, and the bounds are stored column by column."""
    pytest.importorskip("triton")
    from dovetail.decomposition.triton_descent import descents

    problem = water.train(kind, epochs=2, allow_constant=True).water(70).problem
    (program,), blocks = plan_of(Structure(problem)).programs, list(problem.blocks)
    spread = usual_spread(program, blocks)
    shard = Shard(program, blocks, PricingOptions(steps=STEPS), DEVICE, spread)
    shard._oracle._descents._call = None  # step by step
    data, target = shard.data, shard._targets[1]
    if differ:
        widths = torch.rand(data.coordinates, 70, generator=torch.Generator().manual_seed(1)).to(DEVICE)
        data.lower, data.upper = -widths.T, widths.flip(0).T
    chance = torch.Generator().manual_seed(0)
    which = torch.randint(70, (90,), generator=chance).to(DEVICE)
    start = (0.3 * torch.randn(90, data.coordinates, generator=chance)).to(DEVICE)
    prices = (5.0 * torch.rand(data.sides, generator=chance)).to(DEVICE)
    costs, radius = data.part_costs(which, prices), torch.full((1,), 0.4, device=DEVICE).expand(90)
    expected = shard._oracle.descend(which, start, radius, costs, target, 0.0)
    in_one = descents(
        *shard._oracle._networks.only, data.lower, data.upper, data.scale, STEPS, (GROW, SHRINK, WIDEST),
        LEAST_SLOPE,
    )  # fmt: skip
    fixed = (costs[:, 2 * data.coordinates : -1] * target.classes).sum(dim=1) + costs[:, -1]
    condition = target.on_values[:, 0, 0], target.least[:, 0], target.slip[:, 0]
    moves, cost = in_one(which, start, radius, costs, fixed, condition)
    bounds = data.lower[which], data.upper[which]
    assert bool((moves >= bounds[0] - 1e-6).all() & (moves <= bounds[1] + 1e-6).all())
    met, should = torch.isfinite(cost), torch.isfinite(expected.cost)
    assert int(should.sum()) > 5
    # a step that is kept by a hair in one and not in the other leads elsewhere: most end at one place
    assert float((met == should).float().mean()) > 0.9
    assert not _trouble(cost, cost, expected.cost)
    assert float(torch.isclose(moves, expected.moves, atol=1e-3).all(dim=1).float().mean()) > 0.85
    values = shard._oracle._networks.values(which, moves)[:, 0]
    slack = target.on_values[0, 0, 0] * values - target.least[0, 0] + target.slip[0, 0]
    assert bool((slack[met] >= -1e-4).all())
    right, left = costs[:, : data.coordinates], costs[:, data.coordinates : 2 * data.coordinates]
    spent = (torch.where(moves > 0.0, right, -left) * moves).sum(dim=1) + fixed
    assert torch.allclose(cost[met], spent[met], atol=1e-4)
