"""Comparisons, logic, and the choice between two values."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dovetail.predictors.onnx.operators.operator import Kernel, Operator, plain

Binary = Callable[[Tensor, Tensor], Tensor]

COMPARISONS: dict[str, Binary] = {
    "And": torch.logical_and, "Equal": torch.eq, "Greater": torch.gt, "GreaterOrEqual": torch.ge,
    "Less": torch.lt, "LessOrEqual": torch.le, "Or": torch.logical_or, "Xor": torch.logical_xor,
}  # fmt: skip


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
