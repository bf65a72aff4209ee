"""A layer of torch's made without drawing random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dovetail.core.arrays import FloatArray

if TYPE_CHECKING:
    from torch import nn


def as_linear(weight: FloatArray, bias: FloatArray) -> nn.Linear:
    """A float64 `nn.Linear` with these numbers.

    Its constructor fills it with random numbers first, from the one generator that the whole process
    shares: whoever seeded that for something else would draw other numbers after a solve than without.
    """
    import torch
    from torch import nn

    class Empty(nn.Linear):
        def reset_parameters(self) -> None:
            pass

    out, into = weight.shape
    layer = Empty(into, out, dtype=torch.float64)
    layer.__class__ = nn.Linear  # type: ignore[assignment]
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(np.array(weight)))
        layer.bias.copy_(torch.tensor(np.array(bias)))
    return layer
