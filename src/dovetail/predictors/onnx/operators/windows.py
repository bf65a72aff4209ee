"""Windows that slide over the axes of an image: what convolutions and pooling share.

ONNX pads both ends of an axis on their own, torch one amount for both; so what torch cannot say is
padded (or cut) before its function is called without any padding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from dovetail.core.errors import PredictorError
from dovetail.predictors.onnx.memory import require_room
from dovetail.predictors.onnx.node import OnnxNode


@dataclass(frozen=True)
class Windows:
    """How windows lie on the axes of an image. Empty lists stand for ONNX's defaults."""

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
        """What is added before and after each axis."""
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
        """What must follow each axis so that whole windows fit: the padding, more if rounding up, or less."""
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
    """The last axes with something added, or cut off where negative."""
    amounts = [amount for pair in zip(reversed(before), reversed(after), strict=True) for amount in pair]
    if not any(amounts):
        return x
    sizes = [size + a + b for size, a, b in zip(x.shape[2:], before, after, strict=True)]
    require_room([*x.shape[:2], *sizes])
    return F.pad(x, amounts, value=value)
