"""Damped Newton steps on a barrier function, by conjugate gradients, all samples at once."""

from __future__ import annotations

import torch
from torch import Tensor

from dovetail.nn.barrier_function import TINY, Barrier, Product
from dovetail.run.budget import Budget

TO_THE_BOUND = 0.99
"""A step may use this part of the way to the nearest bound (the usual fraction of interior-point methods)."""
BACKTRACKS = 12
"""Halvings of a step, down to 5e-4 of it: a Newton step that is no good by then points nowhere."""
SUFFICIENT_DECREASE = 1e-4
"""Armijo's constant."""
FLAT = 1e-14
"""Relative to |p|^2: curvature below this is rounding, or negative."""
SOLVED = 1e-16
"""Of the first squared residual, below which conjugate gradients have converged."""


def newton_cg(barrier: Barrier, u: Tensor, mu: float, steps: int, cg_steps: int, budget: Budget) -> Tensor:
    """A few damped Newton steps at one mu."""
    value = barrier.value(u, mu)
    for _ in range(steps):
        if budget.over:
            break
        slope, product = barrier.expand(u, mu)
        step = _conjugate_gradients(slope, product, barrier.block.scale, cg_steps)
        u, value, moved = _line_search(barrier, u, value, slope, step, mu)
        if not moved:
            break
    return u


def _conjugate_gradients(slope: Tensor, product: Product, scale: Tensor, steps: int) -> Tensor:
    """Approximate Newton steps, all samples at once, in scaled coordinates.

    A sample that meets negative curvature stops there: with the step it has, or with the
    scaled steepest descent if it has none yet.
    """
    r = -slope * scale
    p, step = r.clone(), torch.zeros_like(r)
    rr = (r * r).sum(dim=1, keepdim=True)
    first = rr.clone()
    active = rr > 0
    for k in range(steps):
        q = product(p * scale) * scale
        curvature = (p * q).sum(dim=1, keepdim=True)
        bent = active & (curvature <= FLAT * (p * p).sum(dim=1, keepdim=True))
        if k == 0:
            step = torch.where(bent, r, step)
        active = active & ~bent
        length = torch.where(active, rr / curvature.clamp(min=TINY), torch.zeros_like(rr))
        step = step + length * p
        r = r - length * q
        now = (r * r).sum(dim=1, keepdim=True)
        active = active & (now > SOLVED * first)
        if not bool(active.any()):
            break
        p = torch.where(active, r + (now / rr.clamp(min=TINY)) * p, p)
        rr = now
    return step * scale


def _line_search(
    barrier: Barrier, u: Tensor, value: Tensor, slope: Tensor, step: Tensor, mu: float
) -> tuple[Tensor, Tensor, bool]:
    """Shorten each sample's step until it stays inside the box and the barrier function falls."""
    block = barrier.block
    downhill = (slope * step).sum(dim=1)
    far = torch.full_like(u, torch.inf)
    to_lower = torch.where(step < 0, (block.lower - u) / step, far)
    to_upper = torch.where(step > 0, (block.upper - u) / step, far)
    to_bound = torch.minimum(to_lower, to_upper).amin(dim=1)
    length = (TO_THE_BOUND * to_bound).clamp(max=1.0)
    waiting = downhill < 0
    anything = False
    for _ in range(BACKTRACKS):
        if not bool(waiting.any()):
            break
        trial = torch.where(waiting.unsqueeze(1), u + length.unsqueeze(1) * step, u)
        now = barrier.value(trial, mu)
        better = waiting & (now <= value + SUFFICIENT_DECREASE * length * downhill)
        anything = anything or bool(better.any())
        u = torch.where(better.unsqueeze(1), trial, u)
        value = torch.where(better, now, value)
        waiting = waiting & ~better
        length = 0.5 * length
    return u, value, anything
