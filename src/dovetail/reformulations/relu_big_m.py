"""Small ReLU networks written into the MIP: the only way to a proof if tables are too large.

    v = max(0, W u + b) with pre-activation between l < 0 < u:
    v >= W u + b,   v <= W u + b - l (1 - a),   v <= u a,   v >= 0,   a binary

Bounds of neurons are those of the structure (`structure/relu_layers.py`): neurons that cannot change sign
need no binary, and a tighter range is a smaller M.

The rows are written twice over. For *points* they state what the layers compute, and class outputs keep a
margin. For a *bound* they hold at every point that the deployed network can give: outputs may differ from the
layers by the largest rounding of its arithmetic (`Program.errors`), and a class by ties and rounding
(`core/class_rounding.py`), so that no feasible point is cut off. Only a network that is known operation by
operation has such rows; for any other network this method proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.problem import Problem
from dovetail.networks.layers import Dense, Layer
from dovetail.reformulations.reformulated import FillColumns, Reformulated
from dovetail.reformulations.writer import Writer
from dovetail.structure.boxes import limits_within
from dovetail.structure.relu_layers import Piece, ReluLayers, relu_layers

Range = tuple[FloatArray, FloatArray]
"""Ranges of a layer."""


@dataclass(frozen=True, eq=False)
class NeuronRows:
    """The inputs of a ReLU layer: weight z[columns] + bias."""

    place: int
    """Number of the layer before it, inputs counted first."""
    columns: IntArray
    weight: FloatArray
    bias: FloatArray
    unstable: IntArray
    """Neurons that may change sign."""


class SampleRows:
    """One sample during the writing of its layers: columns that hold values, and a linear map of them."""

    def __init__(self, writer: Writer, inputs: IntArray, ranges: Sequence[Range]) -> None:
        self._writer = writer
        self._inputs = inputs
        self._columns: IntArray = inputs
        self._weight, self._bias = np.eye(inputs.size), np.zeros(inputs.size)
        self._ranges = ranges
        """Ranges of the inputs, then of each layer."""
        self._place = 0
        self.neurons: list[NeuronRows] = []
        """One entry per ReLU layer."""

    def apply(self, layer: Layer) -> None:
        """Apply a layer: a dense one changes the map, a ReLU writes columns."""
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
        """Write y = map, up to a slack."""
        for k, y in enumerate(outputs):
            self._writer.row(
                np.append(self._columns, y),
                np.append(-self._weight[k], 1.0),
                self._bias[k] - slack[k],
                self._bias[k] + slack[k],
            )

    def classify(self, outputs: IntArray, margin: FloatArray | float) -> None:
        """Write classes as conditions on the logits with a margin; a negative margin relaxes them (one
        number, or in the form of `class_slack`)."""
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
        """The values of neurons and binaries at a point, in the order of writing."""
        values, parts = x[self._inputs], [np.empty(0)]
        for layer in self.neurons:
            before = layer.weight @ values + layer.bias
            values = np.maximum(before, 0.0)
            parts += [values, (before[layer.unstable] > 0).astype(np.float64)]
        return np.concatenate(parts)


SMALL = 1e-12
"""Outputs with a smaller error stay equations, which engines prefer: such an error is far below the
tolerance 1e-6 of rows. Its effect on the objective is subtracted from the bound."""
EQUATION_ERROR = 1e-7
"""With a larger error a point of the rows for a bound may violate the rows of the problem, so that points
need rows of their own. A tenth of the tolerance of 1e-6."""


@dataclass(frozen=True, eq=False)
class ReluBigM:
    """Writes out every network of a problem, if all can be."""

    layers: ReluLayers | None = None
    """The layers, if known."""

    name = "ReLU networks as rows"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The whole problem as a MIP without blocks: one for points and bounds, or one for each."""
        if not given.problem.blocks:
            return None
        layers = self.layers or relu_layers(given.problem, given.box)
        if layers is None:
            return None
        apart = _needs_point_rows(layers, given.problem) or given.relaxed is not None
        if layers.proves and not apart:
            return written_out(layers, given)
        bounds = written_out(layers, given) if layers.proves else None
        return replace(written_out(layers, given, margin=True), relaxed=bounds, proves=layers.proves)


def _needs_point_rows(layers: ReluLayers, problem: Problem) -> bool:
    """Whether points need rows of their own, because rows for a bound allow violations."""
    read = read_elsewhere(problem)
    return any(
        piece.block.classifies
        or np.any((piece.slack > EQUATION_ERROR) & read[piece.block.outputs[piece.samples]])
        for piece in layers.pieces
    )


def written_out(layers: ReluLayers, given: Reformulated, *, margin: bool = False) -> Reformulated:
    """The whole problem as one MIP: with margins for points, without for a bound."""
    return rows_of_samples(layers, given, margin=margin)[0]


def rows_of_samples(
    layers: ReluLayers, given: Reformulated, *, margin: bool = False
) -> tuple[Reformulated, tuple[SampleRows, ...]]:
    """That MIP with the rows of each sample, piece by piece."""
    problem = given.problem
    writer = Writer(problem.mip.n_columns)
    written: list[SampleRows] = []
    below = 0.0
    for piece in layers.pieces:
        for k in range(piece.samples.size):
            rows, unsaid = _write(piece, writer, k, margin=margin)
            outputs = piece.block.outputs[piece.samples[k]]
            below += float(np.sum(np.abs(problem.mip.cost[outputs]) * unsaid))
            written.append(rows)
    held = problem.mip if layers.box is None else layers.box
    low, high, integer = limits_within(problem, held.lower, held.upper)
    offset = problem.mip.offset - (0.0 if margin else problem.mip.sign * below)
    host = replace(problem.mip, lower=low, upper=high, integer=integer, offset=offset)
    fills: tuple[FillColumns, ...] = tuple(rows.fill for rows in written)
    return Reformulated(problem.derived(writer.extend(host), ()), given, fills), tuple(written)


def _write(piece: Piece, writer: Writer, k: int, *, margin: bool) -> tuple[SampleRows, FloatArray]:
    """Write the rows of the k-th sample; returns the unmodelled rounding of each output."""
    block, i, slack = piece.block, piece.samples[k], piece.slack[k]
    rows = SampleRows(writer, block.inputs[i], [(low[k], high[k]) for low, high in piece.ranges])
    for layer in piece.layers:
        rows.apply(layer)
    if block.classifies:
        rows.classify(block.outputs[i], block.epsilon if margin else -slack)
        return rows, np.zeros(block.outputs.shape[1])
    said = np.where(margin | (slack <= SMALL), 0.0, slack)
    rows.output(block.outputs[i], said)
    return rows, np.where(said == 0.0, slack, 0.0)


def read_elsewhere(problem: Problem) -> BoolArray:
    """Columns that are used outside the objective: by a bound, a row, a network or integrality."""
    mip = problem.mip
    read = np.isfinite(mip.lower) | np.isfinite(mip.upper) | mip.integer
    read[mip.A.indices] = True
    read[problem.inputs] = True
    return np.asarray(read)
