"""Forward and backward passes through a block's network, timed apart from everything else.

Rows of a batch do not influence each other, so the gradient of the *sum* over the batch
holds every sample's own gradient: one backward pass serves all samples.
"""

from __future__ import annotations

import torch
from torch import Tensor

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


def jacobian(block: NetworkBlock, u: Tensor) -> tuple[Tensor, Tensor]:
    """Network values (n, q) and their Jacobian (n, q, d) at `u`: one backward pass per output."""
    u = u.detach().requires_grad_(True)
    with block.stopwatch.measure("network"):
        values = block.values(u)
        outputs = values.shape[1]
        if not values.requires_grad:  # a constant
            return values, torch.zeros(len(u), outputs, u.shape[1], dtype=u.dtype, device=u.device)
        slopes = [
            torch.autograd.grad(values[:, o].sum(), u, retain_graph=o + 1 < outputs)[0]
            for o in range(outputs)
        ]
    return values.detach(), torch.stack(slopes, dim=1)
