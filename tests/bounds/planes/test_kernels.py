"""Kernels against the same by torch; without a GPU by Triton's interpreter."""

import os

import pytest
import torch

from dovetail.bounds.planes import kernels
from dovetail.bounds.planes.domain import dots
from dovetail.bounds.planes.kernels import Carrying
from dovetail.bounds.planes.moves import Moves
from dovetail.run.optional_kernel import OptionalKernel

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def drawn(seed):
    chance = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=chance, dtype=torch.float64).to(DEVICE)


def weights_and_lines(dtype=torch.float32, width=33, rows=70):
    draw = drawn(0)
    lines = [draw(5, width).to(dtype) for _ in range(4)]
    return draw(5, rows, width).to(dtype), Carrying((lines[0],), (lines[1],), lines[2], lines[3])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("width", "rows"), [(64, 40), (33, 70), (1, 1)])
def test_lines(dtype, width, rows):
    pytest.importorskip("triton")
    from dovetail.bounds.planes.triton_lines import through_lines

    A, lines = weights_and_lines(dtype, width, rows)
    found = through_lines(A, lines.below[0], lines.gap[0], lines.offset, lines.offset_gap, kernels.EVERY)
    assert kernels.agree(found, kernels.lines_by_torch(A, lines), A, lines)


def test_lines_of_some_sets():
    pytest.importorskip("triton")
    from dovetail.bounds.planes.triton_lines import through_lines

    A, lines = weights_and_lines()
    some = torch.tensor([3, 0, 3], device=DEVICE)
    found = through_lines(A[:3], lines.below[0], lines.gap[0], lines.offset, lines.offset_gap, some)
    assert kernels.agree(found, kernels.lines_by_torch(A[:3], lines.take(some)), A[:3], lines.take(some))


def test_what_is_no_number_stays_none():
    pytest.importorskip("triton")
    from dovetail.bounds.planes.triton_lines import through_lines

    A, lines = weights_and_lines()
    A[0, 0, 0], lines.below[0][1, 2] = torch.nan, torch.nan
    found = through_lines(A, lines.below[0], lines.gap[0], lines.offset, lines.offset_gap, kernels.EVERY)
    assert bool(found[0][0, 0, 0].isnan()) and bool(found[1][0, 0].isnan())
    assert bool(found[0][1, :, 2].isnan().all())
    assert kernels.agree(found, kernels.lines_by_torch(A, lines), A, lines)


@pytest.mark.parametrize("moves", [1, 9, 18])
def test_prices_prove_what_a_sort_proves(moves):
    pytest.importorskip("triton")
    from dovetail.bounds.planes.triton_prices import prices

    draw, sets = drawn(moves), 6
    weights, limit = draw(sets, moves).abs(), draw(sets, moves).abs()
    weights[0], weights[1, 0] = 1.0, 0.0
    most = 0.4 * (weights * limit).sum(1)
    most[2], most[3] = torch.inf, 0.0
    none = torch.full((sets,), -torch.inf, dtype=torch.float64, device=DEVICE)
    eye, origin = torch.eye(moves, dtype=torch.float64, device=DEVICE), draw(sets, moves)
    domain = Moves.of(eye, origin, limit, weights, none, most, torch.zeros_like(origin))
    per_move = draw(sets, 50, moves)

    def proved(price):
        gain = dots((per_move + price[:, :, None] * weights[:, None]).clamp(max=0.0), domain.limit)
        return gain - torch.where(price == 0.0, 0.0, price * most[:, None])

    found = prices(per_move, weights, domain.limit, most)
    assert bool((found >= 0.0).all())
    by_sort = domain._price(per_move.cpu() if DEVICE == "cpu" else per_move)
    assert torch.allclose(proved(found), proved(by_sort), rtol=1e-5, atol=1e-5)


@pytest.fixture
def pretended(monkeypatch):
    """A kernel that answers as it is told to, asked wherever a tensor is."""

    def answers(change):
        def call(A, below, gap, offset, offset_gap, sets):
            carried, moved = kernels.lines_by_torch(A, Carrying((below,), (gap,), offset, offset_gap))
            return change(carried), moved

        kernel = OptionalKernel("lines", lambda: call)
        monkeypatch.setattr(kernels, "lines_kernel", lambda: kernel)
        monkeypatch.setattr(kernels, "_takes", lambda rows, widest: True)
        monkeypatch.setattr(kernels, "_BELIEVED", set())
        return kernel

    return answers


def test_a_kernel_that_is_right_is_asked_again(pretended):
    kernel = pretended(lambda carried: carried * (1.0 + 2.0**-24))
    A, lines = weights_and_lines()
    kernels.through_lines(A, lines)
    assert kernel.used and {(torch.float32, 33)} == kernels._BELIEVED


@pytest.mark.parametrize("change", [lambda c: c + 1e-3, lambda c: c * (1.0 + 1e-4), lambda c: c * torch.nan])
def test_a_kernel_that_is_wrong_is_not_believed(pretended, change):
    kernel = pretended(change)
    A, lines = weights_and_lines()
    found, expected = kernels.through_lines(A, lines), kernels.lines_by_torch(A, lines)
    assert torch.equal(found[0], expected[0])
    assert not kernel.used and "its values differ from torch's" in kernel.trouble
    kernels.through_lines(A, lines)
    assert not kernel.used
