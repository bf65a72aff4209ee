"""Changes of the element type."""

from __future__ import annotations

from torch import Tensor

from dovetail.predictors.onnx.node import Node
from dovetail.predictors.onnx.operators.operator import Kernel, Operator, plain


def _cast(node: Node) -> Kernel:
    declared = node.dtype("to")
    node.passed_over("saturate", "round_mode")  # they concern 8-bit floats

    def run(like: Tensor, x: Tensor) -> Tensor:
        dtype = node.dtype_in_use(declared, like)
        becomes_float = dtype.is_floating_point and not x.is_floating_point()
        return x.to(dtype=dtype, device=like.device) if becomes_float else x.to(dtype)

    return run


def _cast_like(x: Tensor, like: Tensor) -> Tensor:
    return x.to(like.dtype)


CAST: dict[str, Operator] = {
    "Cast": Operator(_cast, 1, 1, needs_like=True),
    "CastLike": plain(_cast_like, 2, 2),
}
