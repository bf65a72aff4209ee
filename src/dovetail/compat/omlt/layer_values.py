"""What each layer of a network makes of one sample, by the sums and curves that its rows are written with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.compat.omlt.affine import affine_of, nodes_of, pooled
from dovetail.compat.omlt.graph_layer import GNNLayer
from dovetail.compat.omlt.layers import Layer
from dovetail.compat.omlt.layers_2d import PoolingLayer2D
from dovetail.core.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class LayerValues:
    """One layer's numbers, in the order of their indices."""

    zhat: FloatArray
    """What goes into the activation."""
    z: FloatArray
    """What comes out of it."""
    joined: FloatArray | None = None
    """Of a layer over a graph: its inputs by node, as far as their nodes are joined to it."""


def values_of(layers: Sequence[Layer], x: FloatArray, edges: FloatArray | None = None) -> list[LayerValues]:
    """Of all layers, for a sample; `edges` says which nodes of a graph are joined."""
    found = [LayerValues(x, x)]
    for layer in layers[1:]:
        x, joined = found[-1].z, None
        if isinstance(layer, PoolingLayer2D):
            zhat = np.array([x[own].max() for own in pooled(layer)])
        else:
            sums = affine_of(layer)
            assert sums is not None
            if isinstance(layer, GNNLayer) and edges is not None:
                into, out = nodes_of(layer)
                joined = edges[into] * x[:, None]
                zhat = (sums.matrix.toarray() * joined[:, out].T).sum(axis=1) + sums.offset
            else:
                zhat = sums(x)
        found.append(LayerValues(np.asarray(zhat), activated(layer.activation, zhat), joined))
    return found


def activated(activation: str, x: FloatArray) -> FloatArray:
    """The activation's values."""
    curves = {
        "linear": x,
        "relu": np.maximum(x, 0.0),
        "tanh": np.tanh(x),
        "softplus": np.logaddexp(0.0, x),
        "sigmoid": np.exp(-np.logaddexp(0.0, -x)),
    }
    return np.asarray(curves[activation])
