"""Parts of tensors: cut off, picked by index, taken apart and joined."""

from __future__ import annotations

import torch
from torch import Tensor

from dovetail.core.errors import PredictorError
from dovetail.predictors.onnx.memory import listed
from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.operators.operator import MANY, Kernel, Operator


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
