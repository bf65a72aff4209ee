"""Small ReLU networks written into the MIP after all: the one way to a proof where tables do not reach.

    v = max(0, W u + b) with pre-activation between l < 0 < u:
    v >= W u + b,   v <= W u + b - l (1 - a),   v <= u a,   v >= 0,   a binary

Bounds of neurons are those of the structure (`structure/relu_layers.py`): neurons that cannot change sign
need no binary, and a tighter range is a smaller M.

The rows are written twice over. For *points* they say what the layers say, and class outputs keep a margin.
For a *bound* they hold at every point that the deployed network can give: outputs may differ from the layers
by what its arithmetic rounds at most (`Program.errors`), and a class by what ties and rounding allow
(`core/class_rounding.py`), so that nothing feasible is cut off. Only a network that is known
operation by operation has such rows; of any other this leg proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.problem import Problem
from dovetail.reformulations.reformulated import Fill, Reformulated
from dovetail.reformulations.relu_rows import SampleRows
from dovetail.reformulations.writer import Writer
from dovetail.structure.boxes import limits_within
from dovetail.structure.relu_layers import Piece, ReluLayers, relu_layers

SMALL = 1e-12
"""Outputs that may be off by so little stay equations, which engines like better: such an error moves no row
by anything near the 1e-6 that rows may be missed by. What it does to the objective is taken off the bound."""
VISIBLE = 1e-7
"""From here on a point of the rows for a bound may miss the rows of the problem: points need rows of their
own. A tenth of the tolerance of 1e-6."""


@dataclass(frozen=True, eq=False)
class ReluBigM:
    """Every network of a problem written out, if all of them can be."""

    layers: ReluLayers | None = None
    """Where they are known."""

    name = "ReLU networks as rows"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The whole problem as a MIP without blocks: one where it serves points and bounds alike; else one
        for each."""
        if not given.problem.blocks:
            return None
        layers = self.layers or relu_layers(given.problem, given.box)
        if layers is None:
            return None
        apart = _apart(layers, given.problem) or given.relaxed is not None
        if layers.proves and not apart:
            return written_out(layers, given)
        bounds = written_out(layers, given) if layers.proves else None
        return replace(written_out(layers, given, margin=True), relaxed=bounds, proves=layers.proves)


def _apart(layers: ReluLayers, problem: Problem) -> bool:
    """Whether points need rows of their own: what those for a bound let through may miss a row."""
    read = read_elsewhere(problem)
    return any(
        piece.block.classifies or np.any((piece.slack > VISIBLE) & read[piece.block.outputs[piece.samples]])
        for piece in layers.pieces
    )


def written_out(layers: ReluLayers, given: Reformulated, *, margin: bool = False) -> Reformulated:
    """The whole problem as one MIP: with margins for points, without for a bound (see above)."""
    return rows_of_samples(layers, given, margin=margin)[0]


def rows_of_samples(
    layers: ReluLayers, given: Reformulated, *, margin: bool = False
) -> tuple[Reformulated, tuple[SampleRows, ...]]:
    """That MIP, and the rows of each sample in it: piece by piece."""
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
    fills: tuple[Fill, ...] = tuple(rows.fill for rows in written)
    return Reformulated(problem.derived(writer.extend(host), ()), given, fills), tuple(written)


def _write(piece: Piece, writer: Writer, k: int, *, margin: bool) -> tuple[SampleRows, FloatArray]:
    """The rows of the k-th sample, and what they leave unsaid of each output's rounding."""
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
    """Columns that something else than the objective reads: a bound, a row, a network, integrality."""
    mip = problem.mip
    read = np.isfinite(mip.lower) | np.isfinite(mip.upper) | mip.integer
    read[mip.A.indices] = True
    read[problem.inputs] = True
    return np.asarray(read)
