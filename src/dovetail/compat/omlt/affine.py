"""What a layer does before its activation, as rows of a model: sums of the layer's inputs, or largest ones.

Numbers are taken in the order of their indices, as they are between layers (`layers.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.compat.omlt.graph_layer import GNNLayer
from dovetail.compat.omlt.layers import DenseLayer, InputLayer, Layer
from dovetail.compat.omlt.layers_2d import ConvLayer2D, PoolingLayer2D
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError

Interval = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Affine:
    """matrix x + offset."""

    matrix: sp.csr_array
    offset: FloatArray

    def __call__(self, x: FloatArray) -> FloatArray:
        """Its value."""
        return np.asarray(self.matrix @ x + self.offset)

    def interval(self, low: FloatArray, high: FloatArray) -> Interval:
        """Between which values it is; infinities where an input that counts has none."""
        up, down = self.matrix.maximum(0.0), self.matrix.minimum(0.0)
        return _sum(up, low) + _sum(down, high) + self.offset, _sum(up, high) + _sum(down, low) + self.offset


def affine_of(layer: Layer) -> Affine | None:
    """The sums of a layer; None for one that has none: an input layer, or pooling.

    Those of a layer over a graph count where nodes are joined; here all of them are.
    """
    if isinstance(layer, DenseLayer):
        rows = int(np.prod(layer.input_size)) // len(layer.weights)
        matrix = sp.csr_array(sp.kron(sp.eye_array(rows), sp.csr_array(layer.weights.T)))
        out = layer.weights.shape[1]
        return Affine(matrix, np.broadcast_to(layer.biases.reshape(-1, out), (rows, out)).ravel())
    if isinstance(layer, ConvLayer2D):
        return _convolution(layer)
    if isinstance(layer, InputLayer | PoolingLayer2D):
        return None
    raise UnsupportedError(f"{layer!r} has no rows.")


def nodes_of(layer: GNNLayer) -> tuple[IntArray, IntArray]:
    """For each input and each output of a layer over a graph, the node that it belongs to."""
    rows = int(np.prod(layer.input_size)) // layer.input_size[-1]
    into = np.tile(np.repeat(np.arange(layer.N), layer.gnn_input_size), rows)
    return into, np.tile(np.repeat(np.arange(layer.N), layer.gnn_output_size), rows)


def pooled(layer: PoolingLayer2D) -> list[list[int]]:
    """For each output of a pooling layer, the inputs that it is the largest of."""
    if layer.input_size[0] != 1 or layer.kernel_depth != 1:
        raise UnsupportedError(f"{layer!r} has no rows: its pictures are of depth {layer.input_size[0]}.")
    size = tuple(layer.input_size)
    return [
        [int(np.ravel_multi_index(under, size)) for _, under in layer.kernel_index_with_input_indexes(*out)]
        for out in np.ndindex(*layer.output_size)
    ]


def _convolution(layer: ConvLayer2D) -> Affine:
    size = tuple(layer.input_size)
    rows, columns, weights, offset = [], [], [], []
    for row, out in enumerate(np.ndindex(*layer.output_size)):
        offset.append(float(layer.biases[out[0]]))
        for weight, under in layer.kernel_with_input_indexes(*out):
            rows.append(row)
            columns.append(int(np.ravel_multi_index(under, size)))
            weights.append(weight)
    shape = (len(offset), int(np.prod(size)))
    return Affine(sp.csr_array((weights, (rows, columns)), shape=shape), np.array(offset))


def _sum(matrix: sp.csr_array, ends: FloatArray) -> FloatArray:
    """matrix x ends, where 0 times infinity is 0: what does not count may be anything."""
    finite = np.where(np.isfinite(ends), ends, 0.0)
    endless = matrix @ np.where(np.isfinite(ends), 0.0, np.sign(ends))
    return np.asarray(matrix @ finite + np.select([endless < 0.0, endless > 0.0], [-np.inf, np.inf], 0.0))
