"""The closed form of a pricing step as one Triton kernel, for GPUs (see `oracle`): thirty passes over memory
fewer.

Without Triton, or without a compiler that Triton can use, torch computes the step. The fractional knapsack
needs no sort: the amount bought before a variable is the sum over all cheaper variables, with k times k
comparisons per row.
"""
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call,valid-type,misc,unused-ignore"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

MOST_COORDINATES = 32
"""Largest number of coordinates, so that a row's comparisons fit into registers."""
COMPARISONS = 8192
"""Comparisons of a program: 64 for each of its 128 threads."""


@triton.jit
def goal_of(
    now, slope, lacks, reach, to_right, to_left, least, most, usual, column, seen, LEAST: tl.constexpr
):  # fmt: skip
    """(rows, columns) as in `oracle._cheapest`, after the trust region, with the same names."""
    low = tl.maximum(least, now - reach[:, None] * usual[None, :])
    high = tl.minimum(most, now + reach[:, None] * usual[None, :])
    base = tl.minimum(tl.maximum(low, 0.0), high)
    base = tl.where(to_right < 0.0, high, tl.where(to_left < 0.0, low, base))
    missing = lacks - tl.sum(slope * (base - now), axis=1)
    rises = slope > 0.0
    room = tl.where(rises, high - base, base - low)
    up = tl.where(base < 0.0, -to_left, to_right)
    down = tl.where(base > 0.0, -to_right, to_left)
    size = tl.abs(slope)
    amount = tl.where(seen & (size > LEAST), size * room, 0.0)
    size = tl.maximum(size, LEAST)
    rate = tl.where(rises, up, down) / size
    mine, other = rate[:, :, None], rate[:, None, :]
    earlier = (column[None, :] < column[:, None])[None, :, :]
    first = (other < mine) | ((other == mine) & earlier)
    before = tl.sum(tl.where(first, amount[:, None, :], 0.0), axis=2)
    taken = tl.minimum(tl.maximum(missing[:, None] - before, 0.0), amount) / size
    found = base + tl.where(rises, taken, -taken)
    return tl.minimum(tl.maximum(found, least), most)


@triton.jit(do_not_specialize=["count"])
def _kernel(
    moves, gain, short, radius, right, left, lower, upper, scale, goal, count,
    right_step, left_step, lower_step, upper_step,
    LEAST: tl.constexpr, K: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """For each row the goal of its step."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, PADDED)
    seen = (row < count)[:, None] & (column < K)[None, :]
    at = row[:, None] * K + column[None, :]
    now = tl.load(moves + at, mask=seen, other=0.0)
    slope = tl.load(gain + at, mask=seen, other=0.0)
    lacks = tl.load(short + row, mask=row < count, other=0.0)
    reach = tl.load(radius + row, mask=row < count, other=0.0)
    usual = tl.load(scale + column, mask=column < K, other=0.0)
    to_right = tl.load(right + row[:, None] * right_step + column[None, :], mask=seen, other=0.0)
    to_left = tl.load(left + row[:, None] * left_step + column[None, :], mask=seen, other=0.0)
    least = tl.load(lower + row[:, None] * lower_step + column[None, :], mask=seen, other=0.0)
    most = tl.load(upper + row[:, None] * upper_step + column[None, :], mask=seen, other=0.0)
    found = goal_of(now, slope, lacks, reach, to_right, to_left, least, most, usual, column, seen, LEAST)
    tl.store(goal + at, found, mask=seen)


def cheapest(
    moves: Tensor,
    gain: Tensor,
    short: Tensor,
    radius: Tensor,
    costs: tuple[Tensor, Tensor],
    bounds: tuple[Tensor, Tensor],
    scale: Tensor,
    least_slope: float,
) -> Tensor:
    """(n, k) the goal of each row; `costs` to the right and left and `bounds` are (n, k)."""
    count, k = moves.shape
    moves, gain, short, radius = (array.contiguous() for array in (moves, gain, short, radius))
    goal = torch.empty_like(moves)
    padded = triton.next_power_of_2(k)
    rows = max(1, COMPARISONS // padded**2)
    wide = [array if array.stride(1) == 1 or k == 1 else array.contiguous() for array in (*costs, *bounds)]
    steps = [array.stride(0) for array in wide]  # 0 for repeated rows
    _kernel[(triton.cdiv(count, rows),)](
        moves, gain, short, radius, *wide, scale, goal, count, *steps,
        LEAST=least_slope, K=k, PADDED=padded, ROWS=rows,
    )  # fmt: skip
    return goal
