"""Small ReLU networks written into the MIP after all: the one way to a proof where tables do not reach.

    v = max(0, W u + b) with pre-activation between l < 0 < u:
    v >= W u + b,   v <= W u + b - l (1 - a),   v <= u a,   v >= 0,   a binary

Bounds of neurons are passed on from the inputs' boxes; neurons that cannot change sign need no binary.

The rows are written twice over. For *points* they say what the layers say, and class outputs keep a margin.
For a *bound* they hold at every point that the deployed network can give: outputs may differ from the layers
by what its arithmetic rounds at most (`core/rounding.py`), and a class by what ties and rounding allow
(`core/class_rounding.py`), so that nothing feasible is cut off. Only a network that is known
operation by operation has such rows; of any other this leg proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.analysis.host import class_limits, limits_within
from dovetail.bounds.box import Box
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack, handed_on
from dovetail.core.layers import Activation, Dense, Layer, thresholded
from dovetail.core.probe import computes
from dovetail.core.problem import Problem
from dovetail.reformulations.reformulated import Fill, Reformulated, Writer

LARGEST = 1e6
"""Neurons with bounds beyond this make rows that engines get wrong."""
SMALL = 1e-12
"""Outputs that may be off by so little stay equations, which engines like better: such an error moves no row
by anything near the 1e-6 that rows may be missed by. What it does to the objective is taken off the bound."""
VISIBLE = 1e-7
"""From here on a point of the rows for a bound may miss the rows of the problem: points need rows of their
own. A tenth of the tolerance of 1e-6."""


def dense_layers(problem: Problem, block: Block) -> tuple[Layer, ...] | None:
    """A block's layers if all of them can be written exactly: dense, ReLU, a class at the end."""
    layers = block.description.layers_if_known()
    if layers is None or not computes(problem.mip, block, layers):
        return None
    if block.classifies:
        layers = layers or handed_on(block.inputs.shape[1])
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
    slack: FloatArray
    """How far each sample may be from its layers: per output, or as `class_slack` says."""


@dataclass(frozen=True, eq=False)
class ReluBigM:
    """A problem whose networks can all be written, before any is."""

    problem: Problem
    pieces: tuple[_Piece, ...]
    unstable: int
    """Neurons that may change sign over the box: binaries that writing takes."""

    @property
    def proves(self) -> bool:
        """Whether there is anything to say about every output that a network gives."""
        return all(piece.block.classifies or np.all(np.isfinite(piece.slack)) for piece in self.pieces)

    @property
    def apart(self) -> bool:
        """Whether points need rows of their own: what those for a bound let through may miss a row."""
        read = read_elsewhere(self.problem)
        return any(
            piece.block.classifies
            or np.any((piece.slack > VISIBLE) & read[piece.block.outputs[piece.samples]])
            for piece in self.pieces
        )

    def program(self, *, margin: bool = False) -> Reformulated:
        """The whole problem as one MIP: with margins for points, without for a bound (see above)."""
        problem = self.problem
        writer = Writer(problem.mip.n_columns)
        fills: list[Fill] = []
        below = 0.0
        for piece in self.pieces:
            block = piece.block
            for k, i in enumerate(piece.samples):
                sample = _Sample(writer, block.inputs[i], piece.lower[k], piece.upper[k])
                for layer in piece.layers:
                    sample.apply(layer)
                if block.classifies:
                    sample.classify(block.outputs[i], block.epsilon if margin else -piece.slack[k])
                else:
                    slack = np.where(margin | (piece.slack[k] <= SMALL), 0.0, piece.slack[k])
                    sample.output(block.outputs[i], slack)
                    unsaid = np.where(slack == 0.0, piece.slack[k], 0.0)
                    below += float(np.sum(np.abs(problem.mip.cost[block.outputs[i]]) * unsaid))
                fills.append(sample.fill)
        low, high, integer = class_limits(problem, problem.mip.lower, problem.mip.upper)
        offset = problem.mip.offset - (0.0 if margin else problem.mip.sign * below)
        host = replace(problem.mip, lower=low, upper=high, integer=integer, offset=offset)
        return Reformulated(problem.derived(writer.extend(host), ()), problem, tuple(fills))


def read_elsewhere(problem: Problem) -> BoolArray:
    """Columns that something else than the objective reads: a bound, a row, a network, integrality."""
    mip = problem.mip
    read = np.isfinite(mip.lower) | np.isfinite(mip.upper) | mip.integer
    read[mip.A.indices] = True
    read[problem.inputs] = True
    return np.asarray(read)


def relu_big_m(problem: Problem, box: Box) -> ReluBigM | None:
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
            slack = block_slack(block, lower, upper)
            pieces.append(_Piece(block, samples, layers, lower, upper, slack))
            for layer in layers:
                if isinstance(layer, Activation):
                    unstable += int(np.count_nonzero((lower < 0) & (upper > 0)))
                lower, upper = layer.range(lower, upper)
                if max(np.max(np.abs(upper), initial=0.0), np.max(np.abs(lower), initial=0.0)) > LARGEST:
                    return None
            if not block.classifies:  # what is known of outputs, for the networks that read them
                outputs = block.outputs[samples]
                reach.lower[outputs] = np.maximum(reach.lower[outputs], lower - slack)
                reach.upper[outputs] = np.minimum(reach.upper[outputs], upper + slack)
    return ReluBigM(problem, tuple(pieces), unstable)


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
        low, high = self._lower, self._upper
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
        for weight, bias, open_ones in self._steps:
            before = weight @ values + bias
            values = np.maximum(before, 0.0)
            parts += [values, (before[open_ones] > 0).astype(np.float64)]
        return np.concatenate(parts)
