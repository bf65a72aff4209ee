"""The torch modules that estimators are written with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.linear import as_linear
from dovetail.predictors.plain_callable import ByNumpy
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


class RowShares(nn.Module):
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
        made: Tensor = ByNumpy.apply(values.double(), self._function, None).to(values.dtype)  # type: ignore[no-untyped-call]
        return made
