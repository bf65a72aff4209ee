"""A network that is tied to a block of Pyomo's and written out in it as well."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
from torch import nn

from dovetail.compat.omlt.affine import Interval, pooled
from dovetail.compat.omlt.graph_layer import GraphNetwork
from dovetail.compat.omlt.layer_values import values_of
from dovetail.compat.omlt.layers import Layer
from dovetail.compat.omlt.layers_2d import PoolingLayer2D
from dovetail.compat.omlt.ways import FUNCTIONS
from dovetail.compat.omlt.written_layers import (
    Boxes,
    WrittenLayer,
    boxes_of,
    writable,
    write_expressions,
    write_layers,
    written_layers,
)
from dovetail.core.arrays import FloatArray
from dovetail.core.linear import as_linear
from dovetail.core.predictor import as_predictor
from dovetail.models.pyomo_written import not_tied, note_written

POINTS = 3
"""Where layers and network are compared: a layer that was misread shows at the first."""

Tie = Callable[[nn.Module, list[Any]], None]
"""Tie variables of the model to what a module makes of the network's inputs."""


def write_out(
    block: Any, layers: Sequence[Layer], predictor: Any, nodes: int, tie: Tie, *, reduced: bool
) -> bool:
    """Write a network's layers into a block that it is tied to, if they can be written; whether they can.

    `reduced` asks for expressions in place of variables, which ReLU and pooling have none for. Layers that
    were listed from a file and say something else than the file are not written.
    """
    limits = _limits(block)
    boxes = boxes_of(layers, limits) if writable(layers) else None
    if boxes is None or not _same(layers, predictor, nodes, limits):
        return False
    curves = all(layer.activation in FUNCTIONS and not isinstance(layer, PoolingLayer2D) for layer in layers)
    if reduced and curves and not nodes:
        note_written(write_expressions(block, layers), WrittenNetwork(block, [], [], 0, tie))
    else:
        note_written(write_layers(block, layers, boxes), WrittenNetwork(block, layers, boxes, nodes, tie))
    return True


def _limits(block: Any) -> Interval:
    pairs = [(block.scaled_inputs[k].lb, block.scaled_inputs[k].ub) for k in block.inputs_set]
    low, high = (
        np.array([endless if pair[side] is None else pair[side] for pair in pairs], dtype=np.float64)
        for side, endless in ((0, -np.inf), (1, np.inf))
    )
    return low, high


def _same(layers: Sequence[Layer], predictor: Any, nodes: int, limits: Interval) -> bool:
    """Whether the layers say what the network says, at a few points."""
    low, high = np.maximum(limits[0], -1e3), np.minimum(limits[1], 1e3)
    X = np.random.default_rng(0).uniform(low, np.maximum(low, high), size=(POINTS, len(low)))
    said = as_predictor(predictor).predict(np.hstack([X, np.ones((POINTS, nodes**2))]))
    edges = np.ones((nodes, nodes))
    written = np.array([values_of(layers, x, edges)[-1].z for x in X])
    return written.shape == said.shape and np.allclose(written, said, rtol=1e-3, atol=1e-3)


class WrittenNetwork:
    """What `models/pyomo_written.py` asks of the layers that were written. The block is not kept alive."""

    def __init__(self, block: Any, layers: Sequence[Layer], boxes: Boxes, nodes: int, tie: Tie) -> None:
        self._block, self._layers, self._boxes = weakref.ref(block), layers, boxes
        self._nodes, self._tie = nodes, tie
        self.revealed: list[Any] = []

    def _written(self) -> tuple[Any, list[WrittenLayer]]:
        block = self._block()
        return block, written_layers(block, self._layers, self._boxes)

    def reveal(self, variables: list[Any]) -> None:
        """Tie those among z and zhat to the layers up to theirs."""
        _, written = self._written()
        asked = {id(variable): variable for variable in variables}
        found = []
        for depth, made in enumerate(written):
            for name in ("z", "zhat") if depth else ("z",):
                own = [
                    (place, v) for place, v in enumerate(getattr(made, name)) if asked.pop(id(v), None) is v
                ]
                found += [(depth, name, own)] if own else []
        for variable in asked.values():
            raise not_tied(variable)
        for depth, name, own in found:
            self.revealed += [variable for _, variable in own]
            self._tie(
                self._up_to(depth, name, [place for place, _ in own]), [variable for _, variable in own]
            )

    def _up_to(self, depth: int, name: str, places: list[int]) -> nn.Module:
        """The network up to one layer, or to the sums of it, and of these the numbers at some places."""
        layers = [*self._layers[1 : depth + 1]]
        if name == "zhat":
            layers[-1] = copy(layers[-1])
            layers[-1].activation = "linear"
        size = int(np.prod(self._layers[depth].output_size))
        chosen = as_linear(np.eye(size)[places], np.zeros(len(places)))
        if self._nodes:
            return nn.Sequential(GraphNetwork(layers, self._nodes), chosen)
        return nn.Sequential(*(module for layer in layers for module in layer.modules()), chosen)

    def fill(self) -> None:
        """The values of all layers for the block's inputs, and for its graph."""
        block, written = self._written()
        if not written:
            return  # expressions, which have their values
        x = np.array([block.scaled_inputs[k].value for k in block.inputs_set], dtype=np.float64)
        nodes = range(self._nodes)
        edges = np.array([[block.A[u, v].value for v in nodes] for u in nodes], dtype=np.float64)
        found = values_of(self._layers, x, edges)
        _set(written[0].z, x)
        for place, made in enumerate(written[1:]):
            before, values = written[place], found[place + 1]
            _set(made.zhat, values.zhat)
            _set(made.z, values.z)
            _fill_binaries(made, values.zhat, found[place].z)
            if values.joined is not None:
                keys = before.layer.output_indexes
                _set([before.block.zbar[(*key, v)] for key in keys for v in nodes], values.joined.ravel())


def _fill_binaries(made: WrittenLayer, zhat: FloatArray, before: FloatArray) -> None:
    if isinstance(made.layer, PoolingLayer2D):
        for k, own in enumerate(pooled(made.layer)):
            best = max(own, key=lambda i: before[i])
            _set([made.block.q_maxpool[k, i] for i in own], [i == best for i in own])
    if made.layer.activation == "relu":
        _set([made.block.q_relu[k] for k in made.layer.output_indexes], zhat > 0.0)


def _set(variables: list[Any], values: Any) -> None:
    for variable, value in zip(variables, values, strict=True):
        if not variable.fixed:
            variable.set_value(float(value), skip_validation=True)
