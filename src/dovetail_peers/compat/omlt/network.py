"""Networks in OMLT's form: layers and their predecessors, assembled by hand or read from a file.

The layers of a trained network in OMLT's form, for programs that inspect them one by one.

dovetail solves the network itself, even if some of its layers cannot be listed.

Networks of torch_geometric over a graph of N nodes, converted to layers over all nodes at once.

Features are ordered node by node, and a layer over the graph is one weight matrix of blocks: the block from
node u to node v is the contribution of v to u. The library itself is not needed, only the contents of its
modules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError, UnsupportedError
from dovetail.predictors.onnx.module import OnnxGraph
from dovetail.predictors.onnx.node import OnnxNode
from dovetail_peers.compat.omlt.definition import Bounds, Definition, by_index, input_shape_of, onnx_graph
from dovetail_peers.compat.omlt.layers import (
    ACTIVATIONS,
    ConvLayer2D,
    DenseLayer,
    GNNLayer,
    GraphNetwork,
    InputLayer,
    Layer,
    PoolingLayer2D,
    steps,
)

ONNX_ACTIVATIONS = {"Relu", "Sigmoid", "Tanh", "Softplus", "LogSoftmax", "Softmax"}
"""Operators of ONNX that are activations of the layer before them."""

RESHAPES = {"Reshape", "Flatten", "Identity", "Dropout", "Constant"}
"""Operators that keep numbers and order, with the attribute that shows this."""


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
    reshaped: list[int] | None = None
    for node in graph.nodes:
        last, made = found[-1], _MAKERS.get(node.operator)
        if node.operator in ONNX_ACTIVATIONS and last.activation == "linear":
            last.activation = node.operator.lower()
        elif node.operator == "Add" and isinstance(last, DenseLayer) and last.activation == "linear":
            last.biases = last.biases + _constant(graph, node, 0, 1)
        elif made is not None:
            found.append(made(graph, node, reshaped or last.output_size))
            reshaped = None
        elif node.operator == "Reshape":  # a [1, n] behind a convolution makes outputs (0, k), as in OMLT
            shape = [int(size) for size in _constant(graph, node, 1)]
            reshaped = [*np.empty(last.output_size).reshape(shape).shape]
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
    if any(node.integers("pads", (0, 0, 0, 0))) or len(shape) != 2:
        raise _not_listed(f"{node}, with pads or other than two axes,")
    size = [picture[0], *steps(picture, shape, strides, partial=bool(node.integer("ceil_mode", 0)))]
    return PoolingLayer2D(picture, size, strides, "max", shape, picture[0])


def _picture(size: list[int]) -> list[int]:
    """Depth, rows and columns, without an axis of samples whose size is 1 in the file."""
    return size[1:] if len(size) == 4 and size[0] == 1 else size


_MAKERS: dict[str, Callable[[OnnxGraph, OnnxNode, list[int]], Layer]] = {
    "MatMul": _dense,
    "Gemm": _dense,
    "Conv": _convolution,
    "MaxPool": _pooling,
}


def _constant(graph: OnnxGraph, node: OnnxNode, *places: int) -> FloatArray:
    """The first of a node's inputs, among these positions, that is a constant of the file."""
    nodes = {each.outputs[0]: each for each in graph.nodes if each.operator == "Constant"}
    for place in places:
        tensor = graph.constants.get(node.inputs[place])
        if node.inputs[place] in nodes:
            tensor = nodes[node.inputs[place]].tensor("value")
        if tensor is not None:
            return np.asarray(tensor.numpy(), dtype=np.float64)
    raise _not_listed(f"{node}, whose weights are computed,")


def _not_listed(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what} is no layer of OMLT's, so that layers cannot be listed; the network itself can be solved."
    )


