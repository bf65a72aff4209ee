"""The table of all ONNX operators. A new one is a line in the table of its family's file. Float tensors are
on the module's device; integers and booleans that do not come from the data (shapes, axes, indices) stay on
the CPU, where reading them is cheap."""

from __future__ import annotations

from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.predictors.onnx.node import Kernel, OnnxNode, Operator
from dovetail.predictors.onnx.operators.elementwise import (
    ACTIVATION,
    CAST,
    COMPARISON,
    ELEMENTWISE,
    REDUCTION,
)
from dovetail.predictors.onnx.operators.matrix import ATTENTION, MATRIX, NORMALISATION
from dovetail.predictors.onnx.operators.recurrent import RECURRENT
from dovetail.predictors.onnx.operators.shape import CONSTANT, SHAPE, SLICING
from dovetail.predictors.onnx.operators.windows import CONVOLUTION, PADDING, POOLING, UPSAMPLING

OPERATORS: dict[str, Operator] = {
    **ELEMENTWISE,
    **ACTIVATION,
    **COMPARISON,
    **MATRIX,
    **CONVOLUTION,
    **POOLING,
    **NORMALISATION,
    **ATTENTION,
    **RECURRENT,
    **REDUCTION,
    **SHAPE,
    **SLICING,
    **PADDING,
    **UPSAMPLING,
    **CONSTANT,
    **CAST,
}

QUANTISED = ("Quantize", "QLinear", "DequantizeLinear", "DynamicQuantize", "MatMulInteger", "ConvInteger")
"""Prefixes of the names of quantised operators."""
BRANCHING = ("If", "Loop", "Scan", "SequenceMap")
"""Operators with a graph inside."""


def compiled(node: OnnxNode) -> Kernel:
    """The function of a node, or an error that names the node; nothing is evaluated yet."""
    operator = operator_of(node)
    required = node.inputs[: operator.fewest]
    if len(required) < operator.fewest or "" in required or len(node.inputs) > operator.most:
        raise PredictorError(f"{node} has {len(node.inputs)} inputs, which cannot be; the file is damaged.")
    if any(node.outputs[operator.outputs :]):
        raise node.refused(f"output number {operator.outputs + 1}")
    run = operator.build(node)
    for name in node.attributes.keys() - node.asked:
        raise node.refused(f"attribute {name!r}")
    return run


def operator_of(node: OnnxNode) -> Operator:
    """The description of a node's operator."""
    if node.domain == "" and node.operator in OPERATORS:
        return OPERATORS[node.operator]
    if node.domain == "ai.onnx.ml":
        hint = "the converted scikit-learn model can be given to dovetail itself, without ONNX."
    elif node.domain:
        hint = "only standard ONNX operators are supported; export without operators of your own."
    elif node.operator.startswith(QUANTISED):
        hint = "a quantised network has no gradient; export the float network."
    elif node.operator in BRANCHING:
        hint = "export the network without control flow (torch.onnx.export of an unrolled forward)."
    else:
        hint = "export the network with other operators, or give the torch.nn.Module itself."
    domain = f" of domain {node.domain!r}" if node.domain else ""
    raise UnsupportedError(
        f"ONNX operator {node.operator}{domain} (node {node.name!r}) is not supported: {hint}"
    )


def is_differentiable(node: OnnxNode) -> bool:
    """Whether a gradient passes through a node."""
    if node.operator == "Cast":
        return node.dtype("to").is_floating_point
    return operator_of(node).differentiable
