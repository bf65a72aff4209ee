"""All samples of a part as one graph, from the columns that are chosen to everything the networks say.

    variables     columns of the part that no regression writes, then unknowns: by how much a deployed network
                  may be off its graph, and by how much an equality row may be missed
    outputs       regression outputs (graph value plus its unknown), then logits of classes

A column that an equality row defines is put in terms of the others. A regression output that another network
reads is passed on inside the graph; a class that another one reads is a variable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.certificates.checker.planes import Known, Planes
from dovetail.certificates.checker.region import Region
from dovetail.certificates.checker.rounding import down, up
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.errors import UnsupportedError
from dovetail.core.problem import Problem
from dovetail.networks.graph import Affine, Graph, GraphStep


@dataclass(frozen=True, eq=False)
class Sample:
    """One sample of a block whose outputs are in the part."""

    block: Block
    graph: Graph
    number: int
    slack: FloatArray
    """As `block_slack` gives it, of this sample."""

    @property
    def inputs(self) -> IntArray:
        """Columns it reads."""
        return np.asarray(self.block.inputs[self.number])

    @property
    def outputs(self) -> IntArray:
        """Columns it writes."""
        return np.asarray(self.block.outputs[self.number])


@dataclass(frozen=True, eq=False)
class Definition:
    """column = constant + weights' columns + an unknown that is at most `missed` in size."""

    column: int
    weights: dict[int, float]
    constant: float
    missed: float


def samples_of(
    problem: Problem, graphs: dict[str, Graph | None], columns: IntArray, lower: FloatArray, upper: FloatArray
) -> tuple[list[Sample], FloatArray, FloatArray]:
    """Samples that write columns of the part, in the order of chains.

    Bounds are those of all columns; they come back narrowed to what the networks can give.
    """
    inside = np.zeros(problem.mip.n_columns, dtype=bool)
    inside[columns] = True
    lower, upper = lower.copy(), upper.copy()
    found = []
    for stage in problem.stages:
        for block, numbers in stage:
            for i in (int(i) for i in numbers if inside[block.outputs[i]].any()):
                if not (inside[block.outputs[i]].all() and inside[block.inputs[i]].all()):
                    raise UnsupportedError(f"{block.name}, sample {i} is only partly among the columns")
                found.append(_sample(block, graphs[block.name], i, lower, upper))
    return found, lower, upper


def _sample(block: Block, graph: Graph | None, i: int, lower: FloatArray, upper: FloatArray) -> Sample:
    """One sample; what it can give narrows the bounds of its outputs, which others may read."""
    if graph is None:
        raise UnsupportedError(f"the network of {block.name} is not known operation by operation")
    low, high = lower[block.inputs[i]][None], upper[block.inputs[i]][None]
    if not np.all(np.isfinite(high - low)):
        raise UnsupportedError(f"an input of {block.name}, sample {i} has no bound")
    slack = block_slack(block, low, high)[0]
    outputs = block.outputs[i]
    if block.classifies:
        least, most = np.zeros(outputs.size), np.ones(outputs.size)
    else:
        if not np.all(np.isfinite(slack)):
            raise UnsupportedError(f"the rounding of {block.name} has no bound")
        with np.errstate(invalid="ignore", over="ignore"):  # what is not known is infinite
            ranges = Planes(graph, (len(graph.steps),)).ranges(Region(low, high), Known())
        least, most = down(ranges.lower[-1][0] - slack), up(ranges.upper[-1][0] + slack)
    lower[outputs] = np.maximum(lower[outputs], least)
    upper[outputs] = np.minimum(upper[outputs], most)
    return Sample(block, graph, i, slack)


