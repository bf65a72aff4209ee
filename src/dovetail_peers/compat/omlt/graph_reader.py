"""Networks of torch_geometric's over a graph of N nodes, read into layers over all nodes at once.

Features stand node by node, and a layer over the graph is one weight matrix of blocks: the block from node u
to node v is what v makes of u. The library itself is not needed, only what its modules hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError, UnsupportedError
from dovetail_peers.compat.omlt.definition import Bounds
from dovetail_peers.compat.omlt.layers import ACTIVATIONS, DenseLayer, GNNLayer, InputLayer, Layer
from dovetail_peers.compat.omlt.network import NetworkDefinition


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
    joined = None if A is None else _joined(A, N)
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
        if name not in _MAKERS:
            raise UnsupportedError(
                f"{name} of torch_geometric is not taken, only {', '.join(_MAKERS)} and, behind one of them, "
                f"{', '.join(_CURVES)}; give the network for a fixed graph to "
                "dovetail.add_predictor_constr as a torch module."
            )
        layer = _MAKERS[name](part, last.output_size[-1], N, joined)
        net.add_layer(layer)
        net.add_edge(last, layer)
        last = layer
    return net


def _joined(A: Any, N: int) -> FloatArray:
    """1 where two different nodes are joined."""
    edges = np.asarray(A, dtype=np.float64)
    if edges.shape != (N, N) or not np.array_equal(edges, edges.T):
        raise OptionError(f"A has shape {edges.shape}; give {N} x {N} numbers, the same both ways.")
    return edges * (1.0 - np.eye(N))


def _linear(part: Any, size: int, N: int, joined: FloatArray | None) -> Layer:
    """The same layer for each node; for one, behind pooling."""
    weights, biases = _of(part.weight).T, _biases(part.bias, len(part.weight))
    nodes = size // len(weights)
    return DenseLayer([size], [nodes * len(biases)], np.kron(np.eye(nodes), weights), np.tile(biases, nodes))


def _convolution(part: Any, size: int, N: int, joined: FloatArray | None) -> Layer:
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
        raise UnsupportedError(f"SAGEConv with aggr={part.aggr!r} is not taken, only 'sum' and 'mean'.")
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


def _pooling(share: Callable[[int], float]) -> Callable[[Any, int, int, FloatArray | None], Layer]:
    """Each feature added up over the nodes, each of which counts by a share."""

    def made(part: Any, size: int, N: int, joined: FloatArray | None) -> Layer:
        weights = np.kron(np.full((N, 1), share(N)), np.eye(size // N))
        return DenseLayer([size], [size // N], weights, np.zeros(size // N))

    return made


def _require_plain(part: Any, **plain: bool) -> None:
    for option, value in plain.items():
        found = getattr(part, option, value)
        if bool(found) is not value:
            raise UnsupportedError(f"{type(part).__name__} with {option}={found} is not taken.")


def _of(tensor: Any) -> FloatArray:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


def _biases(tensor: Any, size: int) -> FloatArray:
    return np.zeros(size) if tensor is None else _of(tensor)


_CURVES = {name for name in ACTIVATIONS if name != "linear"}
_MAKERS: dict[str, Callable[[Any, int, int, FloatArray | None], Layer]] = {
    "Linear": _linear,
    "GCNConv": _convolution,
    "SAGEConv": _sage,
    "global_mean_pool": _pooling(lambda N: 1.0 / N),
    "global_add_pool": _pooling(lambda N: 1.0),
}
