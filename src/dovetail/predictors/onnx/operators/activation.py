"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.operators.operator import Kernel, Operator, plain


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)): torch goes over to x itself at 20, where float64 still sees the difference."""
    return F.softplus(x, threshold=40.0)


WITHOUT_ATTRIBUTES: dict[str, Callable[[Tensor], Tensor]] = {
    "HardSwish": F.hardswish, "Mish": F.mish, "Relu": torch.relu, "Sigmoid": torch.sigmoid,
    "Softplus": softplus, "Softsign": F.softsign, "Tanh": torch.tanh,
}  # fmt: skip


def _leaky_relu(node: OnnxNode) -> Kernel:
    slope = node.number("alpha", 0.01)
    return lambda x: F.leaky_relu(x, slope)


def _prelu(x: Tensor, slope: Tensor) -> Tensor:
    return torch.where(x < 0, slope * x, x)


def _thresholded_relu(node: OnnxNode) -> Kernel:
    threshold = node.number("alpha", 1.0)
    return lambda x: F.threshold(x, threshold, 0.0)


def _elu(node: OnnxNode) -> Kernel:
    alpha = node.number("alpha", 1.0)
    return lambda x: F.elu(x, alpha)


def _selu(node: OnnxNode) -> Kernel:
    alpha = node.number("alpha", 1.67326319217681884765625)
    gamma = node.number("gamma", 1.05070102214813232421875)
    return lambda x: gamma * F.elu(x, alpha)


def _celu(node: OnnxNode) -> Kernel:
    alpha = node.number("alpha", 1.0)
    return lambda x: F.celu(x, alpha)


def _gelu(node: OnnxNode) -> Kernel:
    approximate = node.text("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.refused(f"approximate={approximate!r}")
    return lambda x: F.gelu(x, approximate=approximate)


def _swish(node: OnnxNode) -> Kernel:
    alpha = node.number("alpha", 1.0)
    return F.silu if alpha == 1.0 else lambda x: x * torch.sigmoid(alpha * x)


def _hard_sigmoid(node: OnnxNode) -> Kernel:
    alpha, beta = node.number("alpha", 0.2), node.number("beta", 0.5)
    return lambda x: torch.clamp(alpha * x + beta, 0.0, 1.0)


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
    "LeakyRelu": Operator(_leaky_relu, 1, 1),
    "PRelu": plain(_prelu, 2, 2),
    "ThresholdedRelu": Operator(_thresholded_relu, 1, 1),
    "Elu": Operator(_elu, 1, 1),
    "Selu": Operator(_selu, 1, 1),
    "Celu": Operator(_celu, 1, 1),
    "Gelu": Operator(_gelu, 1, 1),
    "Swish": Operator(_swish, 1, 1),
    "HardSigmoid": Operator(_hard_sigmoid, 1, 1),
    "Softmax": Operator(_over_axis(torch.softmax), 1, 1),
    "LogSoftmax": Operator(_over_axis(torch.log_softmax), 1, 1),
}
