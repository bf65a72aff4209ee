"""Arithmetic and functions of one number, element by element (activations have a file of their own)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.operators.operator import MANY, Kernel, Operator, plain

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
