"""Operations of `networks/` for which torch has no name, on tensors of numbers and on traced ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray
from dovetail.networks.functions import FUNCTIONS
from dovetail.networks.solved import Solved
from dovetail.predictors.torch import traced
from dovetail.predictors.torch.traced import Traced


def named(kind: str, values: Tensor) -> Tensor:
    """A function of `networks/functions.py`, value by value."""
    if isinstance(values, Traced):
        return traced.function(kind, values)
    made: Tensor = Named.apply(values, kind)  # type: ignore[no-untyped-call]
    return made


class Named(torch.autograd.Function):
    """A function with the derivative that is stated with it: finite where roots are endlessly steep."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, kind: str) -> Tensor:
        """The formula."""
        ctx.save_for_backward(values)
        ctx.kind = kind
        found: Tensor = FUNCTIONS[kind].formula(torch, values)
        return found

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """The derivative."""
        (values,) = ctx.saved_tensors
        return grads[0] * FUNCTIONS[ctx.kind].derivative(torch, values), None


def largest(values: Tensor, shares: FloatArray) -> Tensor:
    """Along the last axis, the sum of shares[k] times the k-th largest value."""
    if isinstance(values, Traced):
        rows = values.places.reshape(-1, values.shape[-1]).numpy().copy()
        return values.new(values.recording.largest(rows, shares), values.shape[:-1])
    first: Tensor = torch.sort(values, dim=-1, descending=True).values[..., : len(shares)]
    found: Tensor = first @ values.new_tensor(shares)
    return found


def solved(lower: FloatArray, values: Tensor) -> Tensor:
    """(n, size) the solutions of a triangular system for (n, size) right sides."""
    if isinstance(values, Traced):
        found = values.recording.add(Solved.by(lower, values.flat.copy()))
        return values.new(found, values.shape)
    matrix = torch.as_tensor(lower, dtype=values.dtype, device=values.device)
    made: Tensor = torch.linalg.solve_triangular(matrix, values.T, upper=False)
    return made.T
