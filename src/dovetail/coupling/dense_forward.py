"""Dense networks of ReLUs for network steps on a GPU: forward and backward by hand, in float64.

A step asks a few hundred rows, so that a deep network takes as long as its kernels take to start; by hand
they are fewer, and nobody writes down how they hang together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dovetail.core.block import Block
from dovetail.core.layers import Activation, Dense
from dovetail.run.guard import counter

if TYPE_CHECKING:
    from dovetail.core.predictor import Forward

Layers = list[tuple[Tensor, Tensor, bool]]
"""Weight, bias, and whether a ReLU follows."""


def network_forward(block: Block, device: str) -> Forward:
    """A block's network as gradients see it: by hand where that is faster, else its owner's float64 copy."""
    by_hand = dense_forward(block, device) if torch.device(device).type == "cuda" else None
    return block.predictor.snapshot(device) if by_hand is None else by_hand


def dense_forward(block: Block, device: str) -> Forward | None:
    """None for any network but dense layers with ReLUs between them."""
    layers: Layers = []
    for layer in block.description.layers_if_known() or ():
        if isinstance(layer, Dense):
            layers.append((_tensor(layer.weight, device), _tensor(layer.bias, device), False))
        elif isinstance(layer, Activation) and layer.kind == "relu" and layers and not layers[-1][2]:
            layers[-1] = (*layers[-1][:2], True)
        else:
            return None
    if not layers:
        return None
    count = counter(block.predictor)

    def forward(u: Tensor) -> Tensor:
        count(len(u))
        values: Tensor = _Network.apply(u, layers)  # type: ignore[no-untyped-call]
        return values

    return forward


def _tensor(array: object, device: str) -> Tensor:
    return torch.as_tensor(array, dtype=torch.float64, device=device)


class _Network(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, layers: Layers) -> Tensor:
        masks, x = [], u
        for weight, bias, rectified in layers:
            x = torch.addmm(bias, x, weight.T)
            if rectified:
                x = x.clamp_(min=0.0)
                masks.append(x > 0.0)
        ctx.masks, ctx.layers = masks, layers
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        gradient, masks = gradients[0], list(ctx.masks)
        for weight, _, rectified in reversed(ctx.layers):
            if rectified:
                gradient = gradient * masks.pop()
            gradient = gradient @ weight
        return gradient, None
