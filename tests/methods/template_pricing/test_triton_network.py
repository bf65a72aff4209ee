"""A network in one kernel against torch and its autograd; without a GPU by Triton's interpreter."""

import os

import pytest
import torch

from dovetail.methods.template_pricing.padded_network import padded_network

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("sizes", "n"), [((9, 5, 1), 3), ((3, 16, 12, 16, 1), 150), ((20, 32, 32, 1), 70)])
def test_values_and_gradients_are_torchs(sizes, n, monkeypatch):
    pytest.importorskip("triton")
    from dovetail.methods.template_pricing import triton_network
    from dovetail.methods.template_pricing.triton_network import KernelNetwork

    if DEVICE == "cpu":  # the interpreter has no products in bfloat16
        monkeypatch.setattr(triton_network, "HALF", torch.float16)

    chance = torch.Generator().manual_seed(len(sizes))
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    layers = [
        (
            (torch.randn(a, b, generator=chance) / b**0.5).to(DEVICE),
            torch.randn(a, generator=chance).to(DEVICE),
            a > 1,
        )
        for a, b in shapes
    ]
    u = torch.randn(n, sizes[0], generator=chance).to(DEVICE).requires_grad_()
    x = u
    for weight, bias, rectified in layers:
        x = torch.nn.functional.linear(x, weight, bias)
        x = x.relu() if rectified else x
    (expected,) = torch.autograd.grad(x.sum(), u)
    network = KernelNetwork(padded_network(layers))
    values, slopes = network.linearised(u.detach(), gradients=True)
    assert torch.allclose(values, x.detach()[:, 0], rtol=1e-4, atol=1e-4)
    assert torch.allclose(slopes, expected, rtol=1e-4, atol=1e-4)
    assert torch.allclose(network.linearised(u.detach(), gradients=False)[0], values)
