"""A network's layers as rows of a Pyomo block, which OMLT's users look at, count and hand to other solvers.

`block.layer[id]` has, for each layer, `zhat` (the sums before the activation) and `z` (what comes out).
dovetail itself asks the network: to it they are one more way to say the same (`models/pyomo_written.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from dovetail.compat.omlt.affine import Affine, Interval, affine_of, nodes_of, pooled
from dovetail.compat.omlt.graph_layer import GNNLayer
from dovetail.compat.omlt.layer_values import activated
from dovetail.compat.omlt.layers import Layer
from dovetail.compat.omlt.layers_2d import PoolingLayer2D
from dovetail.compat.omlt.ways import FUNCTIONS
from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError

Boxes = list[tuple[Interval, Interval]]

MOST_TERMS = 200_000
"""Weights of a network that is written out: Pyomo takes a second and 50 MB for as many, and a
network beyond that is one that its owner would rather not have in the model."""


def writable(layers: Sequence[Layer]) -> bool:
    """Whether each layer is one that has rows, and there are not too many."""
    try:
        sums = [affine_of(layer) for layer in layers]
        for layer in layers:
            if isinstance(layer, PoolingLayer2D):
                pooled(layer)
    except UnsupportedError:
        return False
    known = {*FUNCTIONS, "relu"}
    terms = sum(part.matrix.nnz for part in sums if part is not None)
    return terms <= MOST_TERMS and all(layer.activation in known for layer in layers)


@dataclass(frozen=True, eq=False)
class WrittenLayer:
    """One layer of a block, with what its rows were made from."""

    layer: Layer
    block: Any
    sums: Affine | None
    inside: Interval
    """Between which values its sums are."""
    outside: Interval
    """Between which values its outputs are."""

    @property
    def z(self) -> list[Any]:
        """What comes out, in the order of the indices."""
        return [self.block.z[k] for k in self.layer.output_indexes]

    @property
    def zhat(self) -> list[Any]:
        """What goes into the activation, likewise."""
        return [self.block.zhat[k] for k in self.layer.output_indexes]


def written_layers(block: Any, layers: Sequence[Layer], boxes: Boxes) -> list[WrittenLayer]:
    """The layers of a block that they were written into."""
    return [
        WrittenLayer(layer, block.layer[id(layer)], affine_of(layer), *box)
        for layer, box in zip(layers, boxes, strict=True)
    ]


def write_layers(block: Any, layers: Sequence[Layer], boxes: Boxes) -> list[Any]:
    """Give `block` its `layers` and `layer`, and tie them to its scaled inputs and outputs.

    The variables and constraints that were made.
    """
    block.layers = pyo.Set(initialize=[id(layer) for layer in layers], ordered=True)
    block.layer = pyo.Block(block.layers)
    written = written_layers(block, layers, boxes)
    for before, made in zip([None, *written], written, strict=False):
        made.block.z = pyo.Var(made.layer.output_indexes, initialize=0)
        if before is not None:
            made.block.zhat = pyo.Var(made.layer.output_indexes, initialize=0)
            _add_sums(before, made, block)
            _add_activation(made)
    block.input_assignment = _equal(block.inputs_set, block.scaled_inputs, written[0])
    block.output_assignment = _equal(block.outputs_set, block.scaled_outputs, written[-1])
    return [*_parts(block.layer), block.input_assignment, block.output_assignment]


def write_expressions(block: Any, layers: Sequence[Layer]) -> list[Any]:
    """The same without variables for layers: z of each is an expression of the one before."""
    block.layers = pyo.Set(initialize=[id(layer) for layer in layers], ordered=True)
    block.layer = pyo.Block(block.layers)
    taken: list[Any] = [block.scaled_inputs[k] for k in block.inputs_set]
    for layer in layers:
        own, sums, curve = block.layer[id(layer)], affine_of(layer), FUNCTIONS[layer.activation]
        if sums is not None:
            inside = [
                sum((w * taken[j] for j, w in zip(*entries, strict=True)), start=offset)
                for entries, offset in zip(_rows(sums), sums.offset.tolist(), strict=True)
            ]
            taken = [curve(part) for part in inside]
        own.z = pyo.Expression(layer.output_indexes)
        for k, part in zip(layer.output_indexes, taken, strict=True):
            own.z[k] = part
        taken = [own.z[k] for k in layer.output_indexes]
    last = dict(zip(block.outputs_set, taken, strict=True))
    block.output_assignment = pyo.Constraint(
        block.outputs_set, rule=lambda b, *k: b.scaled_outputs[k] == last[k[0] if len(k) == 1 else k]
    )
    return [*_parts(block.layer), block.output_assignment]


def _parts(layer: Any) -> list[Any]:
    """What is in the blocks of the layers."""
    kinds = pyo.Var, pyo.Constraint
    return [part for own in layer.values() for kind in kinds for part in own.component_objects(kind)]


def _rows(sums: Affine) -> list[tuple[list[int], list[float]]]:
    """Places and weights of each sum."""
    parts = [slice(*ends) for ends in pairwise(sums.matrix.indptr)]
    return [(sums.matrix.indices[part].tolist(), sums.matrix.data[part].tolist()) for part in parts]


def _equal(indices: Any, variables: Any, end: WrittenLayer) -> Any:
    own = dict(zip(indices, end.z, strict=True))
    return pyo.Constraint(indices, rule=lambda _, *k: variables[k] == own[k[0] if len(k) == 1 else k])


def boxes_of(layers: Sequence[Layer], limits: Interval) -> Boxes | None:
    """For each layer, between which values its sums and its outputs are, for inputs within `limits`.

    None where a row would need a bound that there is not.
    """
    found = [(limits, limits)]
    for layer in layers[1:]:
        low, high = found[-1][1]
        if isinstance(layer, PoolingLayer2D):
            places = pooled(layer)
            inside = tuple(np.array([ends[own].max() for own in places]) for ends in (low, high))
            bounded = all(np.isfinite(ends).all() for ends in (low, high))
        else:
            sums = affine_of(layer)
            assert sums is not None
            bounded = not isinstance(layer, GNNLayer) or bool(np.isfinite([low, high]).all())
            if isinstance(layer, GNNLayer):  # an input may count or not
                low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
            inside = sums.interval(low, high)
        bounded = bounded and (layer.activation != "relu" or bool(np.isfinite(inside).all()))
        if not bounded:
            return None
        found.append(((inside[0], inside[1]), _through(layer.activation, inside)))
    return found


def _through(activation: str, inside: Sequence[FloatArray]) -> Interval:
    """All activations that are written rise with what goes into them."""
    low, high = (activated(activation, ends) for ends in inside)
    return low, high


def _add_sums(before: WrittenLayer, made: WrittenLayer, block: Any) -> None:
    """The rows of what goes into the activation."""
    if made.sums is None:
        _add_pooling(before, made)
        return
    graph = isinstance(made.layer, GNNLayer)
    taken = _joined(before, made.layer, block) if graph else [before.z] * len(made.sums.offset)
    sums = {
        zhat.index(): LinearExpression(
            constant=float(offset), linear_coefs=weights, linear_vars=[own[j] for j in places]
        )
        for zhat, own, offset, (places, weights) in zip(
            made.zhat, taken, made.sums.offset, _rows(made.sums), strict=True
        )
    }
    made.block.dense_layer = pyo.Constraint(
        made.layer.output_indexes, rule=lambda b, *k: b.zhat[k] == sums[b.zhat[k].index()]
    )


def _joined(before: WrittenLayer, layer: Any, block: Any) -> list[list[Any]]:
    """For each output of a layer over a graph, its inputs as far as their nodes are joined to its node.

    zbar[i, v] is z[i] where the node of i is joined to v, and 0 elsewhere, by four rows.
    """
    into, out = nodes_of(layer)
    own, nodes = before.block, range(layer.N)
    own.zbar = pyo.Var(before.layer.output_indexes, nodes, initialize=0)
    own.zbar_rows = pyo.ConstraintList()
    table = []
    for i, z in enumerate(before.z):
        low, high = (float(ends[i]) for ends in before.outside)
        line = [own.zbar[(*before.layer.output_indexes[i], v)] for v in nodes]
        for v, zbar in enumerate(line):
            edge = block.A[int(into[i]), v]
            own.zbar_rows.add(zbar >= low * edge)
            own.zbar_rows.add(zbar <= high * edge)
            own.zbar_rows.add(zbar >= z - high * (1 - edge))
            own.zbar_rows.add(zbar <= z - low * (1 - edge))
        table.append(line)
    return [[line[int(v)] for line in table] for v in out]


def _add_pooling(before: WrittenLayer, made: WrittenLayer) -> None:
    """Each output is no less than what it pools, and no more than the one that its binary chooses."""
    assert isinstance(made.layer, PoolingLayer2D)
    low, high = before.outside
    places, z = pooled(made.layer), before.z
    b = made.block
    b.q_maxpool = pyo.Var(
        [(k, i) for k, own in enumerate(places) for i in own], domain=pyo.Binary, initialize=0
    )
    b.pooling_rows = pyo.ConstraintList()
    for k, (zhat, own) in enumerate(zip(made.zhat, places, strict=True)):
        b.pooling_rows.add(sum(b.q_maxpool[k, i] for i in own) == 1)
        for i in own:
            b.pooling_rows.add(zhat >= z[i])
            b.pooling_rows.add(zhat <= z[i] + float(high[own].max() - low[i]) * (1 - b.q_maxpool[k, i]))


def _add_activation(made: WrittenLayer) -> None:
    """z from zhat; ReLU by a binary and four rows, with the limits of zhat."""
    keys, activation = made.layer.output_indexes, made.layer.activation
    if activation == "relu":
        _add_relu(made.block, keys, made.inside)
        return
    curve = FUNCTIONS[activation]
    rows = pyo.Constraint(keys, rule=lambda b, *k: b.z[k] == curve(b.zhat[k]))
    made.block.add_component(f"{activation}_activation", rows)


def _add_relu(b: Any, keys: list[tuple[int, ...]], inside: Interval) -> None:
    low, high = (dict(zip(keys, ends.tolist(), strict=True)) for ends in inside)
    b.q_relu = pyo.Var(keys, domain=pyo.Binary, initialize=0)
    b._big_m_lb_relu = pyo.Param(keys, initialize={k: min(low[k], 0.0) for k in keys}, mutable=True)
    b._big_m_ub_relu = pyo.Param(keys, initialize={k: max(high[k], 0.0) for k in keys}, mutable=True)
    b._z_lower_bound_relu = pyo.Constraint(keys, rule=lambda b, *k: b.z[k] >= 0)
    b._z_lower_bound_zhat_relu = pyo.Constraint(keys, rule=lambda b, *k: b.z[k] >= b.zhat[k])
    b._z_upper_bound_relu = pyo.Constraint(
        keys, rule=lambda b, *k: b.z[k] <= b._big_m_ub_relu[k] * b.q_relu[k]
    )
    b._z_upper_bound_zhat_relu = pyo.Constraint(
        keys, rule=lambda b, *k: b.z[k] <= b.zhat[k] - b._big_m_lb_relu[k] * (1 - b.q_relu[k])
    )
