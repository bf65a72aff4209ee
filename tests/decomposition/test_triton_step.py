"""One kernel against the same by torch; without a GPU by Triton's interpreter."""

import os

import pytest
import torch

from dovetail.decomposition.descent_rows import DescentState
from dovetail.decomposition.oracle import LEAST_SLOPE, _cheapest, fused_step

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("n", [1, 70])
@pytest.mark.parametrize(("k", "rows_differ"), [(1, False), (9, False), (9, True), (17, True)])
def test_it_is_the_closed_form(k, rows_differ, n):
    pytest.importorskip("triton")
    from dovetail.decomposition.triton_step import cheapest

    chance = torch.Generator().manual_seed(k)

    def drawn(*shape):
        return torch.randn(*shape, generator=chance).to(DEVICE)

    several = n if rows_differ else 1
    lower, upper = -2.0 * drawn(1, k).abs().expand(n, k), 2.0 * drawn(n, k).abs()
    moves = torch.minimum(torch.maximum(0.3 * drawn(n, k), lower), upper)
    gain, short, radius, scale = drawn(n, k), drawn(n), drawn(n).abs(), drawn(k).abs()
    gain[0], gain[-1, 0] = 0.0, 1e-12  # a condition that no move changes, or hardly
    parts = drawn(several, 2 * k + 2)
    left = torch.maximum(parts[:, k : 2 * k], -parts[:, :k])  # cheap on one side, dear on the other
    right, left = parts[:, :k].expand(n, k), left.expand(n, k)
    size = radius[:, None] * scale
    region = torch.maximum(lower, moves - size), torch.minimum(upper, moves + size)
    nothing = torch.zeros(n, device=DEVICE)
    expected = _cheapest(
        *region, right, left, DescentState(moves, moves, nothing, nothing, nothing, short, gain, None)
    )
    expected = torch.minimum(torch.maximum(expected, lower), upper)
    found = cheapest(moves, gain, short, radius, (right, left), (lower, upper), scale, LEAST_SLOPE)
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_processor_needs_none():
    assert fused_step("cpu", 3) is None
