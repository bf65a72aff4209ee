"""Operators that move, repeat or cut numbers, the shape itself, and constants."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dovetail.core.errors import PredictorError
from dovetail.predictors.onnx.memory import listed, require_room
from dovetail.predictors.onnx.node import MANY, Kernel, OnnxNode, Operator, plain

SHAPES_ONLY = ("Shape", "Size")
"""Operators whose result depends on the number of rows only, not on the data."""


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


def _concat(node: OnnxNode) -> Kernel:
    axis = node.integer("axis")
    return lambda *values: torch.cat(values, dim=axis)


def _split(node: OnnxNode) -> Kernel:
    axis, parts = node.integer("axis", 0), len(node.outputs)
    if node.integer("num_outputs", parts) != parts:
        raise PredictorError(f"{node} has {parts} outputs, not num_outputs; the file is damaged.")

    older = node.list_before(13, "split")

    def run(x: Tensor, sizes: Tensor | None = None) -> tuple[Tensor, ...]:
        sizes = sizes if older is None else older
        if sizes is not None:
            return torch.split(x, listed(sizes), dim=axis)
        return torch.split(x, -(-x.shape[axis] // parts), dim=axis)

    return run


def _slice(node: OnnxNode) -> Kernel:
    starts, ends = node.list_before(10, "starts"), node.list_before(10, "ends")
    if starts is None or ends is None:
        node.require_inputs(3)
        return _sliced
    axes = node.list_before(10, "axes")
    return lambda x: _sliced(x, starts, ends, axes)


def _sliced(
    x: Tensor, starts: Tensor, ends: Tensor, axes: Tensor | None = None, steps: Tensor | None = None
) -> Tensor:
    begins, stops = listed(starts), listed(ends)
    places = range(len(begins)) if axes is None else listed(axes)
    strides = [1] * len(begins) if steps is None else listed(steps)
    for begin, stop, axis, step in zip(begins, stops, places, strides, strict=True):
        chosen = range(*slice(begin, stop, step).indices(x.shape[axis]))
        if len(chosen) == x.shape[axis] and step == 1:
            continue
        low, high = (min(chosen), max(chosen) + 1) if chosen else (0, 0)
        part = x.narrow(axis, low, high - low)
        if abs(step) > 1 and chosen:
            part = part.index_select(axis, torch.arange(0, high - low, abs(step), device=x.device))
        x = part.flip(axis) if step < 0 else part
    return x


def _gather(node: OnnxNode) -> Kernel:
    axis = node.integer("axis", 0)

    def run(x: Tensor, indices: Tensor) -> Tensor:
        if indices.ndim == 0:
            return x.select(axis, int(indices))
        return x[(slice(None),) * (axis % x.ndim) + (indices.long(),)]

    return run


def _gather_elements(node: OnnxNode) -> Kernel:
    axis = node.integer("axis", 0)

    def run(x: Tensor, indices: Tensor) -> Tensor:
        chosen = indices.long().to(x.device)
        return x.gather(axis, torch.where(chosen < 0, chosen + x.shape[axis], chosen))

    return run


def _trilu(node: OnnxNode) -> Kernel:
    cut = torch.triu if node.integer("upper", 1) else torch.tril
    return lambda x, k=None: cut(x, 0 if k is None else int(k))


SLICING: dict[str, Operator] = {
    "Concat": Operator(_concat, 1, MANY),
    "Split": Operator(_split, 1, 2, outputs=MANY),
    "Slice": Operator(_slice, 1, 5),
    "Gather": Operator(_gather, 2, 2),
    "GatherElements": Operator(_gather_elements, 2, 2),
    "Trilu": Operator(_trilu, 1, 2),
}
