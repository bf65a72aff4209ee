"""Reductions over axes, and the place of the largest or smallest value."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dovetail.predictors.onnx.memory import listed
from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.operators.operator import Kernel, Operator

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
