"""Pooling: the largest or the mean value of a window, or of a whole image.

And Upsample: images made larger, until opset 9; by whole factors, each number repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from dovetail.core.errors import PredictorError
from dovetail.predictors.onnx.memory import require_room
from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.operators.operator import Kernel, Operator, plain
from dovetail.predictors.onnx.operators.windows import Windows, padded

MAXIMA = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGES: dict[int, Callable[..., Tensor]] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def _max_pool(node: OnnxNode) -> Kernel:
    windows, kernel = Windows.of(node, pooling=True), node.integers("kernel_shape")
    strides, dilations = windows.steps(len(kernel))
    node.passed_over("storage_order")  # it concerns the indices, which are not given
    pool = MAXIMA[len(kernel)]

    def run(x: Tensor) -> Tensor:
        sizes = x.shape[2:]
        pads = windows.padding(sizes, kernel)
        x = padded(x, pads[0], windows.overhang(sizes, kernel, pads), -math.inf)
        return pool(x, kernel, strides, 0, dilations)

    return run


def _average_pool(node: OnnxNode) -> Kernel:
    windows, kernel = Windows.of(node, pooling=True), node.integers("kernel_shape")
    strides, dilations = windows.steps(len(kernel))
    if any(dilation != 1 for dilation in dilations):
        raise node.refused("a dilation")
    counts_padding = bool(node.integer("count_include_pad", 0))
    pool = AVERAGES[len(kernel)]

    def run(x: Tensor) -> Tensor:
        sizes = x.shape[2:]
        before, last = pads = windows.padding(sizes, kernel)
        after = windows.overhang(sizes, kernel, pads)
        y = pool(padded(x, before, after), kernel, strides)
        if not any(before) and not any(amount > 0 for amount in after):
            return y
        counted = torch.ones((1, 1, *sizes), dtype=x.dtype, device=x.device)
        if counts_padding:  # but never what only rounding up has added
            counted = padded(counted, before, last, 1.0)
            before, after = [0] * len(kernel), [a - b for a, b in zip(after, last, strict=True)]
        return y / pool(padded(counted, before, after), kernel, strides)

    return run


def _global_average(x: Tensor) -> Tensor:
    return x.mean(dim=tuple(range(2, x.ndim)), keepdim=True)


def _global_maximum(x: Tensor) -> Tensor:
    return x.amax(dim=tuple(range(2, x.ndim)), keepdim=True)


POOLING: dict[str, Operator] = {
    "MaxPool": Operator(_max_pool, 1, 1),
    "AveragePool": Operator(_average_pool, 1, 1),
    "GlobalAveragePool": plain(_global_average, 1, 1),
    "GlobalMaxPool": plain(_global_maximum, 1, 1),
}


def _upsample(node: OnnxNode) -> Kernel:
    if node.opset > 9:
        raise node.refused(f"Upsample in opset {node.opset}, which has none,")
    mode = node.text("mode", "nearest")
    if mode != "nearest":
        raise node.refused(f"mode={mode!r}")
    if node.opset >= 9:
        node.require_inputs(2)
        return lambda x, scales: _repeated(node, x, [float(one) for one in scales])
    factors = node.numbers("scales")
    return lambda x: _repeated(node, x, list(factors))


def _repeated(node: OnnxNode, x: Tensor, scales: list[float]) -> Tensor:
    if len(scales) != x.ndim:
        raise PredictorError(f"{node} has {len(scales)} scales for {x.ndim} axes; the file is damaged.")
    if any(scale < 1.0 or scale != int(scale) for scale in scales):
        raise node.refused(f"scales {scales}, which are not all whole,")
    require_room([size * int(scale) for size, scale in zip(x.shape, scales, strict=True)])
    for axis, scale in enumerate(scales):
        if scale > 1.0:
            x = x.repeat_interleave(int(scale), dim=axis)
    return x


UPSAMPLING: dict[str, Operator] = {"Upsample": Operator(_upsample, 1, 2)}
