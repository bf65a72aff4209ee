"""A kernel's descents are believed where their points are what it says, and as good as torch's."""

import pytest
import torch

from dovetail.decomposition.plan import plan_of
from dovetail.decomposition.shard import PricingOptions, Shard, usual_spread
from dovetail.run.optional_kernel import OptionalKernel
from dovetail.structure.structure import Structure
from tests.decomposition.test_method import treated


@pytest.mark.parametrize(
    ("moved", "dearer", "trouble"),
    [
        (1.0, 0.0, ""),
        (1.0, 0.5, "do not belong"),
        (0.5, 0.0, "do not belong"),
        (2.0, 0.0, "worse points"),
    ],
)
def test_descents_that_are_wrong_or_worse_are_not_believed(moved, dearer, trouble):
    """A kernel that is only pretended: it says what torch says, the same at another cost, that points
    half-way are as good as met, or worse points."""
    problem = treated(60)
    (program,), blocks = plan_of(Structure(problem)).programs, list(problem.blocks)
    shard = Shard(program, blocks, PricingOptions(), "cpu", usual_spread(program, blocks))
    oracle, data, target = shard._oracle, shard.data, shard._targets[1]
    which = shard._worth_asking(shard.everyone, target)
    start, radius = torch.zeros(len(which), data.coordinates), torch.full((len(which),), 0.4)
    costs = data.part_costs(which, torch.ones(data.sides))
    expected = oracle.descend(which, start, radius, costs, target, 1e-4)
    assert bool(torch.isfinite(expected.cost).any())
    rows, moves = oracle._rows(which, start, costs, target), moved * expected.moves
    there = oracle._look(rows, moves, rows.price(moves), target, slopes=False)
    said = there.cost if moved < 1.0 else torch.where(there.lack > 0.0, torch.inf, there.cost)
    told = moves, said + dearer
    oracle._descents = OptionalKernel("descents", lambda: lambda *asked: told)
    found = oracle.descend(which, start, radius, costs, target, 1e-4)
    assert torch.equal(found.cost, expected.cost)
    assert oracle._descents.used == (trouble == "")
    assert trouble in oracle._descents.trouble