class NetworkDefinition(Definition):
    """A network put together by hand, layer after layer, in a chain."""

    def __init__(
        self,
        scaling_object: Any = None,
        scaled_input_bounds: Bounds | None = None,
        unscaled_input_bounds: Bounds | None = None,
    ) -> None:
        super().__init__(None, (), scaling_object, scaled_input_bounds, unscaled_input_bounds)
        self._edges: list[tuple[Layer, Layer]] = []

    @cached_property
    def _own_layers(self) -> list[Layer]:
        return []

    def __str__(self) -> str:
        return f"{type(self).__name__} of {len(self._own_layers)} layers"

    def add_layer(self, layer: Layer) -> None:
        """Add a layer; `add_edge` states its predecessor."""
        if not isinstance(layer, Layer):
            raise UnsupportedError(
                f"a layer of class {type(layer).__name__} is not supported, only those of "
                "dovetail.compat.omlt.neuralnet.layer; give the network as an ONNX model "
                "(load_onnx_neural_network)."
            )
        self._own_layers.append(layer)

    def add_edge(self, from_layer: Layer, to_layer: Layer) -> None:
        """`to_layer` reads the output of `from_layer` and nothing else."""
        for side, layer in (("from_layer", from_layer), ("to_layer", to_layer)):
            if not any(layer is own for own in self._own_layers):
                raise OptionError(
                    f"{side} is {layer!r}, which is no layer of this network; call add_layer with it first."
                )
        self._edges.append((from_layer, to_layer))

    @property
    def predictor(self) -> Any:
        """The chain in float64, with the given weights."""
        layers = self._chain()[1:]
        if self.nodes:
            return GraphNetwork(layers, self.nodes)
        return nn.Sequential(*(module for layer in layers for module in layer.modules()))

    @property
    def nodes(self) -> int:
        """The number of edges that layers read."""
        return next((layer.N for layer in self._own_layers if isinstance(layer, GNNLayer)), 0)

    @property
    def input_shape(self) -> Sequence[int]:
        """The sizes of the input layer."""
        return tuple(self._chain()[0].output_size)

    @property
    def output_shape(self) -> Sequence[int]:
        """The sizes of the last layer."""
        return tuple(self._chain()[-1].output_size)

    def _chain(self) -> list[Layer]:
        """The layers in order; an `OptionError` if they do not form a chain."""
        behind = {id(first): second for first, second in self._edges}
        reached = {id(second) for _, second in self._edges}
        chain = [layer for layer in self._own_layers if id(layer) not in reached][:1]
        while chain and len(chain) <= len(self._own_layers) and id(chain[-1]) in behind:
            chain.append(behind[id(chain[-1])])
        whole = len(chain) == len(self._own_layers) == len(self._edges) + 1
        if not whole or len(chain) < 2 or not isinstance(chain[0], InputLayer):
            raise OptionError(
                f"{len(self._own_layers)} layers with {len(self._edges)} edges are no chain: a network needs "
                "one InputLayer, add_edge from each layer to the next, and one last layer. Networks that "
                "branch are given as an ONNX model (load_onnx_neural_network)."
            )
        return chain

    @property
    def layers(self) -> Iterator[Layer]:
        """From the first to the last."""
        return iter(self._chain())


class LoadedNetwork(NetworkDefinition):
    """A network that was trained elsewhere: its layers can be listed, and it is solved as it is."""

    predictor, input_shape, nodes = Definition.predictor, Definition.input_shape, Definition.nodes

    def __init__(
        self, predictor: Any, input_shape: Sequence[int], list_layers: Callable[[], list[Layer]], *scaled: Any
    ) -> None:
        super().__init__(*scaled)
        self._predictor, self._input_shape, self._list_layers = predictor, input_shape, list_layers

    @cached_property
    def _own_layers(self) -> list[Layer]:
        """Listed once, so that a layer is the same object at each access."""
        return self._list_layers()

    @property
    def layers(self) -> Iterator[Layer]:
        """From the first to the last."""
        return iter(self._own_layers)

    def add_layer(self, layer: Layer) -> None:
        """Raises an `UnsupportedError`: a trained network cannot be changed."""
        raise UnsupportedError(
            f"{layer!r} cannot be added to a network that was read from elsewhere; put its layers and this "
            "one into a NetworkDefinition of your own, with add_layer and add_edge."
        )

    @property
    def output_shape(self) -> Sequence[int]:
        """The sizes of the last layer if layers can be listed; otherwise the number of outputs of the
        network."""
        try:
            return tuple(self._own_layers[-1].output_size)
        except UnsupportedError:
            return super(NetworkDefinition, self).output_shape


