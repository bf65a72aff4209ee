"""What a bound has to know of networks: of one block as a graph, and of all of them as one.

In the one graph samples are put side by side; where one reads what another gives, they are put one after the
other. What a network hands on is what the deployed one says, which may be off its graph by a little: that
little is an input of its own, a *slack column* between -slack and slack, beside the columns of the host.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack, logit
from dovetail.core.errors import UnsupportedError
from dovetail.core.probe import PROBES, agrees
from dovetail.core.problem import Problem
from dovetail.networks.graph import Affine, Graph, GraphStep

POINTS = 64
"""At so many points of its box the predictor is asked whether a traced program says the same; fewer are asked
of layers, whose types are exact."""


def block_graph(problem: Problem, block: Block) -> Graph | None:
    """The graph of a block's values; of a class, of the logits that decide it, with the threshold at 0.

    None where the network is not known operation by operation.
    """
    try:
        return required_graph(problem, block)
    except UnsupportedError:
        return None


def required_graph(problem: Problem, block: Block) -> Graph:
    """The same, or an `UnsupportedError` that says which operation is missing."""
    if block.description.program is None:
        raise UnsupportedError(f"{block.name}: {block.description.name} does not say what it computes")
    program = block.description.program(block.inputs.shape[1])
    points = PROBES if program.provenance == "layers" else POINTS
    with np.errstate(all="ignore"):
        if not agrees(problem.mip, block, program.values, points):
            said = "its layers say" if program.provenance == "layers" else "was recorded of it"
            raise UnsupportedError(f"{block.name}: the predictor does not compute what {said}")
    shift = 0.0
    if block.classifies:
        program, kind = program.without_last(block.threshold)
        if block.outputs.shape[1] == 1:
            shift = -logit(block.threshold) if kind else -block.threshold
    return program.graph(shift)


@dataclass(frozen=True, eq=False)
class DecidedColumns:
    """Columns that are decided by some outputs of the graph, and how far the deployed network may be off."""

    columns: IntArray
    outputs: IntArray
    """Of the graph, one per column: values, or logits whose threshold is 0."""
    classifies: bool
    slack: FloatArray
    """As `block_slack` has it for one sample."""


@dataclass(frozen=True, eq=False)
class JointNetwork:
    """One graph over columns of the host, and of slack columns that follow them."""

    graph: Graph
    inputs: IntArray
    """The columns it reads, in its order; from the host's number of columns on they are slack columns."""
    slack: FloatArray
    """What each slack column may be at most, and its negative at least."""
    groups: tuple[DecidedColumns, ...]


def joint_network(problem: Problem, lower: FloatArray, upper: FloatArray) -> JointNetwork:
    """The networks over columns between these bounds, which bound what is handed on as well (`reached_box`);
    `UnsupportedError` says what is in the way."""
    return _Builder(problem, lower, upper).build()


