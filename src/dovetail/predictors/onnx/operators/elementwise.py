"""Arithmetic and functions of one number, element by element (activations have a file of their own)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
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

PIECEWISE_CONSTANT: dict[str, Callable[[Tensor], Tensor]] = {
    "Ceil": torch.ceil, "Floor": torch.floor, "Round": torch.round, "Sign": torch.sign,
}  # fmt: skip
"""One input, no attributes, and no gradient."""


Binary = Callable[[Tensor, Tensor], Tensor]

COMPARISONS: dict[str, Binary] = {
    "And": torch.logical_and, "Equal": torch.eq, "Greater": torch.gt, "GreaterOrEqual": torch.ge,
    "Less": torch.lt, "LessOrEqual": torch.le, "Or": torch.logical_or, "Xor": torch.logical_xor,
}  # fmt: skip


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    whole = not (a.is_floating_point() or b.is_floating_point())
    return torch.div(a, b, rounding_mode="trunc" if whole else None)


def _power(base: Tensor, exponent: Tensor) -> Tensor:
    return torch.pow(base, exponent).to(base.dtype)


def _modulo(node: OnnxNode) -> Kernel:
    return torch.fmod if node.integer("fmod", 0) else torch.remainder


def _folded(combine: Callable[[Tensor, Tensor], Tensor]) -> Callable[[OnnxNode], Kernel]:
    """An operator of any number of inputs, taken two by two."""
    return lambda node: lambda *values: reduce(combine, values)


def _mean(node: OnnxNode) -> Kernel:
    return lambda *values: reduce(torch.add, values) / len(values)


def _clip(node: OnnxNode) -> Kernel:
    if node.opset >= 11:
        return _clipped
    low, high = node.number_before(11, "min"), node.number_before(11, "max")
    return lambda x: _clipped(x, low, high)


def _clipped(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    return x if low is None and high is None else torch.clamp(x, low, high)


ELEMENTWISE: dict[str, Operator] = {
    **{name: plain(function, 1, 1) for name, function in SMOOTH.items()},
    **{name: plain(function, 1, 1, differentiable=False) for name, function in PIECEWISE_CONSTANT.items()},
    "Add": plain(torch.add, 2, 2),
    "Sub": plain(torch.sub, 2, 2),
    "Mul": plain(torch.mul, 2, 2),
    "Div": plain(_quotient, 2, 2),
    "Pow": plain(_power, 2, 2),
    "Mod": Operator(_modulo, 2, 2),
    "Min": Operator(_folded(torch.minimum), 1, MANY),
    "Max": Operator(_folded(torch.maximum), 1, MANY),
    "Sum": Operator(_folded(torch.add), 1, MANY),
    "Mean": Operator(_mean, 1, MANY),
    "Clip": Operator(_clip, 1, 3),
}


def _cast(node: OnnxNode) -> Kernel:
    declared = node.dtype("to")
    node.passed_over("saturate", "round_mode")  # they concern 8-bit floats

    def run(like: Tensor, x: Tensor) -> Tensor:
        dtype = node.dtype_in_use(declared, like)
        becomes_float = dtype.is_floating_point and not x.is_floating_point()
        return x.to(dtype=dtype, device=like.device) if becomes_float else x.to(dtype)

    return run


def _cast_like(x: Tensor, like: Tensor) -> Tensor:
    return x.to(like.dtype)


CAST: dict[str, Operator] = {
    "Cast": Operator(_cast, 1, 1, needs_like=True),
    "CastLike": plain(_cast_like, 2, 2),
}


def _compared(compare: Binary) -> Kernel:
    return lambda a, b: compare(a, b.to(a.device))


def _where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    device = a.device if a.device.type != "cpu" else b.device
    return torch.where(condition.to(device), a.to(device), b.to(device))


COMPARISON: dict[str, Operator] = {
    **{name: plain(_compared(f), 2, 2, differentiable=False) for name, f in COMPARISONS.items()},
    "IsNaN": plain(torch.isnan, 1, 1, differentiable=False),
    "Not": plain(torch.logical_not, 1, 1, differentiable=False),
    "Where": plain(_where, 3, 3),
}


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


Reduce = Callable[[Tensor, tuple[int, ...], bool], Tensor]
"""From a tensor, the axes that go and whether they stay with size one."""


def _reduction(function: Reduce) -> Callable[[OnnxNode], Kernel]:
    def make(node: OnnxNode) -> Kernel:
        keep = bool(node.integer("keepdims", 1))
        nothing_if_empty = bool(node.integer("noop_with_empty_axes", 0))
        fixed = node.integers("axes", ())

        def run(x: Tensor, axes: Tensor | None = None) -> Tensor:
            chosen = fixed if axes is None else tuple(listed(axes))
            if not chosen and nothing_if_empty:
                return x
            return function(x, chosen or tuple(range(x.ndim)), keep)

        return run

    return make


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


def _extreme_index(choose: Callable[..., Tensor]) -> Callable[[OnnxNode], Kernel]:
    def make(node: OnnxNode) -> Kernel:
        axis, keep = node.integer("axis", 0), bool(node.integer("keepdims", 1))
        last = bool(node.integer("select_last_index", 0))

        def run(x: Tensor) -> Tensor:
            if last:
                return x.shape[axis] - 1 - choose(x.flip(axis), dim=axis, keepdim=keep)
            return choose(x, dim=axis, keepdim=keep)

        return run

    return make


REDUCTION: dict[str, Operator] = {
    **{name: Operator(_reduction(function), 1, 2) for name, function in REDUCTIONS.items()},
    "ArgMax": Operator(_extreme_index(torch.argmax), 1, 1, differentiable=False),
    "ArgMin": Operator(_extreme_index(torch.argmin), 1, 1, differentiable=False),
}
