"""Back into the feasible set: the box, and rows on a sample's own inputs and network values.

Rows on f(u) make the set non-convex, so there is no exact projection. Instead: the shortest
Gauss-Newton step that meets the violated rows to first order, with the box respected,
shortened until the worst violation falls; at most `ROUNDS` times. What is left is reported.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dovetail.core.jacobian import jacobian
from dovetail.run.network_step import AugmentedTerms, NetworkBlock, Rows

ROUNDS = 20
"""Of Gauss-Newton steps: it converges in a few or, across many pieces of a network, not at all."""
MET = 1e-9
"""A row is met when it is violated by less than this: what engines hold rows to."""
STEP_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03)
"""Parts of a step that are tried in turn."""
ACTIVE_SET_ROUNDS = 3
"""Times that inputs at their bounds are held and the step is computed again."""
RIDGE = 1e-12
"""Relative to the trace: keeps rows that depend on each other from a singular system."""


def into_box(block: NetworkBlock, u: Tensor) -> Tensor:
    """The nearest point of the box."""
    return torch.minimum(torch.maximum(u, block.lower), block.upper)


def excess(rows: Rows, u: Tensor, values: Tensor) -> Tensor:
    """(n, m) signed row violations: positive above the upper limit, negative below the lower."""
    activity = rows.activity(u, values)
    above = (activity - rows.upper).clamp(min=0.0)
    below = (rows.lower - activity).clamp(min=0.0)
    return above - below


def violation(block: NetworkBlock, u: Tensor, values: Tensor) -> Tensor:
    """(n,) worst row violation of each sample."""
    if block.rows is None:
        return torch.zeros(len(u), dtype=u.dtype, device=u.device)
    return excess(block.rows, u, values).abs().amax(dim=1)


def project(block: NetworkBlock, u: Tensor) -> Tensor:
    """A point of the box near `u` that meets the block's rows, or comes as near to them as it could."""
    u = into_box(block, u)
    if block.rows is None:
        return u
    wrong = violation(block, u, values_only(block, u)) > MET
    if not bool(wrong.any()):
        return u
    u = u.clone()
    u[wrong] = _repaired(block.take(wrong), u[wrong])
    return u


def _repaired(block: NetworkBlock, u: Tensor) -> Tensor:
    """Rounds of steps for samples that all miss a row; those that get there, or stop gaining, stay."""
    assert block.rows is not None
    worst = violation(block, u, values_only(block, u))
    for _ in range(ROUNDS):
        moved, now = _gauss_newton(block, block.rows, u, worst)
        better = (now < worst) & (worst > MET)
        if not bool(better.any()):
            break
        u = torch.where(better.unsqueeze(1), moved, u)
        worst = torch.where(better, now, worst)
    return u


def _gauss_newton(block: NetworkBlock, rows: Rows, u: Tensor, worst: Tensor) -> tuple[Tensor, Tensor]:
    """One shortened step for the samples that miss a row; the others stay where they are."""
    values, slopes = values_and_jacobian(block, u)
    residual = excess(rows, u, values)
    J = (rows.on_inputs + rows.on_values @ slopes) * block.scale.unsqueeze(1)
    J = J * (residual != 0.0).unsqueeze(2)  # rows that are met do not steer
    step = _shortest_step(block, u, J, residual) * block.scale
    best_u, best_worst = u.clone(), worst.clone()
    waiting = worst > MET
    for length in STEP_LENGTHS:
        trial = into_box(block, torch.where(waiting.unsqueeze(1), u + length * step, u))
        now = violation(block, trial, values_only(block, trial))
        better = waiting & (now < worst)
        best_u = torch.where(better.unsqueeze(1), trial, best_u)
        best_worst = torch.where(better, now, best_worst)
        waiting = waiting & ~better
        if not bool(waiting.any()):
            break
    return best_u, best_worst


def _shortest_step(block: NetworkBlock, u: Tensor, J: Tensor, residual: Tensor) -> Tensor:
    """The shortest scaled step that cancels the residual to first order, inside the box.

    Inputs that the step would push through their bound are held there and the step is
    computed again with the others.
    """
    free = block.upper > block.lower
    step = torch.zeros_like(u)
    for _ in range(ACTIVE_SET_ROUNDS):
        held = J * free.unsqueeze(1)
        gram = held @ held.transpose(1, 2)
        ridge = RIDGE * gram.diagonal(dim1=1, dim2=2).sum(dim=1).clamp(min=1e-30)
        eye = torch.eye(gram.shape[1], dtype=u.dtype, device=u.device)
        gram = gram + ridge[:, None, None] * eye
        step = -(held.transpose(1, 2) @ torch.linalg.solve(gram, residual.unsqueeze(2))).squeeze(2)
        target = u + step * block.scale
        blocked = free & (
            ((u <= block.lower) & (target < block.lower)) | ((u >= block.upper) & (target > block.upper))
        )
        if not bool(blocked.any()):
            break
        free = free & ~blocked
    return step


def values_only(block: NetworkBlock, u: Tensor) -> Tensor:
    """Network values at `u`."""
    with block.stopwatch.measure("network"), torch.no_grad():
        return block.values(u)


def gradient(block: NetworkBlock, terms: AugmentedTerms, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The step's objective (n,), its gradient (n, d) and the network values (n, q) at `u`."""
    u = u.detach().requires_grad_(True)
    with block.stopwatch.measure("network"):
        values = block.values(u)
    value = terms.value(u, block.outputs(values))
    with block.stopwatch.measure("network"):
        (slope,) = torch.autograd.grad(value.sum(), u)
    return value.detach(), slope, values.detach()


def values_and_jacobian(block: NetworkBlock, u: Tensor) -> tuple[Tensor, Tensor]:
    """Network values (n, q) and their Jacobian (n, q, d) at `u`."""
    u = u.detach().requires_grad_(True)
    with block.stopwatch.measure("network"):
        values = block.values(u)
        slopes = jacobian(values, u)
    return values.detach(), slopes