def load_onnx_neural_network(
    onnx: Any, scaling_object: Any = None, input_bounds: Bounds | None = None
) -> LoadedNetwork:
    """An ONNX model; the bounds are those of the network's own (scaled) inputs."""
    graph = onnx_graph(onnx)
    shape = input_shape_of(graph)
    return LoadedNetwork(onnx, shape, partial(onnx_layers, graph, shape), scaling_object, input_bounds)


def load_onnx_neural_network_with_bounds(filename: str | Path) -> LoadedNetwork:
    """An ONNX file with the bounds from the file that `write_onnx_model_with_bounds` wrote next to it."""
    beside = Path(f"{filename}.bounds.json")
    return load_onnx_neural_network(
        str(filename), None, load_input_bounds(beside) if beside.exists() else None
    )


def load_keras_sequential(
    nn: Any,
    scaling_object: Any = None,
    scaled_input_bounds: Bounds | None = None,
    unscaled_input_bounds: Bounds | None = None,
) -> LoadedNetwork:
    """A Keras model, on its torch backend."""
    shape = tuple(int(size) for size in nn.input_shape[1:])
    bounds = scaled_input_bounds, unscaled_input_bounds
    return LoadedNetwork(nn, shape, partial(keras_layers, nn, shape), scaling_object, *bounds)


def write_onnx_model_with_bounds(
    filename: str | Path, onnx_model: Any = None, input_bounds: Bounds | None = None
) -> None:
    """Write the model and the bounds, whichever is given."""
    if onnx_model is not None:
        Path(filename).write_bytes(onnx_model.SerializeToString())
    if input_bounds is not None:
        write_input_bounds(f"{filename}.bounds.json", input_bounds)


def write_input_bounds(input_bounds_filename: str | Path, input_bounds: Bounds) -> None:
    """A record for each input, in OMLT's format."""
    pairs = by_index(input_bounds)
    records = [{"key": k, "lower_bound": float(a), "upper_bound": float(b)} for k, (a, b) in pairs.items()]
    Path(input_bounds_filename).write_text(json.dumps(records), encoding="utf-8")


def load_input_bounds(input_bounds_filename: str | Path) -> dict[Any, tuple[float, float]]:
    """The bounds by index."""
    records = json.loads(Path(input_bounds_filename).read_text(encoding="utf-8"))
    return {_index(each["key"]): (each["lower_bound"], each["upper_bound"]) for each in records}


