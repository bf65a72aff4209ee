"""What a graph shows without being run: gradients, the last operation, the shape of a sample."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.predictors.onnx.memory import LARGEST
from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.operators.shape import SHAPES_ONLY
from dovetail.predictors.onnx.operators.table import is_differentiable

RESHAPING = ("Identity", "Dropout", "Flatten", "Reshape", "Squeeze", "Unsqueeze")
"""Operators that keep every number of a row, in its order."""
LINEAR = ("Gemm", "MatMul", "Conv", "ConvTranspose")
"""Operators that a logit comes from and a probability does not."""
SHIFTING = ("Add", "Sub")
"""Operators that may be a bias behind one of those, or move a sigmoid off [0, 1]."""
MOST_FEATURES = LARGEST // 16
"""Of one sample: a batch of a few, and what comes of it, must stay below the largest tensor."""


def piecewise_constant_nodes(graph: OnnxGraph) -> list[OnnxNode]:
    """Nodes whose result moves in steps, or not at all, as the data move."""
    varying = graph.varying()
    return [
        node
        for node in graph.nodes
        if node.operator not in SHAPES_ONLY and varying & set(node.inputs) and not is_differentiable(node)
    ]


def require_gradient(graph: OnnxGraph) -> None:
    """Refuse a network whose output has no gradient anywhere: an index of a class, say."""
    if graph.output not in graph.varying():
        raise PredictorError(f"{graph.name}: output {graph.output!r} does not depend on the input.")
    reached = {graph.input}
    for node in graph.nodes:
        if reached & set(node.inputs) and is_differentiable(node):
            reached |= set(node.outputs) - {""}
    if graph.output not in reached:
        culprit = piecewise_constant_nodes(graph)[-1]
        raise UnsupportedError(
            f"{graph.name}: output {graph.output!r} has no gradient: {culprit} turns numbers "
            "into steps. Export the scores it is taken from; add_predictor(..., "
            'output_type="classification") finds the largest itself.'
        )


def ends_in_sigmoid(graph: OnnxGraph) -> bool | None:
    """True or False where the last operation shows it, None where it does not."""
    makers = graph.makers()
    varying = graph.varying()
    name, shifted = graph.output, False
    while name in makers:
        node = makers[name]
        data = [value for value in node.inputs if value in varying]
        if node.operator == "Sigmoid":
            return None if shifted else True
        if node.operator in LINEAR and len(data) == 1:
            return False
        shifted = shifted or node.operator in SHIFTING
        if node.operator not in (*RESHAPING, "Gather", "Slice", "Transpose", *SHIFTING) or len(data) != 1:
            return None
        (name,) = data
    return None


def row_shape(graph: OnnxGraph, constants: Mapping[str, Tensor]) -> tuple[int, ...]:
    """The axes of one sample."""
    first, *rest = graph.sizes
    if len(rest) == 1 and rest[0] is None:
        rest = [_width(graph, constants)]
    sizes = tuple(size for size in rest if size is not None)
    if len(sizes) < len(rest):
        order = "" if first is None else " The samples must be the first axis."
        shown = ", ".join("?" if size is None else str(size) for size in graph.sizes)
        raise PredictorError(
            f"{graph.name}: input {graph.input!r} has the shape ({shown}); export the network with only the "
            f"first axis open.{order}"
        )
    if not 0 < math.prod(sizes) <= MOST_FEATURES:
        raise PredictorError(
            f"{graph.name}: input {graph.input!r} has {math.prod(sizes)} features per sample."
        )
    return sizes


def _width(graph: OnnxGraph, constants: Mapping[str, Tensor]) -> int | None:
    """How many features there are, from the weights they meet first."""
    for node in graph.nodes:
        if node.operator in ("Gemm", "MatMul") and node.inputs[0] == graph.input:
            weight = constants.get(node.inputs[1])
            if weight is not None and weight.ndim == 2:
                return int(weight.shape[1 if node.operator == "Gemm" and node.integer("transB", 0) else 0])
    return None


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
