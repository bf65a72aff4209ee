"""Which kernels were used, and why others were not, in words."""

import pytest
import torch

from dovetail.methods.template_pricing.optional_kernel import OptionalKernel, in_words
from dovetail.methods.template_pricing.plan import plan_of
from dovetail.methods.template_pricing.shard import PricingOptions, Shard, usual_spread
from tests.methods.template_pricing.test_method import treated


def missing():
    raise ImportError("triton")


def broken(x):
    raise RuntimeError("no compiler\nand more")


def test_what_is_used_and_what_is_not():
    works, none = OptionalKernel("steps", lambda: lambda x: x + 1), OptionalKernel("descents", lambda: None)
    absent, failing = OptionalKernel("networks", missing), OptionalKernel("sums", lambda: broken)
    assert in_words([works, none]) == ""
    assert [kernel(1) for kernel in (works, none, absent, failing)] == [2, None, None, None]
    assert failing(1) is None
    said = in_words([works, none, absent, failing])
    assert said == (
        "steps in one kernel; by torch alone, networks: no Triton; "
        "by torch alone, sums: RuntimeError: no compiler"
    )


def test_too_little_memory_is_somebody_elses_matter():
    def full(x):
        raise torch.OutOfMemoryError("full")

    with pytest.raises(torch.OutOfMemoryError):
        OptionalKernel("steps", lambda: full)(1)


@pytest.mark.parametrize("off", [0.0, 0.5])
def test_descents_that_end_elsewhere_are_not_believed(off):
    """A kernel that is only pretended: what it says is what torch says, or half a unit beside it."""
    problem = treated(60)
    (program,), blocks = plan_of(problem).programs, list(problem.blocks)
    shard = Shard(program, blocks, PricingOptions(), "cpu", usual_spread(program, blocks))
    oracle, data, target = shard._oracle, shard.data, shard._targets[1]
    which, start = torch.arange(60), torch.zeros(60, data.coordinates)
    radius, costs = torch.full((60,), 0.4), data.part_costs(torch.arange(60), torch.ones(data.sides))
    expected = oracle.descend(which, start, radius, costs, target)
    assert bool(torch.isfinite(expected.cost).any())
    told = (expected.moves, expected.cost + off)
    oracle._descents = OptionalKernel("descents", lambda: lambda *asked: told)
    found = oracle.descend(which, start, radius, costs, target)
    assert torch.equal(found.cost, expected.cost)
    assert oracle._descents.used == (off == 0.0)
    assert ("elsewhere" in oracle._descents.trouble) == (off > 0.0)
