"""Prices of the coupling rows: Newton's method on the smoothed dual of the LP over the pool.

    least over p >= 0 of   p'h + tau sum over blocks of log sum over columns of exp(-(cost + p'use) / tau)

The gradient is the slack of the rows, the Hessian the variance of uses under the weights exp(...). With few
rows, second-order steps cost no more than first-order ones. tau decreases in steps; the prices with the best
exact value are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.decomposition.pool import BlockColumns, BlockPool
from dovetail.run import work

SMOOTHING = (0.08, 0.02, 0.005)
"""tau in units of a typical column's cost: the first converges from far away in a few steps, the last is
within a thousandth of the LP."""
STEPS, HALVINGS = 20, 12
MANY_ROWS = 200
"""With more coupling rows the Hessian costs more than it saves, and L-BFGS-B is used."""
RIDGE = 1e-9
"""Relative, added to the Hessian: rows without use have zero curvature."""
HIGHEST = 100.0
"""Upper limit of prices, relative to the typical price, because a price is unbounded if no column reduces
the violation of its row."""
LONGEST = 4.0
"""Longest step, relative to a price or the typical price."""
ENOUGH = 1e-7
"""Relative: a step that promises less is the last one for its tau."""
CHUNK, DEVICE_CHUNK = 1 << 16, 1 << 20
"""Number of blocks at a time: intermediate results are six times as large as their part of the pool."""
QUIET_STEPS = 60
"""Steps of L-BFGS-B for each tau."""
SUM_EFFORT, BLOCK_EFFORT = 2.2e-4, 1.5e-6
"""Seconds of a smoothed sum, and of each of its blocks (see `Work.effort`)."""


@dataclass(frozen=True)
class Smoothed:
    """The smoothed sum over blocks (its negative is part of the dual), with derivatives."""

    value: float
    use: FloatArray
    """(R,) use of all blocks under the weights."""
    spread: FloatArray | None
    """(R, R) Hessian without the factor 1/tau."""

    def __add__(self, other: Smoothed) -> Smoothed:
        spread = None if self.spread is None or other.spread is None else self.spread + other.spread
        return Smoothed(self.value + other.value, self.use + other.use, spread)


def smoothed(columns: BlockPool | BlockColumns, prices: FloatArray, tau: float, *, second: bool) -> Smoothed:
    """-tau sum log sum exp(-priced / tau) over the blocks of a pool, or some of them."""
    uses, costs = columns.use, columns.cost
    work.count(effort=SUM_EFFORT + BLOCK_EFFORT * len(costs))
    price = torch.as_tensor(prices, dtype=uses.dtype, device=uses.device)
    total = Smoothed(0.0, np.zeros(len(prices)), np.zeros((len(prices),) * 2) if second else None)
    size = CHUNK if uses.device.type == "cpu" else DEVICE_CHUNK
    for first in range(0, len(costs), size):
        use, cost = uses[first : first + size], costs[first : first + size]
        total = total + _chunk(use, cost, price, tau, second)
    return total


def _chunk(use: Tensor, cost: Tensor, price: Tensor, tau: float, second: bool) -> Smoothed:
    scaled = -(cost + use @ price) / tau
    known = torch.isfinite(scaled).any(dim=1)
    if not bool(known.all()):
        use, scaled = use[known], scaled[known]
    value = -tau * float(torch.logsumexp(scaled, dim=1).sum(dtype=torch.float64))
    weight = torch.softmax(scaled, dim=1)
    weighted = weight[:, :, None] * use
    mean = weighted.sum(dim=1)
    spread = None
    if second:
        flat, mixed = use.flatten(0, 1), weighted.flatten(0, 1)
        spread = ((flat.T @ mixed - mean.T @ mean) / tau).double().cpu().numpy()
    return Smoothed(value, mean.sum(dim=0, dtype=torch.float64).cpu().numpy(), spread)


Sum = Callable[[FloatArray, float, bool], Smoothed]
"""The sum over all blocks at prices, for a tau, with or without second derivatives."""


def best_prices(
    of_blocks: Sum,
    h: FloatArray,
    start: FloatArray,
    unit: float,
    usual: FloatArray,
    smoothing: Sequence[float] = SMOOTHING,
) -> FloatArray:
    """The best prices from `start`; `unit` is the cost of a typical column, `usual` the price at which its
    use has the same cost."""
    prices = start
    if len(h) == 0:
        return prices
    for tau in smoothing:
        if len(h) > MANY_ROWS:
            prices = _first_order(of_blocks, h, prices, tau * unit, highest(usual))
        else:
            prices = _newton(of_blocks, h, prices, tau * unit, usual)
    return prices


def highest(usual: FloatArray) -> FloatArray:
    """(R,) upper limits of prices."""
    most = float(usual.max(initial=0.0))
    return HIGHEST * np.where(usual > 0.0, usual, most if most > 0.0 else 1.0)


def _newton(of_blocks: Sum, h: FloatArray, prices: FloatArray, tau: float, usual: FloatArray) -> FloatArray:
    """Projected Newton steps: prices at 0 that would decrease stay at 0, and prices at the upper limit
    that would increase stay there."""
    most = highest(usual)
    now = of_blocks(prices, tau, True)
    value = float(prices @ h) - now.value
    for _ in range(STEPS):
        gradient = h - now.use
        free = ((prices > 0.0) | (gradient < 0.0)) & ((prices < most) | (gradient > 0.0))
        if not free.any():
            return prices
        newton = _damped(now, gradient, free, prices, usual)
        if abs(float(gradient @ newton)) <= ENOUGH * (1.0 + abs(value)):
            return prices
        found = _searched(of_blocks, h, prices, value, gradient, newton, tau, most)
        if found is None:
            return prices
        trial, new, new_value = found
        gained = value - new_value
        prices, now, value = trial, new, new_value
        if gained <= ENOUGH * (1.0 + abs(value)):
            return prices
    return prices


def _damped(
    now: Smoothed, gradient: FloatArray, free: BoolArray, prices: FloatArray, usual: FloatArray
) -> FloatArray:
    """Newton's step, in units of typical prices. If blocks agree the dual is flat; then the ridge grows until
    no component is much longer than prices are (Levenberg)."""
    assert now.spread is not None
    scale = np.maximum(usual, np.where(usual > 0.0, 0.0, 1.0))[free]
    hessian = now.spread[np.ix_(free, free)] * np.outer(scale, scale)
    slope = gradient[free] * scale
    most = LONGEST * np.maximum(1.0, prices[free] / scale)
    ridge = RIDGE * max(float(np.trace(hessian)) / len(scale), float(np.abs(slope).max()) * RIDGE, 1e-300)
    step = np.full(len(scale), np.inf)
    while not np.all(np.abs(step) <= most):
        with suppress(np.linalg.LinAlgError):  # some rows are used by no block
            step = -np.linalg.solve(hessian + ridge * np.eye(len(scale)), slope)
        ridge *= 10.0
    whole = np.zeros_like(prices)
    whole[free] = step * scale
    return whole


def _searched(
    of_blocks: Sum,
    h: FloatArray,
    prices: FloatArray,
    value: float,
    gradient: FloatArray,
    direction: FloatArray,
    tau: float,
    most: FloatArray,
) -> tuple[FloatArray, Smoothed, float] | None:
    """Halve the step until the gain is sufficient; returns prices, sums and value there. None at the
    solution, or if the projected step leads uphill."""
    length = 1.0
    for _ in range(HALVINGS):
        trial = np.clip(prices + length * direction, 0.0, most)
        new = of_blocks(trial, tau, True)
        new_value = float(trial @ h) - new.value
        if new_value <= value + 1e-4 * float(gradient @ (trial - prices)):
            return trial, new, new_value
        length *= 0.5
    return None


def _first_order(
    of_blocks: Sum, h: FloatArray, prices: FloatArray, tau: float, most: FloatArray
) -> FloatArray:
    def dual(p: FloatArray) -> tuple[float, FloatArray]:
        at = of_blocks(p, tau, False)
        return float(p @ h) - at.value, h - at.use

    found = minimize(
        dual, prices, jac=True, method="L-BFGS-B", bounds=[(0.0, price) for price in most],
        options={"maxiter": QUIET_STEPS},
    )  # fmt: skip
    return np.asarray(found.x)


def exact_value(pool: BlockPool, prices: FloatArray) -> float:
    """The total cost of blocks, each at its cheapest column at the prices."""
    price = torch.as_tensor(prices, dtype=pool.use.dtype, device=pool.use.device)
    least = pool.priced(price).min(dim=1).values
    return float(least[torch.isfinite(least)].sum(dtype=torch.float64))
