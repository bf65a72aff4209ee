"""The torch modules that estimators are written with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.linear import as_linear
from dovetail.predictors.torch.traced import Traced


def dense(weight: Any, bias: Any) -> nn.Linear:
    """v -> weight v + bias."""
    weights = np.atleast_2d(np.asarray(weight, dtype=np.float64))
    return as_linear(weights, np.broadcast_to(bias, len(weights)))


def scale(by: Any) -> nn.Linear:
    """Each value times its own factor."""
    return dense(np.diag(by), 0.0)


def shift(by: Any) -> nn.Linear:
    """Each value plus its own summand."""
    return dense(np.eye(len(by)), by)


def picked(columns: Any, features: int) -> nn.Linear:
    """Some of the values, in some order."""
    return dense(np.eye(features)[np.asarray(columns, dtype=np.int64)].reshape(-1, features), 0.0)


def clip(low: float, high: float, width: int) -> Iterator[nn.Module]:
    """min(max(v, low), high) from ReLUs, so that methods that write networks out can write it."""
    yield shift(np.full(width, -low))
    yield nn.ReLU()
    yield dense(-np.eye(width), high - low)
    yield nn.ReLU()
    yield dense(-np.eye(width), high)


class Shares(nn.Module):
    """Each value's share of its row's sum."""

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        total: Tensor = values.sum(dim=1, keepdim=True)
        return values / total


class Pointwise(nn.Module):
    """A function of each value."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self._function = function

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        return self._function(values)


class Steps(nn.Module):
    """A function of rows that jumps, and has no slope elsewhere: as numbers, without a bound."""

    def __init__(self, function: Callable[[FloatArray], FloatArray]) -> None:
        super().__init__()
        self._function = function

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        if isinstance(values, Traced):
            raise UnsupportedError("a function with jumps has no bound")
        made: Tensor = _Flat.apply(values, self._function)  # type: ignore[no-untyped-call]
        return made


class _Flat(torch.autograd.Function):
    """Steps have no slope."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, function: Callable[[FloatArray], FloatArray]) -> Tensor:
        ctx.save_for_backward(inputs)
        values = np.asarray(function(inputs.detach().cpu().double().numpy()))
        return torch.as_tensor(values, dtype=inputs.dtype, device=inputs.device)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (inputs,) = ctx.saved_tensors
        return torch.zeros_like(inputs), None


class Joined(nn.Module):
    """Branches that read some columns each; their values one beside the other."""

    def __init__(self, branches: Sequence[tuple[IntArray, nn.Module]]) -> None:
        super().__init__()
        self._branches = nn.ModuleList([branch for _, branch in branches])
        for place, (columns, _) in enumerate(branches):
            self.register_buffer(f"_columns{place}", torch.tensor(columns, dtype=torch.int64))

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        columns = [getattr(self, f"_columns{place}") for place in range(len(self._branches))]
        parts = [branch(values[:, at]) for branch, at in zip(self._branches, columns, strict=True)]
        return torch.cat(parts, dim=1)


Branch = tuple[Any, list[nn.Module]]
"""The columns that are read, and what is made of them."""


def joined(branches: Sequence[Branch], features: int) -> Iterator[nn.Module]:
    """Branches one beside the other: linear layers where all of them are, so that all can read them."""
    kept = [(np.asarray(columns, dtype=np.int64), modules) for columns, modules in branches]
    if all(isinstance(module, nn.Linear) for _, modules in kept for module in modules):
        yield from _linear_layers(kept, features)
    else:
        yield Joined([(columns, nn.Sequential(*modules)) for columns, modules in kept])


def _linear_layers(branches: Sequence[tuple[IntArray, list[Any]]], features: int) -> Iterator[nn.Module]:
    """As deep as the deepest branch, so that no digit is lost by multiplying out; others hand values on."""
    yield picked(np.concatenate([columns for columns, _ in branches]), features)
    widths = [columns.size for columns, _ in branches]
    for depth in range(max(len(modules) for _, modules in branches)):
        layers = [
            modules[depth] if depth < len(modules) else shift(np.zeros(width))
            for width, (_, modules) in zip(widths, branches, strict=True)
        ]
        weights = [layer.weight.detach() for layer in layers]
        bias = torch.cat([layer.bias.detach() for layer in layers])
        yield dense(torch.block_diag(*weights).numpy(), bias.numpy())  # type: ignore[no-untyped-call]
        widths = [layer.out_features for layer in layers]
