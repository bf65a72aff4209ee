"""The network step on a GPU: same answers, checked where the predictor lives, nothing moved for good."""

import numpy as np
import pytest
import torch
from benchmarks.many_blocks import stated

import dovetail as dt
from dovetail.decomposition import TemplatePricing
from dovetail_study.problems.water import train, water

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")

SHORT = dt.DualDecomposition(iterations=8, patience=None)


@pytest.mark.parametrize("network", ["2x16", "lstm", "conv1d", "residual"])
@pytest.mark.parametrize("nn_solver", [dt.ProjectedGradient(), dt.LogBarrier()], ids=["pgd", "barrier"])
def test_solved_there_and_verified_here(network, nn_solver):
    instance = water(20, network, epochs=5, allow_constant=True)
    method = dt.DualDecomposition(iterations=8, patience=None, nn_solver=nn_solver)
    result = dt.solve(instance.problem, method, device="cuda", log=False)
    assert dt.check(instance.problem, result.x).within()
    assert instance.counts(result).potable >= instance.counts(result).untouched
    assert all(p.device.type == "cpu" and p.requires_grad for p in instance.network.parameters())


def test_a_predictor_that_lives_on_the_gpu_stays_there():
    instance = water(20, "2x16", epochs=5, allow_constant=True)
    moved = dt.Problem(instance.problem.mip)
    there = instance.network.to("cuda")
    moved.add_predictor(
        there, instance.treated, instance.potable[:, None], output_type="classification", threshold=0.0
    )
    result = dt.solve(moved, SHORT, log=False)
    assert dt.check(moved, result.x).within()
    assert all(p.device.type == "cuda" for p in there.parameters())


def test_double_precision_takes_the_same_path_on_both():
    net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
    problem = dt.Problem(dt.Mip(cost=[0.1, -0.2, 1.0], lower=[-1.0, -1.0, -10.0], upper=[1.0, 1.0, 10.0]))
    problem.add_predictor(net, [0, 1], [2])
    here, there = (dt.solve(problem, SHORT, device=device, log=False) for device in (None, "cuda"))
    np.testing.assert_allclose(here.x, there.x, atol=1e-6)
    np.testing.assert_allclose(here.trace.column("primal"), there.trace.column("primal"), atol=1e-6)


def test_many_blocks_are_checked_where_their_network_lives():
    """Choice and check on the GPU: the answer of the CPU, within what other sums make of it."""
    judge = train("2x16", epochs=5, allow_constant=True)
    here = dt.solve(stated(1_000, judge).problem, TemplatePricing(rounds=4), time_limit=60, log=False)
    judge.network.to("cuda")
    instance = stated(1_000, judge)
    there = dt.solve(instance.problem, TemplatePricing(rounds=4), device="cuda", time_limit=60, log=False)
    assert dt.check(instance.problem, there.x).within()
    assert instance.counts(there).potable == there.objective
    assert there.objective == pytest.approx(here.objective, rel=0.02)