@dataclass(eq=False)
class _Builder:
    problem: Problem
    lower: FloatArray
    upper: FloatArray
    steps: list[GraphStep] = field(default_factory=list)
    groups: list[DecidedColumns] = field(default_factory=list)
    given: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Values that are handed on, by column: the vector they are in, and where."""
    ends: list[int] = field(default_factory=list)
    """The vector that each group reads."""

    def __post_init__(self) -> None:
        values = [block.outputs.ravel() for block in self.problem.blocks if not block.classifies]
        written = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *values]))
        read = self.problem.inputs
        self.handed_on = np.intersect1d(read, written)
        first = self.problem.mip.n_columns
        slack_columns = first + np.arange(self.handed_on.size)
        self.inputs = np.concatenate([np.setdiff1d(read, written), slack_columns])
        self.place = {int(column): place for place, column in enumerate(self.inputs)}
        self.slack_of = dict(zip(self.handed_on.tolist(), slack_columns.tolist(), strict=True))
        self.slack = np.zeros(self.handed_on.size)

    def build(self) -> JointNetwork:
        graphs = {id(block): self._graph(block) for block in self.problem.blocks}
        for stage in self.problem.stages:
            for block, samples in stage:
                self._append(block, samples, graphs[id(block)])
        self._gather()
        graph = Graph(self.inputs.size, tuple(self.steps))
        return JointNetwork(graph, self.inputs, self.slack, tuple(self.groups))

    def _graph(self, block: Block) -> Graph:
        graph = required_graph(self.problem, block)
        NetworkPlanes(graph)  # raises where an operation has no planes
        return graph

    def _append(self, block: Block, samples: IntArray, graph: Graph) -> None:
        """Some samples of a block whose inputs are all there already."""
        read = block.inputs[samples]
        low, high = self.lower[read], self.upper[read]
        if not np.all(np.isfinite(high - low)):
            raise UnsupportedError(f"an input of {block.name} has no bound")
        slack = block_slack(block, low, high)
        if not np.all(np.isfinite(slack)):
            raise UnsupportedError(f"the rounding of {block.name} has no bound")
        for k, sample in enumerate(samples):
            columns = block.outputs[sample]
            end = self._copied(graph, read[k])
            if not block.classifies:
                self._hand_on(columns, end, slack[k])
            self.groups.append(DecidedColumns(columns, np.arange(columns.size), block.classifies, slack[k]))
            self.ends.append(end)

    def _hand_on(self, columns: IntArray, end: int, slack: FloatArray) -> None:
        for place, column in enumerate(columns.tolist()):
            if column in self.slack_of:
                self.given[column] = end, place
                self.slack[self.slack_of[column] - self.problem.mip.n_columns] = slack[place]

    def _copied(self, graph: Graph, columns: IntArray) -> int:
        """The steps of one sample; the vector that holds its outputs."""
        start = 0 if self._direct(graph, columns) else self._selection(columns)
        place = {0: start}
        for number, step in enumerate(graph.steps, start=1):
            operation = step.operation
            if start == 0 and isinstance(operation, Affine):
                weights = zip(step.sources, operation.weights, strict=True)
                operation = replace(
                    operation, weights=tuple(self._spread(w, columns) if s == 0 else w for s, w in weights)
                )
            sources = tuple(place[source] for source in step.sources)
            self.steps.append(GraphStep(operation, sources, step.size))
            place[number] = len(self.steps)
        return len(self.steps)

    def _direct(self, graph: Graph, columns: IntArray) -> bool:
        """Whether the first weights can be spread over the joint inputs: all are there, each once."""
        affine = all(isinstance(step.operation, Affine) for step in graph.steps if 0 in step.sources)
        return (
            affine and len(set(columns.tolist())) == columns.size and set(columns.tolist()) <= set(self.place)
        )

    def _spread(self, weight: FloatArray, columns: IntArray) -> FloatArray:
        wide = np.zeros((len(weight), self.inputs.size))
        wide[:, [self.place[column] for column in columns.tolist()]] = weight
        return wide

    def _selection(self, columns: IntArray) -> int:
        """A vector of these columns' values: inputs, and what was handed on with its slack."""
        weights: dict[int, FloatArray] = {}
        for row, column in enumerate(columns.tolist()):
            parts = [(0, self.place[self.slack_of.get(column, column)])]
            if column in self.given:
                parts.append(self.given[column])
            for vector, entry in parts:
                weights.setdefault(vector, np.zeros((columns.size, self._size(vector))))[row, entry] = 1.0
        return self._affine(weights, columns.size)

    def _size(self, vector: int) -> int:
        return self.inputs.size if vector == 0 else self.steps[vector - 1].size

    def _affine(self, weights: dict[int, FloatArray], size: int) -> int:
        self.steps.append(GraphStep(Affine(tuple(weights.values()), np.zeros(size)), tuple(weights), size))
        return len(self.steps)

    def _gather(self) -> None:
        """One last vector that holds the outputs of all samples, slack included where they have a column."""
        total = sum(group.columns.size for group in self.groups)
        weights: dict[int, FloatArray] = {}
        first = 0
        for number, (group, end) in enumerate(zip(self.groups, self.ends, strict=True)):
            outputs = first + np.arange(group.columns.size)
            part = weights.setdefault(end, np.zeros((total, group.columns.size)))
            part[outputs, np.arange(outputs.size)] = 1.0
            slack = group.slack.copy()
            for k, column in enumerate(group.columns.tolist()):
                if column in self.slack_of:
                    own = weights.setdefault(0, np.zeros((total, self.inputs.size)))
                    own[outputs[k], self.place[self.slack_of[column]]] = 1.0
                    slack[k] = 0.0
            self.groups[number] = replace(group, outputs=outputs, slack=slack)
            first += outputs.size
        if len(weights) > 1:
            self._affine(weights, total)


