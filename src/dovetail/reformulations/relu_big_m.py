"""Small ReLU networks written into the MIP after all: the one way to a proof where tables do not reach.

    v = max(0, W u + b) with pre-activation between l < 0 < u:
    v >= W u + b,   v <= W u + b - l (1 - a),   v <= u a,   v >= 0,   a binary

Bounds of neurons come from planes over the inputs' boxes (`neuron_ranges`), which keep what
intervals forget: that neurons of one layer read the same inputs. Neurons that cannot change sign need no
binary, and a tighter range is a smaller M.

The rows are written twice over. For *points* they say what the layers say, and class outputs keep a margin.
For a *bound* they hold at every point that the deployed network can give: outputs may differ from the layers
by what its arithmetic rounds at most (`Program.errors`), and a class by what ties and rounding allow
(`core/class_rounding.py`), so that nothing feasible is cut off. Only a network that is known
operation by operation has such rows; of any other this leg proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from dovetail.bounds.box import Box, common, narrow
from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.probe import computes
from dovetail.core.problem import Problem
from dovetail.networks.layers import Activation, Dense, Layer, folded, program_of, thresholded
from dovetail.reformulations.reformulated import Fill, Reformulated
from dovetail.reformulations.relu_rows import SampleRows
from dovetail.reformulations.writer import Writer
from dovetail.structure.boxes import limits_within

LARGEST = 1e6
"""Neurons with bounds beyond this make rows that engines get wrong."""
SMALL = 1e-12
"""Outputs that may be off by so little stay equations, which engines like better: such an error moves no row
by anything near the 1e-6 that rows may be missed by. What it does to the objective is taken off the bound."""
VISIBLE = 1e-7
"""From here on a point of the rows for a bound may miss the rows of the problem: points need rows of their
own. A tenth of the tolerance of 1e-6."""


MOST_WORK = 2e9
"""Multiplications, about a second: a network whose planes take more is too large to be written out anyway."""

LayerRanges = tuple[tuple[FloatArray, FloatArray], ...]
"""(n, size) least and largest values: of the inputs, then of what each layer gives."""


def dense_layers(problem: Problem, block: Block) -> tuple[Layer, ...] | None:
    """A block's layers if all of them can be written exactly: dense, ReLU, a class at the end."""
    layers = block.description.layers_if_known()
    if layers is None or not computes(problem.mip, block, layers):
        return None
    if block.classifies:
        layers = thresholded(layers, block.outputs.shape[1], block.threshold, 0.0)
    if any(isinstance(layer, Activation) and layer.kind != "relu" for layer in layers):
        return None
    return folded(layers)


@dataclass(frozen=True, eq=False)
class Piece:
    """Samples of one block, with their layers and the ranges of these when their turn comes."""

    block: Block
    samples: IntArray
    layers: tuple[Layer, ...]
    ranges: LayerRanges
    slack: FloatArray
    """How far each sample may be from its layers: per output, or as `class_slack` says."""

    def write(self, writer: Writer, k: int, *, margin: bool) -> tuple[SampleRows, FloatArray]:
        """The rows of the k-th sample, and what they leave unsaid of each output's rounding."""
        block, i, slack = self.block, self.samples[k], self.slack[k]
        rows = SampleRows(writer, block.inputs[i], [(low[k], high[k]) for low, high in self.ranges])
        for layer in self.layers:
            rows.apply(layer)
        if block.classifies:
            rows.classify(block.outputs[i], block.epsilon if margin else -slack)
            return rows, np.zeros(block.outputs.shape[1])
        said = np.where(margin | (slack <= SMALL), 0.0, slack)
        rows.output(block.outputs[i], said)
        return rows, np.where(said == 0.0, slack, 0.0)


@dataclass(frozen=True, eq=False)
class ReluPlan:
    """How all networks of a problem would be written, before any is."""

    pieces: tuple[Piece, ...]
    unstable: int
    """Neurons that may change sign over the box: binaries that writing takes."""
    box: Box | None = None
    """What columns are held to; None: to the bounds of the problem."""

    @property
    def proves(self) -> bool:
        """Whether there is anything to say about every output that a network gives."""
        return all(piece.block.classifies or np.all(np.isfinite(piece.slack)) for piece in self.pieces)

    def written(self, given: Reformulated) -> Reformulated:
        """One program where it serves points and bounds alike; else one for each."""
        apart = self._apart(given.problem) or given.relaxed is not None
        if self.proves and not apart:
            return self.program(given)
        bounds = self.program(given) if self.proves else None
        return replace(self.program(given, margin=True), relaxed=bounds, proves=self.proves)

    def _apart(self, problem: Problem) -> bool:
        """Whether points need rows of their own: what those for a bound let through may miss a row."""
        read = read_elsewhere(problem)
        return any(
            piece.block.classifies
            or np.any((piece.slack > VISIBLE) & read[piece.block.outputs[piece.samples]])
            for piece in self.pieces
        )

    def program(self, given: Reformulated, *, margin: bool = False) -> Reformulated:
        """The whole problem as one MIP: with margins for points, without for a bound (see above)."""
        return self.written_rows(given, margin=margin)[0]

    def written_rows(
        self, given: Reformulated, *, margin: bool = False
    ) -> tuple[Reformulated, tuple[SampleRows, ...]]:
        """That MIP, and the rows of each sample in it: piece by piece."""
        problem = given.problem
        writer = Writer(problem.mip.n_columns)
        written: list[SampleRows] = []
        below = 0.0
        for piece in self.pieces:
            for k in range(piece.samples.size):
                rows, unsaid = piece.write(writer, k, margin=margin)
                outputs = piece.block.outputs[piece.samples[k]]
                below += float(np.sum(np.abs(problem.mip.cost[outputs]) * unsaid))
                written.append(rows)
        held = problem.mip if self.box is None else self.box
        low, high, integer = limits_within(problem, held.lower, held.upper)
        offset = problem.mip.offset - (0.0 if margin else problem.mip.sign * below)
        host = replace(problem.mip, lower=low, upper=high, integer=integer, offset=offset)
        fills: tuple[Fill, ...] = tuple(rows.fill for rows in written)
        return Reformulated(problem.derived(writer.extend(host), ()), given, fills), tuple(written)


