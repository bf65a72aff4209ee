"""Operators on single numbers: arithmetic, comparisons, activations; and reductions over axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dovetail.predictors.onnx.memory import listed
from dovetail.predictors.onnx.node import MANY, Kernel, OnnxNode, Operator, plain, with_numbers

SMOOTH: dict[str, Callable[[Tensor], Tensor]] = {
    "Abs": torch.abs, "Acos": torch.acos, "Acosh": torch.acosh, "Asin": torch.asin, "Asinh": torch.asinh,
    "Atan": torch.atan, "Atanh": torch.atanh, "Cos": torch.cos, "Cosh": torch.cosh, "Erf": torch.erf,
    "Exp": torch.exp, "Identity": lambda x: x, "Log": torch.log, "Neg": torch.neg,
    "Reciprocal": torch.reciprocal, "Sin": torch.sin, "Sinh": torch.sinh, "Sqrt": torch.sqrt,
    "Tan": torch.tan,
}  # fmt: skip
"""One input, no attributes, and a gradient almost everywhere."""
STEPPED: dict[str, Callable[[Tensor], Tensor]] = {
    "Ceil": torch.ceil, "Floor": torch.floor, "Round": torch.round, "Sign": torch.sign,
    "IsNaN": torch.isnan, "Not": torch.logical_not,
}  # fmt: skip
"""One input, no attributes, and no gradient."""


Binary = Callable[[Tensor, Tensor], Tensor]

COMPARISONS: dict[str, Binary] = {
    "And": torch.logical_and, "Equal": torch.eq, "Greater": torch.gt, "GreaterOrEqual": torch.ge,
    "Less": torch.lt, "LessOrEqual": torch.le, "Or": torch.logical_or, "Xor": torch.logical_xor,
}  # fmt: skip


def _clip(node: OnnxNode) -> Kernel:
    def clipped(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
        return x if low is None and high is None else torch.clamp(x, low, high)

    if node.opset >= 11:
        return clipped
    limits = node.number_before(11, "min"), node.number_before(11, "max")
    return lambda x: clipped(x, *limits)


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    whole = not (a.is_floating_point() or b.is_floating_point())
    return torch.div(a, b, rounding_mode="trunc" if whole else None)


ELEMENTWISE: dict[str, Operator] = {
    **{name: plain(function, 1, 1) for name, function in SMOOTH.items()},
    **{name: plain(function, 1, 1, differentiable=False) for name, function in STEPPED.items()},
    "Add": plain(torch.add, 2, 2),
    "Sub": plain(torch.sub, 2, 2),
    "Mul": plain(torch.mul, 2, 2),
    "Div": plain(_quotient, 2, 2),
    "Pow": plain(lambda base, exponent: torch.pow(base, exponent).to(base.dtype), 2, 2),
    "Mod": Operator(lambda node: torch.fmod if node.integer("fmod", 0) else torch.remainder, 2, 2),
    "Min": plain(lambda *values: reduce(torch.minimum, values), 1, MANY),
    "Max": plain(lambda *values: reduce(torch.maximum, values), 1, MANY),
    "Sum": plain(lambda *values: reduce(torch.add, values), 1, MANY),
    "Mean": plain(lambda *values: reduce(torch.add, values) / len(values), 1, MANY),
    "Clip": Operator(_clip, 1, 3),
}


def _cast(node: OnnxNode) -> Kernel:
    declared = node.dtype("to")
    node.passed_over("saturate", "round_mode")  # these attributes concern 8-bit floats

    def run(like: Tensor, x: Tensor) -> Tensor:
        dtype = node.dtype_in_use(declared, like)
        becomes_float = dtype.is_floating_point and not x.is_floating_point()
        return x.to(dtype=dtype, device=like.device) if becomes_float else x.to(dtype)

    return run


CAST: dict[str, Operator] = {
    "Cast": Operator(_cast, 1, 1, needs_like=True),
    "CastLike": plain(lambda x, like: x.to(like.dtype), 2, 2),
}


def _compared(compare: Binary) -> Operator:
    return plain(lambda a, b: compare(a, b.to(a.device)), 2, 2, differentiable=False)


def _where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    device = a.device if a.device.type != "cpu" else b.device
    return torch.where(condition.to(device), a.to(device), b.to(device))


COMPARISON: dict[str, Operator] = {
    **{name: _compared(compare) for name, compare in COMPARISONS.items()},
    "Where": plain(_where, 3, 3),
}


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)): torch switches to x at 20, where float64 still shows the difference."""
    return F.softplus(x, threshold=40.0)


