"""Upsample: images made larger, until opset 9; by whole factors, each number repeated."""

from __future__ import annotations

from torch import Tensor

from dovetail.core.errors import PredictorError
from dovetail.predictors.onnx.limits import require_room
from dovetail.predictors.onnx.node import Node
from dovetail.predictors.onnx.operators.operator import Kernel, Operator


def _upsample(node: Node) -> Kernel:
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


def _repeated(node: Node, x: Tensor, scales: list[float]) -> Tensor:
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
