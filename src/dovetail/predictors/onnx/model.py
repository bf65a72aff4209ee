"""ONNX models as predictors, by an interpreter of our own.

A graph is turned once into a list of functions of torch tensors inside an `nn.Module`; from there on an
ONNX model is a torch module like any other: `predict` computes in the file's own precision, gradients
run through a float64 copy. No ONNX runtime is needed to solve; the tests use one as an oracle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.description import Description
from dovetail.core.errors import UnsupportedError
from dovetail.core.files import FileLimits, Meter
from dovetail.networks.layers import ACTIVATIONS, Activation, Dense, Layer, folded
from dovetail.predictors.onnx.file import metered, read_graph, readable
from dovetail.predictors.onnx.module import (
    RESHAPING,
    OnnxGraph,
    OnnxModule,
    ends_in_sigmoid,
    piecewise_constant_nodes,
)
from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.trees import is_classifier, onnx_ensemble, tree_node
from dovetail.predictors.torch.layers import changed
from dovetail.predictors.torch.module import TorchPredictor
from dovetail.predictors.trees.file import WrittenTrees


def onnx_predictor(model: Any, *, limits: FileLimits | None = None) -> OnnxPredictor | WrittenTrees:
    """The predictor of a model: a tree ensemble if the graph is nothing else, otherwise a network."""
    meter = metered(model, limits)
    graph = read_graph(model, None, meter)
    node = tree_node(graph)
    if node is None:
        return OnnxPredictor(model, read=(graph, meter))
    with readable(graph.name):
        return WrittenTrees(graph.name, onnx_ensemble(graph, node), is_classifier=is_classifier(node))


class OnnxPredictor(TorchPredictor):
    """An ONNX file, or an `onnx.ModelProto`: one float input (samples, ...), one output (samples, ...).

    A row of features is the input's further axes laid out flat, and a row of outputs likewise. `output`
    chooses among several outputs by name. A model exported for a single sample is taken sample by sample.
    `limits` raises the limits on reading and testing; `read` is the graph, if it was read before.
    """

    def __init__(
        self,
        model: Any,
        output: str | None = None,
        *,
        limits: FileLimits | None = None,
        read: tuple[OnnxGraph, Meter] | None = None,
    ) -> None:
        meter = read[1] if read is not None else metered(model, limits)
        graph = read[0] if read is not None else read_graph(model, output, meter)
        with readable(graph.name):
            module = OnnxModule(graph, meter)
        super().__init__(module)
        self.name = graph.name
        self._graph = graph
        self._onnx_module = module

    def describe(self, X: FloatArray) -> Description:
        """The description of a module; the graph shows piecewise constant outputs and the last operation."""
        seen = super().describe(X)
        smooth = seen.smooth and not piecewise_constant_nodes(self._graph)
        return replace(seen, smooth=smooth, ends_in_sigmoid=ends_in_sigmoid(self._graph))

    def layers(self) -> tuple[Layer, ...]:
        """The layers, if the graph is a plain chain of dense layers and common activations."""
        return folded(self._unfolded())

    def _unfolded(self) -> tuple[Layer, ...]:
        reason = changed(self._onnx_module)
        if reason:
            raise UnsupportedError(f"{self.name} cannot be written out: {reason}.")
        return tuple(layers_of(self._graph, self._onnx_module))


def layers_of(graph: OnnxGraph, module: OnnxModule) -> Iterator[Layer]:
    """A layer for every computing node; an error names a node that is no layer."""
    shapes, rows = module.shapes()
    for node, data in _chain(graph):
        before, after = shapes[data], shapes[node.outputs[0]]
        if node.operator in RESHAPING and before[0] == after[0] == rows:
            continue
        if node.operator == "Cast" and node.dtype("to") == graph.dtype == graph.narrowest_dtype:
            continue  # Identity: graphs of converted estimators begin with one
        axis = node.integer("axis", -1 if node.opset >= 13 else 1) if node.operator == "Softmax" else 1
        if node.operator.lower() in ACTIVATIONS and (
            node.operator != "Softmax" or (len(before) == 2 and axis in (1, -1))
        ):
            yield Activation(node.operator.lower())
        elif node.operator in ("Gemm", "MatMul") and node.inputs[0] == data and len(before) == 2:
            yield _dense(node, module)
        elif node.operator in ("Add", "Sub", "Mul", "Div") and before == after:
            yield _scaling(node, data, before, module)
        else:
            raise _not_a_layer(node)


def _chain(graph: OnnxGraph) -> list[tuple[OnnxNode, str]]:
    """The nodes from input to output, each with the single value that it processes."""
    makers = graph.makers()
    varying = graph.varying()
    name, chain = graph.output, []
    while name != graph.input:
        node = makers[name]
        data = [value for value in node.inputs if value in varying]
        if len(data) != 1:
            raise _not_a_layer(node)
        (name,) = data
        chain.append((node, name))
    return chain[::-1]


def _dense(node: OnnxNode, module: OnnxModule) -> Dense:
    weight = module.constant(node.inputs[1])
    if weight is None or weight.ndim > 2 or (node.operator == "Gemm" and node.integer("transA", 0)):
        raise _not_a_layer(node)
    if node.operator == "MatMul":
        weight = np.atleast_2d(weight.T)
        return Dense(weight, np.zeros(len(weight)))
    weight = node.number("alpha", 1.0) * (weight if node.integer("transB", 0) else weight.T)
    bias: FloatArray | None = np.zeros(1)
    if len(node.inputs) > 2 and node.inputs[2]:
        bias = module.constant(node.inputs[2])
    return Dense(weight, node.number("beta", 1.0) * _spread(bias, (len(weight),), node))


def _scaling(node: OnnxNode, data: str, shape: tuple[int, ...], module: OnnxModule) -> Dense:
    """Arithmetic with a constant as a layer: a scaler before a network, or the bias after a MatMul."""
    comes_first = node.inputs[0] == data
    constant = _spread(module.constant(node.inputs[1 if comes_first else 0]), shape[1:], node)
    ones, zeros = np.ones(len(constant)), np.zeros(len(constant))
    if node.operator == "Add":
        return Dense(np.diag(ones), constant)
    if node.operator == "Sub":
        return Dense(np.diag(ones), -constant) if comes_first else Dense(np.diag(-ones), constant)
    if node.operator == "Div" and not comes_first:
        raise _not_a_layer(node)
    return Dense(np.diag(constant if node.operator == "Mul" else 1.0 / constant), zeros)


def _spread(constant: FloatArray | None, shape: tuple[int, ...], node: OnnxNode) -> FloatArray:
    """A constant, equal for all rows, as one number per value of a row."""
    try:
        if constant is not None:
            return np.broadcast_to(constant, (1, *shape)).reshape(-1).copy()
    except ValueError:
        pass
    raise _not_a_layer(node)


def _not_a_layer(node: OnnxNode) -> UnsupportedError:
    return UnsupportedError(
        f"{node} cannot be written out as a layer; only a chain of Gemm, MatMul, Add, Relu, Sigmoid, Tanh, "
        'Softplus and Softmax can. method="auto" takes any network.'
    )
