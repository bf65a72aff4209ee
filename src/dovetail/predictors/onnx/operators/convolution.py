"""Convolutions, plain (Conv) and transposed (ConvTranspose), over one to three axes.

And Pad: axes made longer, by a constant or by what is there.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from dovetail.predictors.onnx.memory import listed, require_room
from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.operators.operator import Kernel, Operator
from dovetail.predictors.onnx.operators.windows import Windows, padded

CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def _convolution(node: OnnxNode) -> Kernel:
    windows, group = Windows.of(node), node.integer("group", 1)
    node.passed_over("kernel_shape")  # the weights show it

    def run(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        axes = weight.ndim - 2
        before, after = windows.padding(x.shape[2:], weight.shape[2:])
        strides, dilations = windows.steps(axes)
        if before == after:
            return CONVOLUTIONS[axes](x, weight, bias, strides, before, dilations, group)
        return CONVOLUTIONS[axes](padded(x, before, after), weight, bias, strides, 0, dilations, group)

    return run


def _transposed_convolution(node: OnnxNode) -> Kernel:
    windows, group = Windows.of(node), node.integer("group", 1)
    extra, wanted = node.integers("output_padding", ()), node.integers("output_shape", ())
    node.passed_over("kernel_shape")

    def cut(sizes: Sequence[int], full: Sequence[int]) -> tuple[list[int], list[int]]:
        """What is taken off either end of the full result."""
        target = wanted[-len(sizes) :]
        if windows.auto_pad.startswith("SAME") and not target:
            strides, _ = windows.steps(len(sizes))
            target = tuple(size * stride for size, stride in zip(sizes, strides, strict=True))
        if not target:
            pads = list(windows.pads) or [0] * (2 * len(sizes))
            return pads[: len(sizes)], pads[len(sizes) :]
        whole = [max(have - want, 0) for have, want in zip(full, target, strict=True)]
        smaller = [total // 2 for total in whole]
        larger = [total - total // 2 for total in whole]
        return (smaller, larger) if windows.auto_pad == "SAME_UPPER" else (larger, smaller)

    def run(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        axes = weight.ndim - 2
        strides, dilations = windows.steps(axes)
        y = TRANSPOSED[axes](x, weight, None, strides, 0, 0, group, dilations)
        more = extra or (0,) * axes
        full = [size + add for size, add in zip(y.shape[2:], more, strict=True)]
        before, after = cut(x.shape[2:], full)
        y = padded(
            y, [-amount for amount in before], [add - off for add, off in zip(more, after, strict=True)]
        )
        return y if bias is None else y + bias.reshape(-1, *(1,) * axes)

    return run


CONVOLUTION: dict[str, Operator] = {
    "Conv": Operator(_convolution, 2, 3),
    "ConvTranspose": Operator(_transposed_convolution, 2, 3),
}


def _pad(node: OnnxNode) -> Kernel:
    mode = node.text("mode", "constant")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise node.refused(f"mode={mode!r}")
    older, filler = node.list_before(11, "pads"), node.number_before(11, "value")
    if older is None:
        node.require_inputs(2)

    def run(
        x: Tensor, pads: Tensor | None = None, value: Tensor | None = None, axes: Tensor | None = None
    ) -> Tensor:
        pads, value = pads if older is None else older, value if filler is None else torch.tensor(filler)
        assert pads is not None
        amounts = listed(pads)
        places = range(x.ndim) if axes is None else listed(axes)
        half = len(amounts) // 2
        for axis, before, after in zip(places, amounts[:half], amounts[half:], strict=True):
            if before or after:
                x = _padded_axis(x, axis % x.ndim, before, after, mode, value)
        return x

    return run


def _padded_axis(x: Tensor, axis: int, before: int, after: int, mode: str, value: Tensor | None) -> Tensor:
    size = x.shape[axis]
    require_room([*x.shape[:axis], size + before + after, *x.shape[axis + 1 :]])
    if mode == "constant":
        amounts = [0, 0] * (x.ndim - axis - 1) + [before, after]
        return F.pad(x, amounts, value=0.0 if value is None else value.item())
    places = torch.arange(-before, size + after, device=x.device)
    if mode == "edge":
        places = places.clamp(0, size - 1)
    elif mode == "wrap":
        places = places % size
    elif size == 1:
        places = torch.zeros_like(places)
    else:  # reflect: ... 2 1 | 0 1 2 ... n-1 | n-2 n-3 ...
        places = (places % (2 * size - 2)) - (size - 1)
        places = size - 1 - places.abs()
    return x.index_select(axis, places)


PADDING: dict[str, Operator] = {"Pad": Operator(_pad, 1, 4)}
