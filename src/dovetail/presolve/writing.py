"""Small ReLU networks written into the MIP after all: the one way to a proof where tables do not reach.

    v = max(0, W u + b) with pre-activation between l < 0 < u:
    v >= W u + b,   v <= W u + b - l (1 - a),   v <= u a,   v >= 0,   a binary

Bounds of neurons are passed on from the inputs' boxes; neurons that cannot change sign need no binary. A
class output is tied to its logits without any margin, so that nothing feasible is cut off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.box import Box
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.errors import UnsupportedError
from dovetail.core.layers import Activation, Dense, Layer, Layered, thresholded
from dovetail.core.probe import computes
from dovetail.core.problem import Problem
from dovetail.presolve.extended import Extended, Fill, Writer
from dovetail.presolve.host import class_limits, limits_within

LARGEST = 1e6
"""Neurons with bounds beyond this make rows that engines get wrong."""


def dense_layers(problem: Problem, block: Block) -> tuple[Layer, ...] | None:
    """A block's layers if all of them can be written exactly: dense, ReLU, a class at the end."""
    if not isinstance(block.predictor, Layered):
        return None
    try:
        layers = block.predictor.layers()
    except UnsupportedError:
        return None
    if not computes(problem.mip, block, layers):
        return None
    if block.classifies:
        width = block.inputs.shape[1]
        layers = layers or (Dense(np.eye(width), np.zeros(width)),)  # an empty network hands its inputs on
        layers = thresholded(layers, block.outputs.shape[1], block.threshold, 0.0)
    if any(isinstance(layer, Activation) and layer.kind != "relu" for layer in layers):
        return None
    return layers


@dataclass(frozen=True, eq=False)
class _Piece:
    """Samples of one block, with their layers and the bounds their inputs have when their turn comes."""

    block: Block
    samples: IntArray
    layers: tuple[Layer, ...]
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class Writable:
    """A problem whose networks can all be written, before any is."""

    problem: Problem
    pieces: tuple[_Piece, ...]
    unstable: int
    """Neurons that may change sign over the box: binaries that writing takes."""

    def program(self, *, margin: bool = False) -> Extended:
        """The whole problem as one MIP.

        Without a margin a point may sit on a class boundary, where the network itself may say otherwise:
        good for a bound. With each block's margin points keep clear of it: good for points, no bound.
        """
        problem = self.problem
        writer = Writer(problem.mip.columns)
        fills: list[Fill] = []
        for piece in self.pieces:
            block = piece.block
            for i, lower, upper in zip(piece.samples, piece.lower, piece.upper, strict=True):
                sample = _Sample(writer, block.inputs[i], lower, upper)
                for layer in piece.layers:
                    sample.apply(layer)
                if block.classifies:
                    sample.classify(block.outputs[i], block.epsilon if margin else 0.0)
                else:
                    sample.output(block.outputs[i])
                fills.append(sample.fill)
        low, high, integer = class_limits(problem, problem.mip.lower, problem.mip.upper)
        mip = writer.extend(replace(problem.mip, lower=low, upper=high, integer=integer))
        return Extended(problem.derived(mip, ()), problem, tuple(fills))


def writable(problem: Problem, box: Box) -> Writable | None:
    """How the problem's networks would be written, or None where some block cannot be."""
    reach = Box(*limits_within(problem, box.lower, box.upper)[:2])
    networks = {block.name: dense_layers(problem, block) for block in problem.blocks}
    pieces, unstable = [], 0
    for stage in problem.stages:
        for block, samples in stage:
            layers = networks[block.name]
            lower, upper = reach.lower[block.inputs[samples]], reach.upper[block.inputs[samples]]
            if layers is None or not np.all(np.isfinite(upper - lower)):
                return None
            pieces.append(_Piece(block, samples, layers, lower, upper))
            for layer in layers:
                if isinstance(layer, Activation):
                    unstable += int(np.count_nonzero((lower < 0) & (upper > 0)))
                lower, upper = layer.range(lower, upper)
                if max(np.max(np.abs(upper), initial=0.0), np.max(np.abs(lower), initial=0.0)) > LARGEST:
                    return None
            if not block.classifies:  # what is known of outputs, for the networks that read them
                outputs = block.outputs[samples]
                reach.lower[outputs] = np.maximum(reach.lower[outputs], lower)
                reach.upper[outputs] = np.minimum(reach.upper[outputs], upper)
    return Writable(problem, tuple(pieces), unstable)