WITHOUT_ATTRIBUTES: dict[str, Callable[[Tensor], Tensor]] = {
    "HardSwish": F.hardswish, "Mish": F.mish, "Relu": torch.relu, "Sigmoid": torch.sigmoid,
    "Softplus": softplus, "Softsign": F.softsign, "Tanh": torch.tanh,
}  # fmt: skip


def _gelu(node: OnnxNode) -> Kernel:
    approximate = node.text("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.refused(f"approximate={approximate!r}")
    return lambda x: F.gelu(x, approximate=approximate)


def _over_axis(function: Callable[..., Tensor], node: OnnxNode) -> Kernel:
    """Along one axis; before opset 13 along all axes from the given one on, flattened."""
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


ACTIVATION: dict[str, Operator] = {
    **{name: plain(function, 1, 1) for name, function in WITHOUT_ATTRIBUTES.items()},
    "LeakyRelu": with_numbers(lambda x, alpha: F.leaky_relu(x, alpha), alpha=0.01),
    "PRelu": plain(lambda x, slope: torch.where(x < 0, slope * x, x), 2, 2),
    "ThresholdedRelu": with_numbers(lambda x, alpha: F.threshold(x, alpha, 0.0), alpha=1.0),
    "Elu": with_numbers(F.elu, alpha=1.0),
    "Selu": with_numbers(
        lambda x, alpha, gamma: gamma * F.elu(x, alpha),
        alpha=1.67326319217681884765625,
        gamma=1.05070102214813232421875,
    ),
    "Celu": with_numbers(F.celu, alpha=1.0),
    "Gelu": Operator(_gelu, 1, 1),
    "Swish": with_numbers(
        lambda x, alpha: F.silu(x) if alpha == 1.0 else x * torch.sigmoid(alpha * x), alpha=1.0
    ),
    "HardSigmoid": with_numbers(
        lambda x, alpha, beta: torch.clamp(alpha * x + beta, 0.0, 1.0), alpha=0.2, beta=0.5
    ),
    "Softmax": Operator(partial(_over_axis, torch.softmax), 1, 1),
    "LogSoftmax": Operator(partial(_over_axis, torch.log_softmax), 1, 1),
}


Reduce = Callable[[Tensor, tuple[int, ...], bool], Tensor]
"""The function of a tensor, the axes to reduce, and whether they stay with size one."""


def _reduction(function: Reduce, node: OnnxNode) -> Kernel:
    keep = bool(node.integer("keepdims", 1))
    nothing_if_empty = bool(node.integer("noop_with_empty_axes", 0))
    fixed = node.integers("axes", ())

    def run(x: Tensor, axes: Tensor | None = None) -> Tensor:
        chosen = fixed if axes is None else tuple(listed(axes))
        if not chosen and nothing_if_empty:
            return x
        return function(x, chosen or tuple(range(x.ndim)), keep)

    return run


def _product(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    for axis in sorted((axis % x.ndim for axis in axes), reverse=True):
        x = x.prod(dim=axis, keepdim=keep)
    return x


REDUCTIONS: dict[str, Reduce] = {
    "ReduceL1": lambda x, axes, keep: x.abs().sum(axes, keep),
    "ReduceL2": lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep),
    "ReduceLogSum": lambda x, axes, keep: x.sum(axes, keep).log(),
    "ReduceLogSumExp": lambda x, axes, keep: torch.logsumexp(x, axes, keep),
    "ReduceMax": lambda x, axes, keep: x.amax(axes, keep),
    "ReduceMean": lambda x, axes, keep: x.mean(axes, keep),
    "ReduceMin": lambda x, axes, keep: x.amin(axes, keep),
    "ReduceProd": _product,
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keep, dtype=x.dtype),
    "ReduceSumSquare": lambda x, axes, keep: x.square().sum(axes, keep, dtype=x.dtype),
}


def _extreme_index(choose: Callable[..., Tensor], node: OnnxNode) -> Kernel:
    axis, keep = node.integer("axis", 0), bool(node.integer("keepdims", 1))
    if not node.integer("select_last_index", 0):
        return lambda x: choose(x, dim=axis, keepdim=keep)
    return lambda x: x.shape[axis] - 1 - choose(x.flip(axis), dim=axis, keepdim=keep)


REDUCTION: dict[str, Operator] = {
    **{name: Operator(partial(_reduction, function), 1, 2) for name, function in REDUCTIONS.items()},
    "ArgMax": Operator(partial(_extreme_index, torch.argmax), 1, 1, differentiable=False),
    "ArgMin": Operator(partial(_extreme_index, torch.argmin), 1, 1, differentiable=False),
}
