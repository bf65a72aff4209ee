"""Pad: axes made longer, by a constant or by what is there."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from dovetail.predictors.onnx.limits import listed, require_room
from dovetail.predictors.onnx.node import Node
from dovetail.predictors.onnx.operators.operator import Kernel, Operator


def _pad(node: Node) -> Kernel:
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
