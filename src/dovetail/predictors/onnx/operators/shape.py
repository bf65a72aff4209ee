"""The same numbers on other axes, repeated along them, and the shape itself."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dovetail.core.errors import PredictorError
from dovetail.predictors.onnx.memory import listed, require_room
from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.operators.operator import MANY, Kernel, Operator, plain

SHAPES_ONLY = ("Shape", "Size")
"""Operators whose result depends on how many rows there are, never on what they hold."""


def _flatten(node: OnnxNode) -> Kernel:
    axis = node.integer("axis", 1)

    def run(x: Tensor) -> Tensor:
        split = axis + x.ndim if axis < 0 else axis
        return x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))

    return run


def _reshape(node: OnnxNode) -> Kernel:
    keeps_zeros = bool(node.integer("allowzero", 0))

    def run(x: Tensor, shape: Tensor) -> Tensor:
        sizes = listed(shape)
        if not keeps_zeros and 0 in sizes:
            sizes = [size or x.shape[k] for k, size in enumerate(sizes)]
        return x.reshape(sizes)

    return run


def _squeeze(node: OnnxNode) -> Kernel:
    older = node.list_before(13, "axes")

    def run(x: Tensor, axes: Tensor | None = None) -> Tensor:
        axes = axes if older is None else older
        return x.squeeze() if axes is None else x.squeeze(tuple(listed(axes)))

    return run


def _unsqueeze(node: OnnxNode) -> Kernel:
    older = node.list_before(13, "axes")
    if older is None:
        node.require_inputs(2)

    def run(x: Tensor, axes: Tensor | None = None) -> Tensor:
        axes = axes if older is None else older
        assert axes is not None
        places = listed(axes)
        for axis in sorted(place % (x.ndim + len(places)) for place in places):
            x = x.unsqueeze(axis)
        return x

    return run


def _transpose(node: OnnxNode) -> Kernel:
    order = node.integers("perm", ())
    return lambda x: x.permute(order or tuple(reversed(range(x.ndim))))


def _expand(x: Tensor, shape: Tensor) -> Tensor:
    wanted = listed(shape)
    extra = len(wanted) - x.ndim
    own = [1] * extra + list(x.shape)
    wanted = [1] * -extra + wanted
    sizes = [want if have == 1 else have for have, want in zip(own, wanted, strict=True)]
    require_room(sizes)
    if any(want not in (1, size) for want, size in zip(wanted, sizes, strict=True)):
        raise PredictorError(f"a tensor of shape {tuple(x.shape)} cannot be expanded to {tuple(wanted)}.")
    return x.expand(sizes)


def _tile(x: Tensor, repeats: Tensor) -> Tensor:
    counts = listed(repeats)
    require_room([size * count for size, count in zip(x.shape, counts, strict=True)])
    return x.repeat(counts)


def _shape(node: OnnxNode) -> Kernel:
    start, end = node.integer("start", 0), node.integer("end", MANY)
    return lambda x: torch.tensor(x.shape[start:end], dtype=torch.int64)


SHAPE: dict[str, Operator] = {
    "Flatten": Operator(_flatten, 1, 1),
    "Reshape": Operator(_reshape, 2, 2),
    "Squeeze": Operator(_squeeze, 1, 2),
    "Unsqueeze": Operator(_unsqueeze, 1, 2),
    "Transpose": Operator(_transpose, 1, 1),
    "Expand": plain(_expand, 2, 2),
    "Tile": plain(_tile, 2, 2),
    "Shape": Operator(_shape, 1, 1, differentiable=False),
    "Size": plain(lambda x: torch.tensor(x.numel()), 1, 1, differentiable=False),
}


def _constant(node: OnnxNode) -> Kernel:
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


def _constant_of_shape(node: OnnxNode) -> Kernel:
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
