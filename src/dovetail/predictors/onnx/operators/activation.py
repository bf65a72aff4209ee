"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.operators.operator import Kernel, Operator, plain, with_numbers


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)): torch goes over to x itself at 20, where float64 still sees the difference."""
    return F.softplus(x, threshold=40.0)


WITHOUT_ATTRIBUTES: dict[str, Callable[[Tensor], Tensor]] = {
    "HardSwish": F.hardswish, "Mish": F.mish, "Relu": torch.relu, "Sigmoid": torch.sigmoid,
    "Softplus": softplus, "Softsign": F.softsign, "Tanh": torch.tanh,
}  # fmt: skip


def _prelu(x: Tensor, slope: Tensor) -> Tensor:
    return torch.where(x < 0, slope * x, x)


def _gelu(node: OnnxNode) -> Kernel:
    approximate = node.text("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.refused(f"approximate={approximate!r}")
    return lambda x: F.gelu(x, approximate=approximate)


def _swish(x: Tensor, alpha: float) -> Tensor:
    return F.silu(x) if alpha == 1.0 else x * torch.sigmoid(alpha * x)


def _over_axis(function: Callable[..., Tensor]) -> Callable[[OnnxNode], Kernel]:
    """Along one axis; before opset 13 along all from that axis on, laid out flat."""

    def make(node: OnnxNode) -> Kernel:
        if node.opset >= 13:
            axis = node.integer("axis", -1)
            return lambda x: function(x, dim=axis)
        first = node.integer("axis", 1)

        def flat(x: Tensor) -> Tensor:
            if x.ndim == 2 and first in (1, -1):
                return function(x, dim=1)
            laid_out = x.reshape(*x.shape[: first % x.ndim], -1)
            return function(laid_out, dim=-1).reshape(x.shape)

        return flat

    return make


ACTIVATION: dict[str, Operator] = {
    **{name: plain(function, 1, 1) for name, function in WITHOUT_ATTRIBUTES.items()},
    "LeakyRelu": with_numbers(lambda x, alpha: F.leaky_relu(x, alpha), alpha=0.01),
    "PRelu": plain(_prelu, 2, 2),
    "ThresholdedRelu": with_numbers(lambda x, alpha: F.threshold(x, alpha, 0.0), alpha=1.0),
    "Elu": with_numbers(F.elu, alpha=1.0),
    "Selu": with_numbers(
        lambda x, alpha, gamma: gamma * F.elu(x, alpha),
        alpha=1.67326319217681884765625,
        gamma=1.05070102214813232421875,
    ),
    "Celu": with_numbers(F.celu, alpha=1.0),
    "Gelu": Operator(_gelu, 1, 1),
    "Swish": with_numbers(_swish, alpha=1.0),
    "HardSigmoid": with_numbers(
        lambda x, alpha, beta: torch.clamp(alpha * x + beta, 0.0, 1.0), alpha=0.2, beta=0.5
    ),
    "Softmax": Operator(_over_axis(torch.softmax), 1, 1),
    "LogSoftmax": Operator(_over_axis(torch.log_softmax), 1, 1),
}
