"""Weights through the lines of a nonlinear step in one Triton kernel, which saves seven passes over
memory."""
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call,valid-type,misc,unused-ignore"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

NUMBERS = 4096
"""Numbers of a program: 32 for each of its 128 threads."""


@triton.jit(do_not_specialize=["rows"])
def _kernel(
    A, below, gap, offset, offset_gap, sets, carried, moved, rows,
    SOME: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The kernel, for some rows of one set."""
    one = tl.program_id(0).to(tl.int64)
    row, column = tl.program_id(1) * ROWS + tl.arange(0, ROWS), tl.arange(0, PADDED)
    inside = column < WIDTH
    seen = (row < rows)[:, None] & inside[None, :]
    at = (one * rows + row)[:, None] * WIDTH + column[None, :]
    of = tl.load(sets + one) if SOME else one
    line = of * WIDTH + column
    weight = tl.load(A + at, mask=seen, other=0.0)
    negative = tl.where(weight > 0.0, 0.0, weight)  # NaN stays NaN
    low = tl.load(below + line, mask=inside, other=0.0)[None, :]
    wide = tl.load(gap + line, mask=inside, other=0.0)[None, :]
    base = tl.load(offset + line, mask=inside, other=0.0)[None, :]
    more = tl.load(offset_gap + line, mask=inside, other=0.0)[None, :]
    tl.store(carried + at, weight * low + negative * wide, mask=seen)
    tl.store(moved + one * rows + row, tl.sum(weight * base + negative * more, axis=1), mask=row < rows)


def through_lines(
    A: Tensor, below: Tensor, gap: Tensor, offset: Tensor, offset_gap: Tensor, which: Tensor | slice
) -> tuple[Tensor, Tensor]:
    """The same as `kernels.through_lines`, for all sets or a selection by index."""
    A, lines = A.contiguous(), [line.contiguous() for line in (below, gap, offset, offset_gap)]
    sets, rows, width = A.shape
    some = isinstance(which, Tensor)
    carried, moved = torch.empty_like(A), A.new_empty(sets, rows)
    padded = triton.next_power_of_2(width)
    many = min(max(1, NUMBERS // padded), triton.next_power_of_2(rows))
    _kernel[(sets, triton.cdiv(rows, many))](
        A, *lines, which if some else A, carried, moved, rows,
        SOME=some, WIDTH=width, PADDED=padded, ROWS=many,
    )  # fmt: skip
    return carried, moved