def _index(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


def load_torch_geometric_sequential(
    nn: Any,
    N: int,
    A: Any = None,
    scaling_object: Any = None,
    scaled_input_bounds: Bounds | None = None,
    unscaled_input_bounds: Bounds | None = None,
) -> NetworkDefinition:
    """A `torch_geometric.nn.Sequential`; without `A` its edges are the block's variables `A`.

    `A` says which nodes are joined; each node is joined to itself, whatever the diagonal of `A` says.
    """
    joined = None if A is None else _adjacency(A, N)
    net = NetworkDefinition(scaling_object, scaled_input_bounds, unscaled_input_bounds)
    first = nn[0]
    last: Layer = InputLayer([N * int(getattr(first, "in_channels", None) or first.in_features)])
    net.add_layer(last)
    for part in nn:
        name = getattr(part, "__name__", type(part).__name__)
        behind = last.activation == "linear" and not isinstance(last, InputLayer)
        if name.lower() in _CURVES and behind:
            last.activation = name.lower()
            continue
        if name not in _GRAPH_MAKERS:
            raise UnsupportedError(
                f"{name} of torch_geometric is not supported, "
                f"only {', '.join(_GRAPH_MAKERS)} and, behind one of "
                f"them, {', '.join(_CURVES)}; give the network for a fixed graph to "
                "dovetail.add_predictor_constr as a torch module."
            )
        layer = _GRAPH_MAKERS[name](part, last.output_size[-1], N, joined)
        net.add_layer(layer)
        net.add_edge(last, layer)
        last = layer
    return net


def _adjacency(A: Any, N: int) -> FloatArray:
    """1 where two different nodes are joined."""
    edges = np.asarray(A, dtype=np.float64)
    if edges.shape != (N, N) or not np.array_equal(edges, edges.T):
        raise OptionError(f"A has shape {edges.shape}; give {N} x {N} numbers, the same both ways.")
    return edges * (1.0 - np.eye(N))


def _linear(part: Any, size: int, N: int, joined: FloatArray | None) -> Layer:
    """The same layer for each node; behind pooling for a single one."""
    weights, biases = _of(part.weight).T, _biases(part.bias, len(part.weight))
    nodes = size // len(weights)
    return DenseLayer([size], [nodes * len(biases)], np.kron(np.eye(nodes), weights), np.tile(biases, nodes))


def _gcn(part: Any, size: int, N: int, joined: FloatArray | None) -> Layer:
    """GCNConv: neighbours and the node itself by one matrix, over the root of both their degrees."""
    _require_plain(part, normalize=True, improved=False, add_self_loops=True)
    if joined is None:
        raise UnsupportedError(
            "GCNConv divides by the degrees of nodes, which needs a graph that is fixed: give A."
        )
    among = joined + np.eye(N)
    root = np.sqrt(among.sum(axis=0))
    weights = np.kron(among / np.outer(root, root), _of(part.lin.weight).T)
    return _over_graph(weights, _biases(part.bias, weights.shape[1] // N), N)


def _sage(part: Any, size: int, N: int, joined: FloatArray | None) -> Layer:
    """SAGEConv: the sum or the mean of the neighbours by one matrix, the node itself by another."""
    _require_plain(part, normalize=False, project=False)
    if part.aggr not in ("sum", "add", "mean"):
        raise UnsupportedError(f"SAGEConv with aggr={part.aggr!r} is not supported, only 'sum' and 'mean'.")
    among = joined if joined is not None else np.ones((N, N)) - np.eye(N)
    if part.aggr == "mean":
        if joined is None:
            raise UnsupportedError(
                "the mean of neighbours needs a graph that is fixed: give A, or use aggr='sum'."
            )
        among = among / np.maximum(among.sum(axis=0), 1.0)  # columns are the nodes that take the mean
    weights = np.kron(among, _of(part.lin_l.weight).T)
    if part.root_weight:
        weights += np.kron(np.eye(N), _of(part.lin_r.weight).T)
    return _over_graph(weights, _biases(part.lin_l.bias, weights.shape[1] // N), N)


def _over_graph(weights: Any, biases: FloatArray, N: int) -> Layer:
    return GNNLayer([len(weights)], [weights.shape[1]], weights, np.tile(biases, N), N)


def _pooled(share: Callable[[int], float]) -> Callable[[Any, int, int, FloatArray | None], Layer]:
    """Each feature added up over the nodes, weighted by a share for each node."""

    def made(part: Any, size: int, N: int, joined: FloatArray | None) -> Layer:
        weights = np.kron(np.full((N, 1), share(N)), np.eye(size // N))
        return DenseLayer([size], [size // N], weights, np.zeros(size // N))

    return made


def _require_plain(part: Any, **plain: bool) -> None:
    for option, value in plain.items():
        found = getattr(part, option, value)
        if bool(found) is not value:
            raise UnsupportedError(f"{type(part).__name__} with {option}={found} is not supported.")


def _of(tensor: Any) -> FloatArray:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


def _biases(tensor: Any, size: int) -> FloatArray:
    return np.zeros(size) if tensor is None else _of(tensor)


_CURVES = {name for name in ACTIVATIONS if name != "linear"}
_GRAPH_MAKERS: dict[str, Callable[[Any, int, int, FloatArray | None], Layer]] = {
    "Linear": _linear,
    "GCNConv": _gcn,
    "SAGEConv": _sage,
    "global_mean_pool": _pooled(lambda N: 1.0 / N),
    "global_add_pool": _pooled(lambda N: 1.0),
}
