"""By hand against the float64 copy and its autograd."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.coupling.dense_forward import dense_forward, network_forward


def block_of(*layers):
    torch.manual_seed(0)
    net = torch.nn.Sequential(*layers)
    problem = dt.Problem(dt.Mip(cost=np.zeros(4), lower=-1.0, upper=1.0))
    return problem.add_predictor(net, [0, 1, 2], [3])


def test_values_slopes_and_their_slopes():
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    block = block_of(linear(3, 8), relu(), linear(8, 8), relu(), linear(8, 1))
    by_hand, copy = dense_forward(block, "cpu"), block.predictor.snapshot("cpu")
    u = torch.randn((20, 3), dtype=torch.float64)
    found = []
    for forward in (by_hand, copy):
        at = u.clone().requires_grad_(True)
        values = forward(at)
        (slope,) = torch.autograd.grad((values**2).sum(), at, create_graph=True)
        (second,) = torch.autograd.grad(slope.pow(2).sum(), at)
        found.append((values, slope, second))
    for mine, other in zip(*found, strict=True):
        assert torch.allclose(mine, other, rtol=1e-10, atol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="graphs are CUDA's")
def test_what_is_recorded_is_the_same():
    """Asked often enough, rows go through a recording; those of another in between change nothing."""
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    block = block_of(linear(3, 8), relu(), linear(8, 8), relu(), linear(8, 1))
    by_hand, copy = dense_forward(block, "cuda"), block.predictor.snapshot("cuda")
    for seed in range(6):
        torch.manual_seed(seed)
        one, other = (torch.randn((20, 3), dtype=torch.float64, device="cuda") for _ in range(2))
        one.requires_grad_(True)
        values = by_hand(one)
        by_hand(other)
        (slope,) = torch.autograd.grad((values**2).sum(), one)
        expected = copy(one)
        assert torch.allclose(values, expected, rtol=1e-10, atol=1e-12)
        (truth,) = torch.autograd.grad((expected**2).sum(), one)
        assert torch.allclose(slope, truth, rtol=1e-10, atol=1e-12)


def test_others_go_by_their_copies():
    tanh = block_of(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    assert dense_forward(tanh, "cpu") is None
    block = block_of(torch.nn.Linear(3, 1))
    u = torch.randn((5, 3), dtype=torch.float64)
    assert torch.equal(network_forward(block, "cpu")(u), block.predictor.snapshot("cpu")(u))
