"""Batches of one row are batches like any other: nothing is taken to hold for all because it has length 1."""

from itertools import pairwise

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.decomposition import TemplatePricing, descent_rows
from dovetail.decomposition.block_data import BlockData, is_repeated, of, repeated, stored
from dovetail.decomposition.descent_rows import Batch, DescentRows, DescentState
from dovetail.decomposition.plan import plan_of
from dovetail.decomposition.shard import PricingOptions, Shard, usual_spread
from dovetail.run.budget import Budget
from dovetail.structure.structure import Structure
from tests.decomposition.families import blends, judged, offers
from tests.decomposition.test_method import optimum, treated

FAMILIES = {
    "treated": treated,
    "judged": judged,
    "blends": blends,
    "offers": lambda n: offers(n, continuous=True),
}
BLOCKS = 52


def shard_of(program, blocks, spread=None):
    spread = usual_spread(program, blocks) if spread is None else spread
    return Shard(program, blocks, PricingOptions(), "cpu", spread)


@pytest.mark.parametrize(
    ("rows", "which"), [(1, []), (1, [0]), (1, [0, 0, 0]), (3, []), (3, [0]), (3, [2]), (3, [1, 0])]
)
@pytest.mark.parametrize("common", [False, True])
def test_rows_are_those_of_the_written_out_array(rows, common, which):
    given = torch.arange(5.0 if common else 5.0 * rows).reshape(-1, 5)
    array, written = repeated(given, rows), given.expand(rows, 5).clone()
    found = of(array, torch.tensor(which, dtype=torch.long))
    assert torch.equal(found, written[which])
    assert torch.equal(stored(found).expand(len(which), 5), written[which])
    assert is_repeated(array) == (common and rows > 1)


@pytest.mark.parametrize("outputs", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_last_row_leaves(n, outputs):
    """One by one: every row ends where it was when it left."""
    k, nothing = 3, torch.zeros(n)
    at = torch.arange(float(n))[:, None].expand(n, k)
    state = DescentState(at, at[:, :1] if outputs else None, nothing, nothing, nothing, nothing, at, None)
    common = torch.zeros(1, k)
    rows = DescentRows(
        [torch.zeros(n, k)], common, common, common, common, common[:, :1], common[:, 0],
        common[:, None, :1], None, common[:, :1], common[:, :1], some_free=False,
    )  # fmt: skip
    batch = Batch(rows, state, torch.ones(n))
    for left in reversed(range(n)):
        batch.state.moves = batch.state.moves + 10.0
        going = batch.leave(torch.arange(left + 1) == 0)
        assert going.tolist() == list(range(1, left + 1))
        assert len(batch.rows.lower) == len(batch.state.moves) == len(batch.radius) == left
    end, radius = batch.end()
    assert end.moves[:, 0].tolist() == [i + 10.0 * (i + 1) for i in range(n)]
    assert (end.outputs is not None) == outputs
    assert len(radius) == n


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_is_its_rows_one_by_one(family, monkeypatch):
    """Descents of many blocks against batches of one, though rows leave as soon as they are done.

    In float64: networks round differently in batches of other sizes, and in float32 that may lead elsewhere.
    """
    monkeypatch.setattr(BlockData, "dtype", torch.float64)
    monkeypatch.setattr(descent_rows, "LEAVING", 0.0)
    problem = FAMILIES[family](BLOCKS)
    (program,) = plan_of(Structure(problem)).programs
    shard = shard_of(program, list(problem.blocks))
    chance = torch.Generator().manual_seed(0)
    start = 0.2 * torch.randn(BLOCKS, program.coordinates, generator=chance, dtype=torch.float64)
    radius = torch.full((BLOCKS,), 0.4, dtype=torch.float64)
    prices = torch.rand(shard.data.sides, generator=chance, dtype=torch.float64)
    for target in shard._targets:

        def descended(which, target=target):
            costs = shard.data.part_costs(which, prices)
            return shard._oracle.descend(which, start[which], radius[which], costs, target, 1e-4)

        together = descended(shard.everyone)
        assert bool(torch.isfinite(together.cost).any())
        for which in shard.everyone.split(1):
            alone = descended(which)
            for name in ("moves", "outputs", "cost"):
                mine, all_of_them = getattr(alone, name), getattr(together, name)
                assert mine.shape == all_of_them[which].shape
                assert torch.allclose(mine, all_of_them[which], atol=1e-6)


@pytest.mark.parametrize("family", ["treated", "judged"])
def test_a_shard_is_its_blocks_one_by_one(family, monkeypatch):
    """Shards of one and two blocks have the columns of one shard of all, where no starts are drawn."""
    monkeypatch.setattr("dovetail.decomposition.shard.FEW_FREE", 0)
    monkeypatch.setattr(BlockData, "dtype", torch.float64)
    monkeypatch.setattr(descent_rows, "LEAVING", 0.0)
    problem = FAMILIES[family](BLOCKS)
    (program,), blocks = plan_of(Structure(problem)).programs, list(problem.blocks)
    spread, prices = usual_spread(program, blocks), np.full(program.sides.count, 0.2)

    def priced(first, last):
        shard = shard_of(program.part(first, last), blocks, spread)
        for seed in (0, 1):
            rng = np.random.default_rng(seed)
            shard.price(np.arange(shard.count), prices[None], 0.1, 1.0, rng, Budget(np.inf))
        return shard.pool.priced(torch.as_tensor(prices))

    together = priced(0, BLOCKS)
    assert bool(torch.isfinite(together[:, 1:]).any())
    for first, last in pairwise([*range(8), *range(8, 20, 2)]):
        assert torch.allclose(priced(first, last), together[first:last], atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, BLOCKS])
def test_samples_with_several_conditions_each(n, monkeypatch):
    """The whole method: the batches of these samples shrink to one row whose next step is taken back."""
    problem = judged(n, seed=4)
    result = dt.solve(problem, TemplatePricing(rounds=3), log=False)
    assert dt.check(problem, result.x).within()
    assert result.objective >= 0.2 * (n - 1)


@pytest.mark.parametrize("n", [1, 2])
def test_few_blocks_against_enumeration(n, monkeypatch):
    problem = offers(n, sides=(-np.inf, 1.0))
    result = dt.solve(problem, TemplatePricing(rounds=3), log=False)
    assert dt.check(problem, result.x).within()
    assert result.objective == pytest.approx(optimum(problem, n), abs=1e-6)