class JointGraph:
    """The graph of a part and what its inputs, outputs and neurons are."""

    def __init__(self, columns: IntArray, samples: list[Sample], definitions: list[Definition]) -> None:
        self.samples = samples
        self.regression = _columns([s.outputs for s in samples if not s.block.classifies])
        self.classes = _columns([s.outputs for s in samples if s.block.classifies])
        self._defined = {definition.column: definition for definition in definitions}
        gone = np.concatenate([self.regression, np.array(list(self._defined), dtype=np.int64)])
        self.variables = np.setdiff1d(columns, gone)
        """Columns that are variables; the unknowns follow them."""
        slacks = [s.slack for s in samples if not s.block.classifies]
        self.unknowns = np.concatenate([*slacks, [d.missed for d in definitions], np.empty(0)])
        """How large each unknown is at most."""
        self._index = {int(j): k for k, j in enumerate(self.variables)}
        self._missed = {
            d.column: self.variables.size + self.regression.size + k for k, d in enumerate(definitions)
        }
        self._steps: list[GraphStep] = []
        self.logits: list[tuple[Sample, int]] = []
        """Samples of classes and the places of their logits."""
        self._written: dict[int, tuple[int, int]] = {}
        """Where a regression output is: place and entry."""
        self.neurons: list[tuple[int, int]] = []
        """Place and size of every vector that nonlinear steps read, in the order of samples and places; no
        inputs."""
        self.places: dict[int, IntArray] = {}
        """Columns whose values are a vector of the graph, by place."""
        self.ends: list[int] = []
        """The places of all outputs: of `places`, then of `logits`."""
        for sample in samples:
            self._add(sample)
        self._finish()

    @property
    def graph(self) -> Graph:
        """From variables and unknowns to outputs."""
        return Graph(self.inputs, tuple(self._steps))

    @property
    def inputs(self) -> int:
        """Variables and unknowns."""
        return int(self.variables.size + self.unknowns.size)

    def place_in(self, column: int, weights: FloatArray) -> float:
        """Add what a column is to a row over variables and unknowns; its constant. No network in between."""
        if column in self._index:
            weights[self._index[column]] += 1.0
            return 0.0
        definition = self._defined[column]
        for j, weight in definition.weights.items():
            weights[self._index[j]] += weight
        weights[self._missed[column]] += 1.0
        return definition.constant

    def _size(self, place: int) -> int:
        return self.inputs if place == 0 else self._steps[place - 1].size

    def _append(self, operation: object, sources: tuple[int, ...], size: int) -> int:
        self._steps.append(GraphStep(operation, sources, size))  # type: ignore[arg-type]
        return len(self._steps)

    def _add(self, sample: Sample) -> None:
        places = [self._gathered(sample.inputs)]
        for step in sample.graph.steps:
            sources = tuple(places[source] for source in step.sources)
            places.append(self._append(step.operation, sources, step.size))
        bent = {
            s for step in sample.graph.steps if not isinstance(step.operation, Affine) for s in step.sources
        }
        self.neurons += [(places[s], self._size(places[s])) for s in sorted(bent - {0})]
        if sample.block.classifies:
            self.logits.append((sample, places[-1]))
            return
        q, first = sample.outputs.size, self.variables.size + len(self._written)
        pick = np.zeros((q, self.inputs))
        pick[np.arange(q), first + np.arange(q)] = 1.0
        out = self._append(Affine((np.eye(q), pick), np.zeros(q)), (places[-1], 0), q)
        self.places[out] = sample.outputs
        self._written.update({int(j): (out, k) for k, j in enumerate(sample.outputs)})

    def _gathered(self, columns: IntArray) -> int:
        """A vector of columns, from variables and from what other networks wrote."""
        sources = sorted({0} | {self._written[int(j)][0] for j in columns if int(j) in self._written})
        weights = {source: np.zeros((columns.size, self._size(source))) for source in sources}
        bias = np.zeros(columns.size)
        for k, j in enumerate(columns.tolist()):
            if j in self._written:
                place, entry = self._written[j]
                weights[place][k, entry] = 1.0
            else:
                bias[k] = self.place_in(j, weights[0][k])
        operation = Affine(tuple(weights[source] for source in sources), bias)
        return self._append(operation, tuple(sources), columns.size)

    def _finish(self) -> None:
        """One vector of all outputs: regressions in their order, then logits in theirs."""
        ends = self.ends = [*self.places, *(place for _, place in self.logits)]
        total = sum(self._size(place) for place in ends)
        weights, first = [], 0
        for place in ends:
            size = self._size(place)
            pick = np.zeros((total, size))
            pick[first + np.arange(size), np.arange(size)] = 1.0
            weights.append(pick)
            first += size
        if not ends:  # no network at all: a vector of nothing
            weights, ends = [np.zeros((0, self.inputs))], [0]
        self._append(Affine(tuple(weights), np.zeros(total)), tuple(ends), total)


def _columns(arrays: list[IntArray]) -> IntArray:
    return np.concatenate([*arrays, np.empty(0, dtype=np.int64)]).astype(np.int64)
