"""The layers of a trained network as OMLT lists them, for those who look at them one by one.

What is solved is the network itself, whatever of it can be listed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.predictors.onnx.graph_traits import OnnxGraph
from dovetail.predictors.onnx.node import OnnxNode
from dovetail_peers.compat.omlt.layers import DenseLayer, InputLayer, Layer
from dovetail_peers.compat.omlt.layers_2d import ConvLayer2D, PoolingLayer2D, steps

ACTIVATIONS = {"Relu", "Sigmoid", "Tanh", "Softplus", "LogSoftmax", "Softmax"}
"""Operators of ONNX that are activations of the layer before them."""

RESHAPES = {"Reshape", "Flatten", "Identity", "Dropout", "Constant"}
"""Those that leave the numbers and their order as they are, and what says how."""


def keras_layers(network: Any, input_shape: tuple[int, ...]) -> list[Layer]:
    """Dense layers of a Keras model."""
    found: list[Layer] = [InputLayer(input_shape)]
    for layer in network.layers:
        kind = type(layer).__name__
        if kind == "InputLayer":
            continue
        if kind != "Dense":
            raise _not_listed(f"a {kind} layer of Keras's")
        weights, *biases = (np.asarray(part) for part in layer.get_weights())
        told = layer.get_config()["activation"]
        size = [*found[-1].output_size[:-1], weights.shape[1]]
        offset = biases[0] if biases else np.zeros(size[-1])
        found.append(DenseLayer(found[-1].output_size, size, weights, offset, activation=told))
    return found


def onnx_layers(graph: OnnxGraph, input_shape: tuple[int, ...]) -> list[Layer]:
    """Dense layers, convolutions and pooling of an ONNX model that is a chain of them."""
    found: list[Layer] = [InputLayer(input_shape)]
    for node in graph.nodes:
        last, made = found[-1], _MAKERS.get(node.operator)
        if node.operator in ACTIVATIONS and last.activation == "linear":
            last.activation = node.operator.lower()
        elif node.operator == "Add" and isinstance(last, DenseLayer) and last.activation == "linear":
            last.biases = last.biases + _constant(graph, node, 0, 1)
        elif made is not None:
            found.append(made(graph, node, last.output_size))
        elif node.operator not in RESHAPES:
            raise _not_listed(str(node))
    return found


def _dense(graph: OnnxGraph, node: OnnxNode, before: list[int]) -> Layer:
    weights = _constant(graph, node, 1)
    if node.operator == "Gemm":
        if node.integer("transA", 0) or {node.number("alpha", 1.0), node.number("beta", 1.0)} != {1.0}:
            raise _not_listed(f"{node}, with factors of its own,")
        weights = weights.T if node.integer("transB", 0) else weights
    biases = _constant(graph, node, 2) if len(node.inputs) > 2 else np.zeros(weights.shape[1])
    size = before if before[-1] == len(weights) else [len(weights)]
    return DenseLayer(size, [*size[:-1], weights.shape[1]], weights, biases)


def _convolution(graph: OnnxGraph, node: OnnxNode, before: list[int]) -> Layer:
    kernel = _constant(graph, node, 1)
    strides = node.integers("strides", (1, 1))
    plain = not any(node.integers("pads", (0, 0, 0, 0))) and set(node.integers("dilations", (1, 1))) == {1}
    if not plain or node.integer("group", 1) != 1 or kernel.ndim != 4:
        raise _not_listed(f"{node}, with pads, dilations or groups,")
    biases = _constant(graph, node, 2) if len(node.inputs) > 2 else None
    picture = _picture(before)
    size = [len(kernel), *steps(picture, kernel.shape[2:], strides)]
    return ConvLayer2D(picture, size, strides, kernel, biases=biases)


def _pooling(graph: OnnxGraph, node: OnnxNode, before: list[int]) -> Layer:
    shape, strides = node.integers("kernel_shape"), node.integers("strides", (1, 1))
    picture = _picture(before)
    if len(shape) == 3 and shape[0] == picture[0]:
        shape = shape[
            1:
        ]  # a file that names the depth, too: OMLT lists it, though no runtime of ONNX's takes it
    if any(node.integers("pads", (0, 0, 0, 0))) or len(shape) != 2:
        raise _not_listed(f"{node}, with pads or other than two axes,")
    size = [picture[0], *steps(picture, shape, strides, partial=bool(node.integer("ceil_mode", 0)))]
    return PoolingLayer2D(picture, size, strides, "max", shape, picture[0])


def _picture(size: list[int]) -> list[int]:
    """Depth, rows and columns, without an axis of samples whose size the file has set to 1."""
    return size[1:] if len(size) == 4 and size[0] == 1 else size


_MAKERS: dict[str, Callable[[OnnxGraph, OnnxNode, list[int]], Layer]] = {
    "MatMul": _dense,
    "Gemm": _dense,
    "Conv": _convolution,
    "MaxPool": _pooling,
}


def _constant(graph: OnnxGraph, node: OnnxNode, *places: int) -> FloatArray:
    """The input of a node that is a number of the file's, at the first of these places that has one."""
    for place in places:
        tensor = graph.constants.get(node.inputs[place])
        if tensor is not None:
            return np.asarray(tensor.numpy(), dtype=np.float64)
    raise _not_listed(f"{node}, whose weights are computed,")


def _not_listed(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what} is no layer of OMLT's, so that layers cannot be listed; the network itself can be solved."
    )
