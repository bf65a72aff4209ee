"""Makes the model of branch and bound from a problem with networks and tree ensembles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from dovetail.bounds.box import Box, common
from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.branching.host import Link, class_links, host_rows
from dovetail.branching.input_sets import InputSets, input_sets
from dovetail.branching.model import Model
from dovetail.branching.networks import NetworkSamples
from dovetail.branching.root import NothingLeft, Root
from dovetail.branching.tree_ensembles import NO_TREES, TreeSamples
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.errors import UnsupportedError
from dovetail.core.problem import Problem
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.networks.graph import Affine, Elementwise, Graph
from dovetail.networks.layers import Dense, Layer
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.structure.boxes import Reached
from dovetail.structure.networks import required_graph
from dovetail.structure.relu_layers import ReluLayers, relu_layers
from dovetail.structure.structure import structure_of
from dovetail.structure.trees import input_cells, tree_samples


def model(context: SolveContext) -> Model | str:
    """The model of a solve's problem, or the reason why there is none; made once (see
    `SolveContext.once`)."""
    structure = context.once(structure_of)
    found = structure.reached
    if found is None and structure.ensembles is not None:  # the LP of a box has the host alone
        found = Reached(structure.loose_rows, structure.loose_rows_box)
    found = found or Reached(structure.loose, structure.loose_box)
    if found.why_empty:
        return found.why_empty
    try:
        lower, upper = found.box.lower, found.box.upper
        if structure.tree_blocks:  # points are clipped to bounds, so a cut there has no effect
            clipped = structure.loose_rows.mip
            lower, upper = np.maximum(lower, clipped.lower), np.minimum(upper, clipped.upper)
        return model_of(found.problem, lower, upper, structure.tree_blocks, structure.proved)
    except UnsupportedError as reason:
        return str(reason)


def model_of(
    problem: Problem,
    lower: FloatArray,
    upper: FloatArray,
    ensembles: Mapping[str, TreeEnsemble] | None = None,
    written: Problem | None = None,
) -> Model:
    """The model of a minimised problem relaxed as in the check, within a box; its tree blocks by name, and
    the problem as it is written. Networks whose operations are not known are left out: their outputs take any
    value, which relaxes the problem."""
    mip = problem.mip
    builder = _Builder(mip.n_columns, list(lower), list(upper))
    builder.written = written
    ensembles, unknown = ensembles or {}, list[UnsupportedError]()
    for block in problem.blocks:
        if block.name in ensembles:
            if block.classifies:
                builder.classes = np.append(builder.classes, block.outputs.ravel())
            continue
        try:
            graph = required_graph(problem, block)
        except UnsupportedError as reason:
            unknown.append(reason)
            continue
        builder.add(block, graph)
    if len(unknown) == len(problem.blocks) > 0:
        raise unknown[0]
    logits = builder.columns - mip.n_columns
    networks = builder.networks()
    touched = np.concatenate([*(np.append(one.inputs, one.outputs) for one in networks), np.empty(0, int)])
    host = host_rows(mip, logits, builder.links, touched)
    host.integer[builder.classes] = True
    low, high = np.array(builder.lower), np.array(builder.upper)
    for ends in (low, high):
        ends[builder.classes] = np.clip(ends[builder.classes], 0.0, 1.0)
    trees = _trees(problem, ensembles, low, high, host.integer) if ensembles else NO_TREES
    return Model(host, networks, low, high, mip.n_columns, trees)


def _trees(
    problem: Problem,
    ensembles: Mapping[str, TreeEnsemble],
    lower: FloatArray,
    upper: FloatArray,
    integer: BoolArray,
) -> TreeSamples:
    """The blocks that are ensembles, by name."""
    blocks = [block for block in problem.blocks if block.name in ensembles]
    columns = np.unique(np.concatenate([block.inputs.ravel() for block in blocks]))
    if not np.all(np.isfinite(upper[columns] - lower[columns])):
        raise UnsupportedError("an input of a tree ensemble has no bound")
    cells = input_cells(blocks, ensembles, columns, lower, upper, integer)
    return TreeSamples(cells, tree_samples(blocks, ensembles, cells))


@dataclass(eq=False)
class _Builder:
    columns: int
    lower: list[float]
    upper: list[float]

    def __post_init__(self) -> None:
        self.links: list[Link] = []
        self.classes = np.empty(0, dtype=np.int64)
        self._parts: list[tuple[NetworkPlanes, IntArray, IntArray, FloatArray, InputSets | None]] = []
        self.written: Problem | None = None

    def add(self, block: Block, graph: Graph) -> None:
        """Add a block; logits of classes become columns."""
        low, high = np.array(self.lower)[block.inputs], np.array(self.upper)[block.inputs]
        if not np.all(np.isfinite(high - low)):
            raise UnsupportedError(f"an input of {block.name} has no bound")
        slack = block_slack(block, low, high)
        if not np.all(np.isfinite(slack)):
            raise UnsupportedError(f"the rounding of {block.name} has no bound")
        planes, outputs = NetworkPlanes(graph), block.outputs
        if block.classifies:
            outputs, slack = self._logits(block, planes, slack, low, high), np.zeros(block.outputs.shape)
        sets = None
        if self.written is not None:
            sets = input_sets(self.written, block, np.array(self.lower), np.array(self.upper))
        self._parts.append((planes, block.inputs, outputs, slack, sets))

    def _logits(
        self, block: Block, planes: NetworkPlanes, slack: FloatArray, low: FloatArray, high: FloatArray
    ) -> IntArray:
        ranges = planes.output_ranges(Boxes(torch.from_numpy(low), torch.from_numpy(high)))
        least, most = ranges.lower[-1].numpy(), ranges.upper[-1].numpy()
        columns = self.fresh(least, most)
        for sample in range(block.samples):
            self.links += class_links(
                block.outputs[sample], columns[sample], slack[sample], least[sample], most[sample]
            )
        self.classes = np.append(self.classes, block.outputs.ravel())
        return columns

    def fresh(self, least: FloatArray, most: FloatArray) -> IntArray:
        """Add columns between these bounds."""
        made = np.arange(self.columns, self.columns + least.size).reshape(least.shape)
        self.columns += least.size
        self.lower += least.ravel().tolist()
        self.upper += most.ravel().tolist()
        return made

    def networks(self) -> tuple[NetworkSamples, ...]:
        """The networks, with a column for every number that a nonlinear step reads."""
        made = []
        for planes, inputs, outputs, slack, sets in self._parts:
            inner = {}
            for place in _bent(planes.graph):
                nothing = np.full((len(inputs), planes.graph.sizes[place]), np.inf)
                inner[place] = self.fresh(-nothing, nothing)
            made.append(NetworkSamples(planes, inputs, outputs, slack, inner, sets))
        return tuple(made)


def _bent(graph: Graph) -> Sequence[int]:
    """Places of the vectors that nonlinear steps read, without the inputs."""
    read = {s for step in graph.steps if not isinstance(step.operation, Affine) for s in step.sources}
    return sorted(read - {0})


ROOM = 1e-5
"""Ranges are widened by this, times max(1, |bound|): with very narrow ranges engines lose optima (scipy's
HiGHS, in 2 of 200 random programs at 1e-7)."""


def tightened(
    problem: Problem, layers: ReluLayers, box: Box, cutoff: float, context: SolveContext, budget: Budget
) -> ReluLayers:
    """Networks to be written out, in a box and with ranges for points that cost `cutoff` or less. Rows are
    relaxed as in the check, so that the best point itself stays inside. Raises `NothingLeft` if there is
    provably no such point."""
    try:
        loose = problem.derived(problem.mip.minimised().loosened(), problem.blocks)
        made = model_of(loose, box.lower, box.upper)
    except UnsupportedError:
        return layers
    with torch.inference_mode(False), torch.no_grad():
        root = Root(made, seed=context.seed, threads=context.threads)
        root.shrink(cutoff, budget)
    if root.bound >= cutoff:
        raise NothingLeft
    low, high = (
        end + sign * ROOM * np.maximum(1.0, np.abs(end))
        for sign, end in ((-1.0, root.lower), (1.0, root.upper))
    )
    n, networks = (
        problem.mip.n_columns,
        dict(zip((block.name for block in problem.blocks), made.networks, strict=True)),
    )
    pieces = []
    for piece in layers.pieces:
        one, ranges = networks[piece.block.name], list(piece.ranges)
        for place, columns in one.inner.items() if _alike(one.graph, piece.layers) else ():
            own = columns[piece.samples]
            ranges[place] = common(*ranges[place], low[own], high[own])[:2]
        pieces.append(replace(piece, ranges=tuple(ranges)))
    inside = Box(np.maximum(box.lower, low[:n]), np.minimum(box.upper, high[:n]))
    known = relu_layers(problem, inside, replace(layers, pieces=tuple(pieces)))
    return replace(known or layers, box=inside)


def _alike(graph: Graph, layers: Sequence[Layer]) -> bool:
    """Whether each step of a graph is a layer; the last one may decide classes, and no neuron reads it."""
    if len(graph.steps) != len(layers):
        return False
    for place, (step, layer) in enumerate(zip(graph.steps, layers, strict=True)):
        own, inner = step.operation, place < len(layers) - 1
        if isinstance(layer, Dense):
            same = isinstance(own, Affine) and not (
                inner and (np.any(own.weights[0] != layer.weight) or np.any(own.bias != layer.bias))
            )
        else:
            same = isinstance(own, Elementwise) and own.kind == layer.kind
        if not same or step.sources != (place,):
            return False
    return True
