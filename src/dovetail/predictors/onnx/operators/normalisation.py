"""Normalisation, and dropout: what does otherwise in training than in use, where it is refused."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.operators.operator import Kernel, Operator


def _normalised(x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    centred = x - x.mean(dim=tuple(axes), keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(dim=tuple(axes), keepdim=True) + epsilon)


def _along_channels(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape(-1, *(1,) * (x.ndim - 2))


def _batch_normalisation(node: OnnxNode) -> Kernel:
    epsilon = node.number("epsilon", 1e-5)
    node.passed_over("momentum")
    if node.opset < 9 and not node.integer("spatial", 1):
        raise node.refused("spatial=0")
    if node.integer("training_mode", 0):
        raise node.refused("training mode (export the network after .eval())")

    def run(x: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        factor = scale * torch.rsqrt(variance + epsilon)
        return (x - _along_channels(mean, x)) * _along_channels(factor, x) + _along_channels(shift, x)

    return run


def _layer_normalisation(node: OnnxNode) -> Kernel:
    axis, epsilon = node.integer("axis", -1), node.number("epsilon", 1e-5)
    node.passed_over("stash_type")

    def run(x: Tensor, scale: Tensor, shift: Tensor | None = None) -> Tensor:
        y = _normalised(x, range(axis % x.ndim, x.ndim), epsilon) * scale
        return y if shift is None else y + shift

    return run


def _rms_normalisation(node: OnnxNode) -> Kernel:
    axis, epsilon = node.integer("axis", -1), node.number("epsilon", 1e-5)
    node.passed_over("stash_type")

    def run(x: Tensor, scale: Tensor) -> Tensor:
        axes = tuple(range(axis % x.ndim, x.ndim))
        return x * torch.rsqrt(x.square().mean(dim=axes, keepdim=True) + epsilon) * scale

    return run


def _instance_normalisation(node: OnnxNode) -> Kernel:
    epsilon = node.number("epsilon", 1e-5)

    def run(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        y = _normalised(x, range(2, x.ndim), epsilon)
        return y * _along_channels(scale, x) + _along_channels(shift, x)

    return run


def _group_normalisation(node: OnnxNode) -> Kernel:
    groups, epsilon = node.integer("num_groups"), node.number("epsilon", 1e-5)
    per_group = node.opset < 21  # scale and shift were one number per group then
    node.passed_over("stash_type")

    def run(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        y = torch.unflatten(x, 1, (groups, -1))
        y = _normalised(y, range(2, y.ndim), epsilon)
        if per_group:
            return (y * _along_channels(scale, y) + _along_channels(shift, y)).flatten(1, 2)
        return y.flatten(1, 2) * _along_channels(scale, x) + _along_channels(shift, x)

    return run


def _dropout(node: OnnxNode) -> Kernel:
    node.passed_over("seed", *(("ratio",) if node.opset < 12 else ()))

    def run(x: Tensor, _ratio: Tensor | None = None, training: Tensor | None = None) -> Tensor:
        if training is not None and bool(training):
            raise node.refused("training mode (export the network after .eval())")
        return x

    return run


NORMALISATION: dict[str, Operator] = {
    "BatchNormalization": Operator(_batch_normalisation, 5, 5),
    "LayerNormalization": Operator(_layer_normalisation, 2, 3),
    "RMSNormalization": Operator(_rms_normalisation, 2, 2),
    "InstanceNormalization": Operator(_instance_normalisation, 3, 3),
    "GroupNormalization": Operator(_group_normalisation, 3, 3),
    "Dropout": Operator(_dropout, 1, 3),
}
