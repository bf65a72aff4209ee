"""Forward and backward passes through a block's network, timed apart from everything else."""

from __future__ import annotations

import torch
from torch import Tensor

from dovetail.core.jacobian import jacobian
from dovetail.run.network_step import AugmentedTerms, NetworkBlock


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
