"""One sample's way through dense layers and ReLUs, as columns and rows of a MIP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.networks.layers import Dense, Layer
from dovetail.reformulations.writer import Writer

Range = tuple[FloatArray, FloatArray]
"""Least and largest values of a layer."""


@dataclass(frozen=True, eq=False)
class NeuronRows:
    """What a ReLU layer reads: weight z[columns] + bias."""

    place: int
    """Of the layer before it, inputs counted first."""
    columns: IntArray
    weight: FloatArray
    bias: FloatArray
    unstable: IntArray
    """Those that may change sign."""


class SampleRows:
    """One sample on its way through the layers: columns that hold values, and a linear map of them."""

    def __init__(self, writer: Writer, inputs: IntArray, ranges: Sequence[Range]) -> None:
        self._writer = writer
        self._inputs = inputs
        self._columns: IntArray = inputs
        self._weight, self._bias = np.eye(inputs.size), np.zeros(inputs.size)
        self._ranges = ranges
        """Of the inputs, then of what each layer gives."""
        self._place = 0
        self.neurons: list[NeuronRows] = []
        """One entry per ReLU layer."""

    def apply(self, layer: Layer) -> None:
        """A dense layer changes the map, a ReLU writes columns."""
        low, high = self._ranges[self._place]
        self._place += 1
        if isinstance(layer, Dense):
            self._weight, self._bias = layer.weight @ self._weight, layer.weight @ self._bias + layer.bias
            return
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
        self.neurons.append(NeuronRows(self._place - 1, before, self._weight, self._bias, open_ones))
        self._columns = v
        self._weight, self._bias = np.eye(low.size), np.zeros(low.size)

    def output(self, outputs: IntArray, slack: FloatArray) -> None:
        """y = what the map says, up to a slack."""
        for k, y in enumerate(outputs):
            self._writer.row(
                np.append(self._columns, y),
                np.append(-self._weight[k], 1.0),
                self._bias[k] - slack[k],
                self._bias[k] + slack[k],
            )

    def classify(self, outputs: IntArray, margin: FloatArray | float) -> None:
        """Classes as closed conditions on the logits, which must be clear by a margin; or, where it is
        negative, may miss by that much (one number, or as `class_slack` has them)."""
        low, high = self._ranges[self._place]
        if outputs.size == 1:
            ahead, behind = np.broadcast_to(margin, 2)
            ahead, behind = max(ahead, min(low[0], 0.0)), max(behind, min(-high[0], 0.0))  # no more can miss
            least, most = min(low[0] - max(ahead, 0.0), 0.0), max(high[0] + max(behind, 0.0), 0.0)
            columns = np.append(self._columns, outputs[0])
            # least (1 - y) <= logit - ahead y,  logit + behind (1 - y) <= most y
            self._writer.row(
                columns, np.append(self._weight[0], least - ahead), least - self._bias[0], np.inf
            )
            self._writer.row(
                columns, np.append(self._weight[0], -most - behind), -np.inf, -self._bias[0] - behind
            )
            return
        margins = np.broadcast_to(margin, (outputs.size, outputs.size))
        self._writer.row(outputs, np.ones(outputs.size), 1.0, 1.0)
        for k, y in enumerate(outputs):
            for j in range(outputs.size):
                if j != k:
                    least = min(low[k] - high[j], 0.0)
                    ahead = max(margins[k, j], least)
                    # logit_k - logit_j >= least (1 - y) + ahead y
                    self._writer.row(
                        np.append(self._columns, y),
                        np.append(self._weight[k] - self._weight[j], least - ahead),
                        least - self._bias[k] + self._bias[j],
                        np.inf,
                    )

    def fill(self, x: FloatArray) -> FloatArray:
        """The neurons and switches of a point, in the order they were written."""
        values, parts = x[self._inputs], [np.empty(0)]
        for layer in self.neurons:
            before = layer.weight @ values + layer.bias
            values = np.maximum(before, 0.0)
            parts += [values, (before[layer.unstable] > 0).astype(np.float64)]
        return np.concatenate(parts)