@dataclass(frozen=True, eq=False)
class ReluBigM:
    """Every network of a problem written out, if all of them can be."""

    plan: ReluPlan | None = None
    """Where it was made before."""

    name = "ReLU networks as rows"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The whole problem as a MIP without blocks."""
        if not given.problem.blocks:
            return None
        plan = self.plan or relu_plan(given.problem, given.box)
        return None if plan is None else plan.written(given)


def read_elsewhere(problem: Problem) -> BoolArray:
    """Columns that something else than the objective reads: a bound, a row, a network, integrality."""
    mip = problem.mip
    read = np.isfinite(mip.lower) | np.isfinite(mip.upper) | mip.integer
    read[mip.A.indices] = True
    read[problem.inputs] = True
    return np.asarray(read)


def _networks(problem: Problem) -> Mapping[str, tuple[Layer, ...] | None]:
    return {block.name: dense_layers(problem, block) for block in problem.blocks}


def relu_plan(problem: Problem, box: Box, known: ReluPlan | None = None) -> ReluPlan | None:
    """How the problem's networks would be written, or None where some block cannot be.

    `known` is a plan made before: no range is looser than its.
    """
    reach = Box(*limits_within(problem, box.lower, box.upper)[:2])
    networks = _networks(problem) if known is None else {p.block.name: p.layers for p in known.pieces}
    pieces: list[Piece] = []
    unstable = 0
    for stage in problem.stages:
        for block, samples in stage:
            layers = networks[block.name]
            lower, upper = reach.lower[block.inputs[samples]], reach.upper[block.inputs[samples]]
            if layers is None or not np.all(np.isfinite(upper - lower)):
                return None
            slack = block_slack(block, lower, upper)
            before = None if known is None else known.pieces[len(pieces)].ranges
            ranges = neuron_ranges(layers, lower, upper, before)
            pieces.append(Piece(block, samples, layers, ranges, slack))
            if not all(np.max(np.abs(side), initial=0.0) <= LARGEST for pair in ranges[1:] for side in pair):
                return None  # too large, or NaN
            for layer, (lower, upper) in zip(layers, ranges, strict=False):
                if isinstance(layer, Activation):
                    unstable += int(np.count_nonzero((lower < 0) & (upper > 0)))
            lower, upper = ranges[-1]
            if not block.classifies:  # what is known of outputs, for the networks that read them
                narrow(reach.lower, reach.upper, block.outputs[samples], lower - slack, upper + slack)
    return ReluPlan(tuple(pieces), unstable)


def neuron_ranges(
    layers: Sequence[Layer], lower: FloatArray, upper: FloatArray, known: LayerRanges | None = None
) -> LayerRanges:
    """For samples with inputs between (n, d) bounds; nothing is looser than `known`, which holds for them."""
    by_planes = (
        _by_planes(layers, lower, upper) if layers and _work(layers, len(lower)) <= MOST_WORK else None
    )
    low, high = (lower, upper) if known is None else common(lower, upper, *known[0])[:2]
    ranges = [(low, high)]
    for place, layer in enumerate(layers, start=1):
        low, high = _passed_on(layer, low, high)
        for other in (by_planes, known):
            if other is not None:
                low, high, _ = common(low, high, *other[place])
        ranges.append((low, high))
    return tuple(ranges)


def _passed_on(layer: Layer, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    program = program_of((layer,), lower.shape[1])
    low, high = program.ranges(lower, upper)
    return low[:, program.outputs], high[:, program.outputs]


def _work(layers: Sequence[Layer], samples: int) -> float:
    """Multiplications: the rows of every layer, both signs, go back through all layers before it."""
    total, before = 0.0, 0.0
    for layer in layers:
        if isinstance(layer, Dense):
            before += layer.weight.size
            total += 2.0 * len(layer.bias) * before
    return samples * total


def _by_planes(layers: Sequence[Layer], lower: FloatArray, upper: FloatArray) -> LayerRanges | None:
    """Of layers that are each a step of the graph."""
    planes = NetworkPlanes(program_of(layers, lower.shape[1]).graph())
    if len(planes.graph.steps) != len(layers):
        return None
    domain = Boxes(torch.from_numpy(np.array(lower)), torch.from_numpy(np.array(upper)))
    ranges = planes.output_ranges(domain)
    return tuple((low.numpy(), high.numpy()) for low, high in zip(ranges.lower, ranges.upper, strict=True))
