"""Windows over the axes of an image: convolutions, pooling, Pad and Upsample. ONNX pads both ends of an axis
separately, torch by one amount; therefore inputs are padded (or cut) before torch's function is called
without padding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from dovetail.core.errors import PredictorError
from dovetail.predictors.onnx.memory import listed, require_room
from dovetail.predictors.onnx.node import Kernel, OnnxNode, Operator, plain


@dataclass(frozen=True)
class Windows:
    """The windows over the axes of an image. Empty lists stand for ONNX's defaults."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    auto_pad: str
    round_up: bool = False

    @classmethod
    def of(cls, node: OnnxNode, *, pooling: bool = False) -> Windows:
        """The windows that a node's attributes describe."""
        auto_pad = node.text("auto_pad", "NOTSET")
        if auto_pad not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
            raise node.refused(f"auto_pad={auto_pad!r}")
        strides, dilations = node.integers("strides", ()), node.integers("dilations", ())
        pads = node.integers("pads", ())
        if any(step < 1 for step in strides + dilations):
            raise PredictorError(f"{node}: strides and dilations must be positive; the file is damaged.")
        round_up = pooling and bool(node.integer("ceil_mode", 0))
        return cls(strides, dilations, pads if auto_pad == "NOTSET" else (), auto_pad, round_up)

    def steps(self, axes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Strides and dilations of all axes."""
        return self.strides or (1,) * axes, self.dilations or (1,) * axes

    def padding(self, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[list[int], list[int]]:
        """The padding before and after each axis."""
        axes = len(sizes)
        if not self.auto_pad.startswith("SAME"):
            pads = list(self.pads) or [0] * (2 * axes)
            return pads[:axes], pads[axes:]
        before, after = [], []
        strides, dilations = self.steps(axes)
        for size, width, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
            wanted = (math.ceil(size / stride) - 1) * stride + (width - 1) * dilation + 1
            missing = max(wanted - size, 0)
            smaller, larger = missing // 2, missing - missing // 2
            before.append(smaller if self.auto_pad == "SAME_UPPER" else larger)
            after.append(larger if self.auto_pad == "SAME_UPPER" else smaller)
        return before, after

    def overhang(
        self, sizes: Sequence[int], kernel: Sequence[int], pads: tuple[list[int], list[int]]
    ) -> list[int]:
        """The padding after each axis so that whole windows fit: more if rounding up, or less."""
        after = []
        for size, width, stride, dilation, first, last in zip(
            sizes, kernel, *self.steps(len(sizes)), *pads, strict=True
        ):
            span = (width - 1) * dilation + 1
            room = size + first + last - span
            count = (-(-room // stride) if self.round_up else room // stride) + 1
            if self.round_up and (count - 1) * stride >= size + first:
                count -= 1  # a window that would begin in the padding is left out
            after.append((count - 1) * stride + span - size - first)
        return after


def padded(x: Tensor, before: Sequence[int], after: Sequence[int], value: float = 0.0) -> Tensor:
    """Pads the last axes, or cuts them for negative amounts."""
    amounts = [amount for pair in zip(reversed(before), reversed(after), strict=True) for amount in pair]
    if not any(amounts):
        return x
    sizes = [size + a + b for size, a, b in zip(x.shape[2:], before, after, strict=True)]
    require_room([*x.shape[:2], *sizes])
    return F.pad(x, amounts, value=value)


CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def _convolution(node: OnnxNode) -> Kernel:
    windows, group = Windows.of(node), node.integer("group", 1)
    node.passed_over("kernel_shape")  # the shape of the weights shows the size

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
        """The amounts to cut off at either end of the full result."""
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


MAXIMA = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGES: dict[int, Callable[..., Tensor]] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def _max_pool(node: OnnxNode) -> Kernel:
    windows, kernel = Windows.of(node, pooling=True), node.integers("kernel_shape")
    strides, dilations = windows.steps(len(kernel))
    node.passed_over("storage_order")  # the attribute concerns the indices, which are not returned
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
        if counts_padding:  # but never entries that only rounding up has added
            counted = padded(counted, before, last, 1.0)
            before, after = [0] * len(kernel), [a - b for a, b in zip(after, last, strict=True)]
        return y / pool(padded(counted, before, after), kernel, strides)

    return run


POOLING: dict[str, Operator] = {
    "MaxPool": Operator(_max_pool, 1, 1),
    "AveragePool": Operator(_average_pool, 1, 1),
    "GlobalAveragePool": plain(lambda x: x.mean(dim=tuple(range(2, x.ndim)), keepdim=True), 1, 1),
    "GlobalMaxPool": plain(lambda x: x.amax(dim=tuple(range(2, x.ndim)), keepdim=True), 1, 1),
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
