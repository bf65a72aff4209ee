"""A whole descent of pricing in one Triton kernel: small networks, one condition (see `oracle`).

Stepwise, a million descents pass over memory about forty times per step; here a row stays in a processor
from start to end, with the network's weights.
"""
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call,valid-type,misc,unused-ignore"

from __future__ import annotations

from collections.abc import Callable

import triton
import triton.language as tl
from torch import Tensor

from dovetail.decomposition.networks import PaddedNetwork
from dovetail.decomposition.triton_step import goal_of

MOST_SIDE = 32
"""Largest width of layers, so that all weights and comparisons fit into a processor."""
MOST_HIDDEN = 3
"""Largest number of hidden layers in the kernel."""
ROWS, WARPS = 32, 4
"""Rows and warps of a program: with 16 coordinates 64 comparisons for each of its threads."""
PRECISION = "tf32x3"


@triton.jit
def _square(at, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A matrix, row by row."""
    return tl.load(at + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :])


@triton.jit
def _look(
    u, first, inner, biases, last, last_bias,
    HIDDEN: tl.constexpr, ENTRY: tl.constexpr, SIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Values and gradients of rows: forward, then backward through the masks of the ReLUs."""
    unit = tl.arange(0, SIDE)
    weight = _square(first, SIDE, ENTRY)
    one = tl.dot(u, tl.trans(weight), input_precision=PRECISION) + tl.load(biases + unit)[None, :]
    one = tl.maximum(one, 0.0)
    top = one
    if HIDDEN > 1:
        second = _square(inner, SIDE, SIDE)
        two = tl.dot(one, tl.trans(second), input_precision=PRECISION)
        two = tl.maximum(two + tl.load(biases + SIDE + unit)[None, :], 0.0)
        top = two
    if HIDDEN > 2:
        third = _square(inner + SIDE * SIDE, SIDE, SIDE)
        three = tl.dot(two, tl.trans(third), input_precision=PRECISION)
        three = tl.maximum(three + tl.load(biases + 2 * SIDE + unit)[None, :], 0.0)
        top = three
    end = tl.load(last + unit)
    value = tl.sum(top * end[None, :], axis=1) + tl.load(last_bias)
    back = tl.where(top > 0.0, end[None, :], 0.0)
    if HIDDEN > 2:
        back = tl.where(two > 0.0, tl.dot(back, third, input_precision=PRECISION), 0.0)
    if HIDDEN > 1:
        back = tl.where(one > 0.0, tl.dot(back, second, input_precision=PRECISION), 0.0)
    return value, tl.dot(back, weight, input_precision=PRECISION)


@triton.jit
def _of(at, row, step, column, seen):
    """(rows, columns) numbers of rows with the given stride."""
    return tl.load(at + row[:, None] * step + column[None, :], mask=seen, other=0.0)


@triton.jit(
    do_not_specialize=[
        "count", "start_step", "radius_step", "costs_step", "fixed_step", "lower_step", "upper_step",
        "sign_step", "least_step", "slip_step",
    ]
)  # fmt: skip
def _kernel(
    which, rest, start, radius, costs, fixed, lower, upper, sign, least, slip, scale,
    first, inner, biases, last, last_bias, moves, cost, count,
    start_step, radius_step, costs_step, fixed_step, lower_step, upper_step, sign_step, least_step,
    slip_step,
    STEPS: tl.constexpr, GROW: tl.constexpr, SHRINK: tl.constexpr, WIDEST: tl.constexpr,
    LEAST: tl.constexpr, K: tl.constexpr, HIDDEN: tl.constexpr, ENTRY: tl.constexpr, SIDE: tl.constexpr,
    ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The same computation as `Oracle.descend`, with the same names."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column, known = tl.arange(0, ENTRY), row < count
    seen = known[:, None] & (column < K)[None, :]
    block = tl.load(which + row, mask=known, other=0)
    at_rest = _of(rest, block, K, column, seen)
    right = _of(costs, row, costs_step, column, seen)
    left = _of(costs + K, row, costs_step, column, seen)
    low = _of(lower, block, lower_step, column, seen)
    high = _of(upper, block, upper_step, column, seen)
    usual = tl.load(scale + column, mask=column < K, other=0.0)
    reach = tl.load(radius + row * radius_step, mask=known, other=0.0)
    aside = tl.load(fixed + row * fixed_step, mask=known, other=0.0)
    side = tl.load(sign + block * sign_step, mask=known, other=0.0)
    asked = tl.load(least + block * least_step, mask=known, other=0.0)
    spare = tl.load(slip + block * slip_step, mask=known, other=0.0)
    begin = tl.minimum(tl.maximum(_of(start, row, start_step, column, seen), low), high)
    now = begin
    value, slope = _look(at_rest + now, first, inner, biases, last, last_bias, HIDDEN, ENTRY, SIDE, PRECISION)
    short, gain = asked - side * value, side[:, None] * slope
    spent = tl.sum(tl.where(now > 0.0, right, -left) * now, axis=1) + aside
    for _ in range(STEPS):
        goal = goal_of(now, gain, short, reach, right, left, low, high, usual, column, seen, LEAST)
        value, slope = _look(
            at_rest + goal, first, inner, biases, last, last_bias, HIDDEN, ENTRY, SIDE, PRECISION
        )
        lacks = asked - side * value
        price = tl.sum(tl.where(goal > 0.0, right, -left) * goal, axis=1) + aside
        mended = tl.maximum(lacks, spare) < short
        kept = tl.where(short > spare, mended, (lacks <= spare) & (price < spent))
        reach = tl.where(kept, tl.minimum(reach * GROW, WIDEST), reach * SHRINK)
        now = tl.where(kept[:, None], goal, now)
        gain = tl.where(kept[:, None], side[:, None] * slope, gain)
        short = tl.where(kept, lacks, short)
        spent = tl.where(kept, price, spent)
    met = short <= spare
    at = row[:, None] * K + column[None, :]
    tl.store(moves + at, tl.where(met[:, None], now, begin), mask=seen)
    tl.store(cost + row, tl.where(met, spent, float("inf")), mask=known)


def descents(
    network: PaddedNetwork,
    rest: Tensor,
    lower: Tensor,
    upper: Tensor,
    scale: Tensor,
    steps: int,
    radius_rule: tuple[float, float, float],
    least_slope: float,
) -> Callable[..., tuple[Tensor, Tensor]] | None:
    """Descents of blocks that rest at (N, k) `rest`; None where the network is too large.

    `radius_rule`: the growth and shrinking factors of trust regions, and the largest radius. The returned
    function takes numbers of blocks, (n, k) starts, (n,) radii, (n, parts) costs, (n,) costs that do not
    depend on moves, and the condition as (N,) arrays: a sign, the least value of sign times output, and the
    allowed shortfall. It returns (n, k) moves and (n,) costs, which are infinite if the condition is
    violated.
    """
    if max(network.side, network.entry) > MOST_SIDE or network.hidden > MOST_HIDDEN:
        return None
    grow, shrink, widest = radius_rule
    rest, lower, upper = rest.contiguous(), _row_by_row(lower), _row_by_row(upper)
    weights = network.first, network.inner, network.biases, network.last, network.last_bias

    def descend(
        which: Tensor,
        start: Tensor,
        radius: Tensor,
        part_costs: Tensor,
        fixed: Tensor,
        condition: tuple[Tensor, Tensor, Tensor],
    ) -> tuple[Tensor, Tensor]:
        n, k = start.shape
        moves, cost = start.new_empty((n, k)), start.new_empty(n)
        start, part_costs = _row_by_row(start), _row_by_row(part_costs)
        stepped = start, radius, part_costs, fixed, lower, upper, *condition
        _kernel[(triton.cdiv(n, ROWS),)](
            which, rest, *stepped, scale, *weights, moves, cost, n,
            *[array.stride(0) for array in stepped],  # 0 for repeated rows
            STEPS=steps, GROW=grow, SHRINK=shrink, WIDEST=widest, LEAST=least_slope, K=k,
            HIDDEN=network.hidden, ENTRY=network.entry, SIDE=network.side, ROWS=ROWS, PRECISION=PRECISION,
            num_warps=WARPS,
        )  # fmt: skip
        return moves, cost

    return descend


def _row_by_row(array: Tensor) -> Tensor:
    """The same with the numbers of a row contiguous, as the kernel reads them; repeated rows stay
    repeated."""
    return array if array.stride(1) == 1 else array.contiguous()