class _Sample:
    """One sample on its way through the layers: columns that hold values, and a linear map of them."""

    def __init__(self, writer: Writer, inputs: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        self._writer = writer
        self._inputs = inputs
        self._columns: IntArray = inputs
        self._weight, self._bias = np.eye(inputs.size), np.zeros(inputs.size)
        self._lower, self._upper = lower, upper
        self._steps: list[tuple[FloatArray, FloatArray, IntArray]] = []

    def apply(self, layer: Layer) -> None:
        """Pass on bounds; a dense layer changes the map, a ReLU writes columns."""
        if isinstance(layer, Dense):
            self._weight, self._bias = layer.weight @ self._weight, layer.weight @ self._bias + layer.bias
            self._lower, self._upper = layer.range(self._lower[None], self._upper[None])
            self._lower, self._upper = self._lower[0], self._upper[0]
            return
        low, high = self._lower, self._upper
        writer, before = self._writer, self._columns
        v = writer.columns(np.zeros(low.size), np.maximum(high, 0.0))
        open_ones = np.flatnonzero((low < 0) & (high > 0))
        a = writer.columns(np.zeros(open_ones.size), np.ones(open_ones.size), integer=True)
        switch = dict(zip(open_ones.tolist(), a.tolist(), strict=True))
        for k in range(low.size):
            if high[k] <= 0:
                continue
            columns, values = np.append(before, v[k]), np.append(-self._weight[k], 1.0)
            if low[k] >= 0:
                writer.row(columns, values, self._bias[k], self._bias[k])
                continue
            writer.row(columns, values, self._bias[k], np.inf)
            writer.row(
                np.append(columns, switch[k]), np.append(values, -low[k]), -np.inf, self._bias[k] - low[k]
            )
            writer.row([v[k], switch[k]], np.array([1.0, -high[k]]), -np.inf, 0.0)
        self._steps.append((self._weight, self._bias, open_ones))
        self._columns = v
        self._weight, self._bias = np.eye(low.size), np.zeros(low.size)
        self._lower, self._upper = np.maximum(low, 0.0), np.maximum(high, 0.0)

    def output(self, outputs: IntArray) -> None:
        """y = what the map says."""
        for k, y in enumerate(outputs):
            self._writer.row(
                np.append(self._columns, y), np.append(-self._weight[k], 1.0), self._bias[k], self._bias[k]
            )

    def classify(self, outputs: IntArray, margin: float) -> None:
        """Classes as closed conditions on the logits."""
        if outputs.size == 1:
            low, high = min(self._lower[0] - margin, 0.0), max(self._upper[0] + margin, 0.0)
            columns = np.append(self._columns, outputs[0])
            # low (1 - y) <= logit - margin y,  logit + margin (1 - y) <= high y
            self._writer.row(columns, np.append(self._weight[0], low - margin), low - self._bias[0], np.inf)
            self._writer.row(
                columns, np.append(self._weight[0], -high - margin), -np.inf, -self._bias[0] - margin
            )
            return
        self._writer.row(outputs, np.ones(outputs.size), 1.0, 1.0)
        for k, y in enumerate(outputs):
            for j in range(outputs.size):
                if j != k:
                    least = min(self._lower[k] - self._upper[j], 0.0)
                    # logit_k - logit_j >= least (1 - y) + margin y
                    self._writer.row(
                        np.append(self._columns, y),
                        np.append(self._weight[k] - self._weight[j], least - margin),
                        least - self._bias[k] + self._bias[j],
                        np.inf,
                    )

    def fill(self, x: FloatArray) -> FloatArray:
        """The neurons and switches of a point, in the order they were written."""
        values, parts = x[self._inputs], [np.empty(0)]
        for weight, bias, open_ones in self._steps:
            before = weight @ values + bias
            values = np.maximum(before, 0.0)
            parts += [values, (before[open_ones] > 0).astype(np.float64)]
        return np.concatenate(parts)
