"""Blocks asked where their columns are against the same in numpy."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.decomposition.confirmed import confirmed
from dovetail.decomposition.device_blocks import DeviceBlocks, device_blocks
from dovetail.decomposition.plan import plan_of
from dovetail.structure.structure import Structure
from tests.decomposition.families import blends, sales
from tests.decomposition.test_method import treated


@pytest.mark.parametrize("problem", [treated(60), blends(60), sales(60)], ids=["classes", "floors", "prices"])
def test_they_are_what_numpy_makes_of_them(problem):
    (program,), blocks = plan_of(Structure(problem)).programs, list(problem.blocks)
    there, rng = DeviceBlocks(program, blocks, "cpu"), np.random.default_rng(0)
    which = rng.integers(program.count, size=90)
    low, high = np.maximum(program.lower, -1.0), np.minimum(program.upper, 1.0)
    moves = rng.uniform(low, high)
    held, said = confirmed(program, blocks, which, moves[which], None)
    holds, outputs = there.confirmed(torch.as_tensor(which), torch.as_tensor(moves[which]), None)
    assert np.array_equal(holds.numpy(), held)
    np.testing.assert_allclose(outputs.numpy(), said, rtol=1e-5, atol=1e-6)
    wrong = torch.as_tensor(1.0 - said)
    (classes,) = {block.classifies for block in blocks}
    refused = there.confirmed(torch.as_tensor(which), torch.as_tensor(moves[which]), wrong)[0]
    assert not classes or not bool(refused.any())
    _, all_outputs = confirmed(program, blocks, slice(None), moves, None)
    mine = there.columns(torch.as_tensor(moves), torch.as_tensor(all_outputs))
    for one, other in zip(mine, program.columns(moves, all_outputs), strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-12)


def test_a_processor_does_without():
    problem = treated(60)
    (program,) = plan_of(Structure(problem)).programs
    assert device_blocks(program, list(problem.blocks), "cpu") is None
    assert device_blocks(program, list(problem.blocks), "meta") is None  # the network is elsewhere
    assert isinstance(problem.blocks[0].predictor, dt.core.predictor.OnDevice)
