"""The value of a unit of a set's row in one Triton kernel: all pairs of moves instead of a sort."""
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call,valid-type,misc,unused-ignore"

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

COMPARISONS = 8192
"""Comparisons of a program: 64 for each of its 128 threads."""


@triton.jit(do_not_specialize=["rows"])
def _kernel(
    per_move, weights, limit, most, price, rows,
    MOVES: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The kernel, for some rows of one set; the use of all moves with at least the same ratio replaces a
    sort."""
    one = tl.program_id(0).to(tl.int64)
    row, move = tl.program_id(1) * ROWS + tl.arange(0, ROWS), tl.arange(0, PADDED)
    inside = move < MOVES
    seen = (row < rows)[:, None] & inside[None, :]
    at = (one * rows + row)[:, None] * MOVES + move[None, :]
    cost = tl.load(per_move + at, mask=seen, other=0.0).to(tl.float32)
    weight = tl.load(weights + one * MOVES + move, mask=inside, other=0.0).to(tl.float32)[None, :]
    end = tl.load(limit + one * MOVES + move, mask=inside, other=0.0).to(tl.float32)[None, :]
    side = tl.load(most + one).to(tl.float32)
    weighed = weight > 0.0
    ratio = tl.where(weighed, -cost / tl.where(weighed, weight, 1.0), float("-inf"))
    before = ratio[:, None, :] >= ratio[:, :, None]
    used = tl.sum(tl.where(before, (weight * end)[:, None, :], 0.0), axis=2)
    found = tl.max(tl.where(used >= side, ratio, 0.0), axis=1)
    found = tl.where((found > 0.0) & (found < float("inf")), found, 0.0)
    tl.store(price + one * rows + row, found.to(price.dtype.element_ty), mask=row < rows)


def prices(per_move: Tensor, weights: Tensor, limit: Tensor, most: Tensor) -> Tensor:
    """(N, S) the ratio of the move that uses up the rest of `most`; 0 if none does."""
    per_move, weights, limit, most = (part.contiguous() for part in (per_move, weights, limit, most))
    sets, rows, moves = per_move.shape
    price = per_move.new_empty(sets, rows)
    padded = triton.next_power_of_2(moves)
    many = min(max(1, COMPARISONS // padded**2), triton.next_power_of_2(rows))
    _kernel[(sets, triton.cdiv(rows, many))](
        per_move, weights, limit, most, price, rows, MOVES=moves, PADDED=padded, ROWS=many
    )
    return price
