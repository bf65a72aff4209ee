"""A torch layer made without drawing random numbers."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import skip_init

from dovetail.core.arrays import FloatArray


def as_linear(weight: FloatArray, bias: FloatArray) -> nn.Linear:
    """A float64 `nn.Linear` with these numbers. The constructor of `nn.Linear` would draw its weights from
    the random generator of the process, so that a user's later random numbers would depend on the solve."""
    layer: nn.Linear = skip_init(nn.Linear, *weight.shape[::-1], dtype=torch.float64)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
        layer.bias.copy_(torch.tensor(bias))
    return layer
