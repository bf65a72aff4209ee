"""A network as a plain graph. Knows nothing of `onnx`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.operators.shape import SHAPES_ONLY


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """A network: one input, one output, and the nodes between them in the order of their computation."""

    name: str
    input: str
    dtype: torch.dtype
    sizes: tuple[int | None, ...]
    """The input's shape; None where the file leaves it open."""
    output: str
    nodes: tuple[OnnxNode, ...]
    constants: dict[str, Tensor]
    narrowest_dtype: torch.dtype
    """The narrowest float type anywhere in it."""

    def makers(self) -> dict[str, OnnxNode]:
        """The node that makes each value, by the value's name."""
        return {name: node for node in self.nodes for name in node.outputs if name}

    def varying(self) -> set[str]:
        """The names of all values that depend on the numbers in the input, not only on its number of rows."""
        varying = {self.input}
        for node in self.nodes:
            if node.operator not in SHAPES_ONLY and varying & set(node.inputs):
                varying |= set(node.outputs) - {""}
        return varying