def network_parts(network: JointNetwork, cost: FloatArray) -> tuple[JointNetwork, ...]:
    """Networks that share nothing but inputs, apart: the part whose outputs cost something, and the rest; the
    network itself where it does not fall into two.

    A bound over a box is mostly a matter of what costs. Where that closes the box, nothing need be known of
    the networks that only limit it.
    """
    priced = [bool(np.any(cost[group.columns])) for group in network.groups]
    if all(priced) or not any(priced) or not isinstance(network.graph.steps[-1].operation, Affine):
        return (network,)
    groups = [
        [g for g, costs in zip(network.groups, priced, strict=True) if costs is own] for own in (True, False)
    ]
    needed = [_needed(network.graph, _sources(network.graph, some)) for some in groups]
    if needed[0] & needed[1]:
        return (network,)
    return tuple(_part(network, some, own) for some, own in zip(groups, needed, strict=True))


def _rows(groups: Iterable[DecidedColumns]) -> list[int]:
    return [int(row) for group in groups for row in group.outputs]


def _sources(graph: Graph, groups: Iterable[DecidedColumns]) -> list[int]:
    """The vectors that these groups' outputs are gathered from."""
    last, rows = graph.steps[-1], _rows(groups)
    assert isinstance(last.operation, Affine)
    pairs = zip(last.sources, last.operation.weights, strict=True)
    return [source for source, weight in pairs if np.any(weight[rows])]


def _needed(graph: Graph, sources: list[int]) -> set[int]:
    """The steps that some vectors are computed by, inputs left out."""
    found: set[int] = set()
    waiting = list(sources)
    while waiting:
        place = waiting.pop()
        if place > 0 and place not in found:
            found.add(place)
            waiting += graph.steps[place - 1].sources
    return found


def _part(network: JointNetwork, groups: list[DecidedColumns], needed: set[int]) -> JointNetwork:
    """The network of these groups alone, over the same inputs."""
    graph, rows = network.graph, _rows(groups)
    place = {old: new for new, old in enumerate(sorted(needed | {0}))}
    steps = []
    for old in sorted(needed):
        step = graph.steps[old - 1]
        steps.append(replace(step, sources=tuple(place[source] for source in step.sources)))
    last = graph.steps[-1].operation
    assert isinstance(last, Affine)
    weights = {
        place[source]: weight[rows]
        for source, weight in zip(graph.steps[-1].sources, last.weights, strict=True)
        if np.any(weight[rows])
    }
    steps.append(GraphStep(Affine(tuple(weights.values()), last.bias[rows]), tuple(weights), len(rows)))
    sizes = np.cumsum([0, *(group.outputs.size for group in groups)])
    own = [
        replace(group, outputs=np.arange(begin, begin + group.outputs.size))
        for group, begin in zip(groups, sizes, strict=False)
    ]
    return replace(network, graph=Graph(graph.inputs, tuple(steps)), groups=tuple(own))
