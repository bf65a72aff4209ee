"""What an operator has to say about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from dovetail.predictors.onnx.node import OnnxNode

Kernel = Callable[..., Any]
"""What a node does: one tensor (or None) per input, to one tensor, or a tuple of them."""

MANY = 1 << 31
"""As many inputs or outputs as the file likes; more than any list in a file can have."""


@dataclass(frozen=True)
class Operator:
    """How to turn a node into a function of tensors, and what the graph must know of it."""

    build: Callable[[OnnxNode], Kernel]
    fewest: int
    most: int
    outputs: int = 1
    differentiable: bool = True
    """False where the result is piecewise constant in the inputs: no gradient passes."""
    needs_like: bool = False
    """True for a kernel whose first argument is a tensor of the dtype and on the device in use."""


def plain(
    kernel: Kernel, fewest: int, most: int, *, differentiable: bool = True, needs_like: bool = False
) -> Operator:
    """An operator without attributes."""
    return Operator(lambda node: kernel, fewest, most, differentiable=differentiable, needs_like=needs_like)


def with_numbers(kernel: Kernel, **defaults: float) -> Operator:
    """An operator of one input whose attributes are floats, by their names."""
    return Operator(
        lambda node: partial(kernel, **{name: node.number(name, one) for name, one in defaults.items()}), 1, 1
    )
