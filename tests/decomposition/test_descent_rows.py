"""Rows that leave a batch, and slopes of some rows: the same as without."""

import numpy as np
import pytest
import torch

from dovetail.decomposition import descent_rows
from dovetail.decomposition.block_data import BlockData
from dovetail.decomposition.plan import plan_of
from dovetail.decomposition.shard import PricingOptions, Shard, usual_spread
from dovetail.structure.structure import Structure
from tests.decomposition.families import blends, offers
from tests.decomposition.test_method import treated

FAMILIES = {"treated": treated, "blends": blends, "offers": lambda n: offers(n, continuous=True)}


def shard_of(problem):
    (program,), blocks = plan_of(Structure(problem)).programs, list(problem.blocks)
    return Shard(program, blocks, PricingOptions(), "cpu", usual_spread(program, blocks))


def descended(shard, little):
    """From rest, all blocks, at prices of one."""
    which = torch.arange(shard.count)
    start = torch.zeros(shard.count, shard.data.coordinates, dtype=shard.data.dtype)
    radius = torch.full((shard.count,), 0.4, dtype=shard.data.dtype)
    costs = shard.data.part_costs(which, torch.ones(shard.data.sides, dtype=shard.data.dtype))
    return shard._oracle.descend(which, start, radius, costs, shard._targets[-1], little)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_that_are_done_end_where_they_would(family, monkeypatch):
    """A step that promises nothing changes nothing, and who waits for others ends as they do.

    In float64: networks round differently in smaller batches, and in float32 that may lead to another end.
    """
    monkeypatch.setattr(BlockData, "dtype", torch.float64)
    shard = shard_of(FAMILIES[family](60))
    monkeypatch.setattr(descent_rows, "LEAVING", 2.0)  # nobody ever leaves
    expected = descended(shard, 0.0)
    sizes, leave = [], descent_rows.Batch.leave

    def watched(batch, done):
        going = leave(batch, done)
        sizes.append(len(batch.radius))
        return going

    monkeypatch.setattr(descent_rows, "LEAVING", 0.0)
    monkeypatch.setattr(descent_rows.Batch, "leave", watched)
    found = descended(shard, 1e-5)
    assert bool(torch.isfinite(expected.cost).any())
    assert min(sizes, default=0) < 60
    assert torch.equal(torch.isinf(found.cost), torch.isinf(expected.cost))
    met = torch.isfinite(expected.cost)
    assert torch.allclose(found.cost[met], expected.cost[met], atol=2e-4)
    assert torch.allclose(found.outputs[met], expected.outputs[met], atol=2e-2)


@pytest.mark.parametrize("family", FAMILIES)
def test_slopes_are_those_of_differences(family):
    """By moving each coordinate of some rows a little, in a network's own linear piece."""
    shard = shard_of(FAMILIES[family](60))
    oracle, data, target = shard._oracle, shard.data, shard._targets[-1]
    which, chance = torch.arange(60), torch.Generator().manual_seed(0)
    costs = data.part_costs(which, torch.ones(data.sides))
    start = 0.3 * torch.rand((60, data.coordinates), generator=chance)
    rows = oracle._rows(which, start, costs, target)
    moves = oracle._within(start, rows)
    some, step = torch.tensor([31, 2, 17]), 1e-3
    gain, _ = oracle._look(rows, moves, rows.price(moves), target, slopes=True).slopes(some)
    for j in range(data.coordinates):
        aside = moves.clone()
        aside[:, j] += step
        looks = [oracle._look(rows, at, rows.price(at), target, slopes=False) for at in (moves, aside)]
        by_differences = ((looks[0].short - looks[1].short) / step)[some]
        agree = (gain[:, j] - by_differences).abs() < 2e-2 * (1.0 + gain[:, j].abs())
        assert int(agree.sum()) >= 2  # a kink may lie between


def test_classes_that_cannot_pay_are_not_asked_for():
    """Samples that are potable as they are gain nothing by becoming undrinkable, whatever the prices; those
    that are not may gain by the other, and where a move is paid for all are asked."""
    shard = shard_of(treated(60))
    here = shard.pool.outputs[:, 0, 0] > 0.5
    assert 0 < int(here.sum()) < 60
    assert len(shard._worth_asking(shard.everyone, shard._targets[0])) == 0
    asked = shard._worth_asking(shard.everyone, shard._targets[1])
    assert torch.equal(asked, (~here).nonzero().ravel())
    shard.data.use = -shard.data.use
    for target in shard._targets:
        assert len(shard._worth_asking(shard.everyone, target)) == 60


def test_hopeless_blocks_are_not_asked_again():
    shard = shard_of(treated(60))
    prices = np.ones(shard.data.sides)
    shard.pool.cost[:, 1] = shard.pool.priced(torch.ones(shard.data.sides))[:, 0] + torch.linspace(0, 1, 60)
    assert shard.undecided(prices, 0.5).tolist() == list(range(30))
