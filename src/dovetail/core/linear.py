"""A layer of torch's made without drawing random numbers."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import skip_init

from dovetail.core.arrays import FloatArray


def as_linear(weight: FloatArray, bias: FloatArray) -> nn.Linear:
    """A float64 `nn.Linear` with these numbers.

    Its constructor alone would fill it with random numbers first, from the one generator that the whole
    process shares: whoever seeded that for something else would draw others after a solve than without.
    """
    layer: nn.Linear = skip_init(nn.Linear, *weight.shape[::-1], dtype=torch.float64)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
        layer.bias.copy_(torch.tensor(bias))
    return layer
