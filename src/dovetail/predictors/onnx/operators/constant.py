"""Constants: given in the file, or made from a shape or a range."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dovetail.predictors.onnx.limits import listed, require_room
from dovetail.predictors.onnx.node import Node
from dovetail.predictors.onnx.operators.operator import Kernel, Operator, plain


def _constant(node: Node) -> Kernel:
    if node.has("value"):
        value = node.tensor("value")
    elif node.has("value_float"):
        value = torch.tensor(node.number("value_float"), dtype=torch.float32)
    elif node.has("value_floats"):
        value = torch.tensor(node.numbers("value_floats"), dtype=torch.float32)
    elif node.has("value_int"):
        value = torch.tensor(node.integer("value_int"), dtype=torch.int64)
    elif node.has("value_ints"):
        value = torch.tensor(node.integers("value_ints"), dtype=torch.int64)
    else:
        raise node.refused(f"a constant given as {', '.join(node.attributes) or 'nothing'}")
    return lambda: value


def _constant_of_shape(node: Node) -> Kernel:
    value = node.tensor("value", torch.zeros(1))
    number = value.flatten()[0].item()

    def run(like: Tensor, shape: Tensor) -> Tensor:
        sizes = listed(shape)
        require_room(sizes)
        place = like.device if value.is_floating_point() else None
        return torch.full(sizes, number, dtype=node.dtype_in_use(value.dtype, like), device=place)

    return run


def _range(like: Tensor, start: Tensor, limit: Tensor, step: Tensor) -> Tensor:
    first, last, by = start.item(), limit.item(), step.item()
    require_room([max(math.ceil((last - first) / by), 0)])
    place = like.device if start.is_floating_point() else None
    return torch.arange(first, last, by, dtype=start.dtype, device=place)


CONSTANT: dict[str, Operator] = {
    "Constant": Operator(_constant, 0, 0, differentiable=False),
    "ConstantOfShape": Operator(_constant_of_shape, 1, 1, differentiable=False, needs_like=True),
    "Range": plain(_range, 3, 3, differentiable=False, needs_like=True),
}
