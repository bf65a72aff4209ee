"""Derivatives of a batch: one backward pass per output serves all samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def jacobian(values: Tensor, u: Tensor) -> Tensor:
    """(n, q, d) the derivatives of values (n, q) with respect to the inputs `u` (n, d). Rows of a batch are
    independent, so the gradient of a *sum* over the batch holds the gradient of every sample. Values that do
    not depend on `u` have derivative 0."""
    import torch

    slopes, outputs = [], values.shape[1]
    for k in range(outputs):
        slope = None
        if values.requires_grad:
            (slope,) = torch.autograd.grad(
                values[:, k].sum(), u, retain_graph=k + 1 < outputs, allow_unused=True
            )
        slopes.append(torch.zeros_like(u) if slope is None else slope)
    return torch.stack(slopes, dim=1)
