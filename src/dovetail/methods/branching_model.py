"""A problem with networks and tree ensembles as branch and bound takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.branching.host import Link, class_links, host_rows
from dovetail.branching.input_sets import InputSets, input_sets
from dovetail.branching.model import Model
from dovetail.branching.networks import NetworkSamples
from dovetail.branching.tree_ensembles import NO_TREES, TreeSamples
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.errors import UnsupportedError
from dovetail.core.problem import Problem
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.networks.graph import Affine, Graph
from dovetail.run.context import SolveContext
from dovetail.structure.boxes import Reached
from dovetail.structure.networks import required_graph
from dovetail.structure.structure import structure_of
from dovetail.structure.trees import input_cells, tree_samples


def model(context: SolveContext) -> Model | str:
    """The problem of a solve, or why there is none; made once (see `SolveContext.once`)."""
    structure = context.once(structure_of)
    found = structure.reached
    if found is None and structure.ensembles is not None:  # the LP of a box has the host alone
        found = Reached(structure.loose_rows, structure.loose_rows_box)
    if found is None:
        return "the problem is too large for an LP at every node"
    if found.why_empty:
        return found.why_empty
    try:
        lower, upper = found.box.lower, found.box.upper
        if structure.tree_blocks:  # points are clipped to bounds: a cut at one is not passed
            clipped = structure.loose_rows.mip
            lower, upper = np.maximum(lower, clipped.lower), np.minimum(upper, clipped.upper)
        made = model_of(found.problem, lower, upper, structure.tree_blocks, structure.proved)
    except UnsupportedError as reason:
        return str(reason)
    entries = made.host.A.nnz + sum(one.samples * one.entries for one in made.networks)
    if entries > MOST_ENTRIES:
        return f"the LP of a box would have {entries:,} entries, more than {MOST_ENTRIES:,}"
    return made


MOST_ENTRIES = 400_000
"""Of the matrix of a box's LP: beyond that one LP takes seconds."""


def model_of(
    problem: Problem,
    lower: FloatArray,
    upper: FloatArray,
    ensembles: Mapping[str, TreeEnsemble] | None = None,
    written: Problem | None = None,
) -> Model:
    """A problem that is minimised and as loose as the check, within a box; its blocks of trees by name, and
    the problem as it is written."""
    mip = problem.mip
    builder = _Builder(mip.n_columns, list(lower), list(upper))
    builder.written = written
    ensembles = ensembles or {}
    for block in problem.blocks:
        if block.name not in ensembles:
            builder.add(block, required_graph(problem, block))
        elif block.classifies:
            builder.classes = np.append(builder.classes, block.outputs.ravel())
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
    """Those of the blocks that are ensembles, by their names."""
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
        """A block; the logits of classes become columns."""
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
        import torch

        from dovetail.bounds.planes.domain import Boxes

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
        """New columns between these bounds."""
        made = np.arange(self.columns, self.columns + least.size).reshape(least.shape)
        self.columns += least.size
        self.lower += least.ravel().tolist()
        self.upper += most.ravel().tolist()
        return made

    def networks(self) -> tuple[NetworkSamples, ...]:
        """With a column for every number that a nonlinear step reads."""
        made = []
        for planes, inputs, outputs, slack, sets in self._parts:
            inner = {}
            for place in _bent(planes.graph):
                nothing = np.full((len(inputs), planes.graph.sizes[place]), np.inf)
                inner[place] = self.fresh(-nothing, nothing)
            made.append(NetworkSamples(planes, inputs, outputs, slack, inner, sets))
        return tuple(made)


def _bent(graph: Graph) -> Sequence[int]:
    """The places of the vectors that nonlinear steps read, but for the inputs."""
    read = {s for step in graph.steps if not isinstance(step.operation, Affine) for s in step.sources}
    return sorted(read - {0})
