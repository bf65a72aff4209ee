"""All samples of a part as one graph, from the decision variables to all outputs of the networks.

    variables     variables of the part that are not outputs of a regression, then deviations: the rounding of
                  a deployed network, and the violation of an equality constraint
    outputs       regression outputs (graph value plus its deviation), then logits of classes

A variable that an equality constraint defines is substituted. A regression output that another network
reads is passed on inside the graph; a class that another network reads is a variable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.certificates.checker.planes import KnownRanges, Planes
from dovetail.certificates.checker.region import Boxes, Region, down, gamma, up
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.errors import UnsupportedError
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.networks.graph import Affine, Graph, GraphStep


@dataclass(frozen=True, eq=False)
class Sample:
    """One sample of a block whose outputs are in the part."""

    block: Block
    graph: Graph
    number: int
    slack: FloatArray
    """The result of `block_slack` for this sample."""

    @property
    def inputs(self) -> IntArray:
        """The columns that the sample reads."""
        return np.asarray(self.block.inputs[self.number])

    @property
    def outputs(self) -> IntArray:
        """The columns that the sample writes."""
        return np.asarray(self.block.outputs[self.number])


@dataclass(frozen=True, eq=False)
class InputDefinition:
    """column = constant + weights' columns + an unknown of absolute value at most `missed`."""

    column: int
    weights: dict[int, float]
    constant: float
    missed: float


def samples_of(
    problem: Problem, graphs: dict[str, Graph | None], columns: IntArray, lower: FloatArray, upper: FloatArray
) -> tuple[list[Sample], FloatArray, FloatArray]:
    """Samples that write columns of the part, in the order of evaluation. Bounds of all columns are narrowed
    to the ranges of the networks."""
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
    """One sample; its range narrows the bounds of its outputs, which other samples may read."""
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
        with np.errstate(invalid="ignore", over="ignore"):  # unknown bounds are infinite
            ranges = Planes(graph, (len(graph.steps),)).ranges(Region(low, high), KnownRanges())
        least, most = down(ranges.lower[-1][0] - slack), up(ranges.upper[-1][0] + slack)
    lower[outputs] = np.maximum(lower[outputs], least)
    upper[outputs] = np.minimum(upper[outputs], most)
    return Sample(block, graph, i, slack)


class JointGraph:
    """The graph of a part, with its inputs, outputs and neurons."""

    def __init__(self, columns: IntArray, samples: list[Sample], definitions: list[InputDefinition]) -> None:
        self.samples = samples
        self.regression = _columns([s.outputs for s in samples if not s.block.classifies])
        self.classes = _columns([s.outputs for s in samples if s.block.classifies])
        self._defined = {definition.column: definition for definition in definitions}
        gone = np.concatenate([self.regression, np.array(list(self._defined), dtype=np.int64)])
        self.variables = np.setdiff1d(columns, gone)
        """Columns that are variables; the unknowns follow them."""
        slacks = [s.slack for s in samples if not s.block.classifies]
        self.unknowns = np.concatenate([*slacks, [d.missed for d in definitions], np.empty(0)])
        """The largest absolute value of each unknown."""
        self._index = {int(j): k for k, j in enumerate(self.variables)}
        self._missed = {
            d.column: self.variables.size + self.regression.size + k for k, d in enumerate(definitions)
        }
        self._steps: list[GraphStep] = []
        self.logits: list[tuple[Sample, int]] = []
        """Samples of classes and the places of their logits."""
        self._written: dict[int, tuple[int, int]] = {}
        """For each regression output its place and entry."""
        self.neurons: list[tuple[int, int]] = []
        """Place and size of every vector that nonlinear steps read, without inputs, in the order of samples
        and places."""
        self.places: dict[int, IntArray] = {}
        """Columns whose values are a vector of the graph, by place."""
        self.ends: list[int] = []
        """The places of all outputs: of `places`, then of `logits`."""
        for sample in samples:
            self._add(sample)
        self._finish()

    @property
    def graph(self) -> Graph:
        """The graph from variables and unknowns to outputs."""
        return Graph(self.inputs, tuple(self._steps))

    @property
    def inputs(self) -> int:
        """Variables and unknowns."""
        return int(self.variables.size + self.unknowns.size)

    def place_in(self, column: int, weights: FloatArray) -> float:
        """Add a column to a row over variables and unknowns; returns its constant. No network may be in
        between."""
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
        places = [self._vector_of_columns(sample.inputs)]
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

    def _vector_of_columns(self, columns: IntArray) -> int:
        """A vector of columns, from variables and from other networks' outputs."""
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
        """One vector of all outputs: regressions in order, then logits."""
        ends = self.ends = [*self.places, *(place for _, place in self.logits)]
        total = sum(self._size(place) for place in ends)
        weights, first = [], 0
        for place in ends:
            size = self._size(place)
            pick = np.zeros((total, size))
            pick[first + np.arange(size), np.arange(size)] = 1.0
            weights.append(pick)
            first += size
        if not ends:  # a part without networks: an empty vector
            weights, ends = [np.zeros((0, self.inputs))], [0]
        self._append(Affine(tuple(weights), np.zeros(total)), tuple(ends), total)


def _columns(arrays: list[IntArray]) -> IntArray:
    return np.concatenate([*arrays, np.empty(0, dtype=np.int64)]).astype(np.int64)


RegionRow = tuple[FloatArray | None, float, float]
"""A row that cuts a region: weights, and its largest and smallest value."""
NO_ROW: RegionRow = (None, np.inf, -np.inf)


class Substitution:
    """Turns rows over columns into rows over variables and unknowns; `place` are the places of columns."""

    def __init__(self, joint: JointGraph, place: dict[int, int], definitions: list[InputDefinition]) -> None:
        self._joint, self._place, self._definitions = joint, place, definitions
        self.variables = np.array([place[int(j)] for j in joint.variables], dtype=np.int64)
        """Places of the columns that are variables."""
        self._weights = []
        for one in definitions:
            weights = np.zeros(joint.inputs)
            joint.place_in(one.column, weights)
            self._weights.append((place[one.column], weights, one.constant))

    def box(self, boxes: Boxes) -> tuple[FloatArray, FloatArray]:
        """Bounds of variables and unknowns."""
        unknown = np.broadcast_to(self._joint.unknowns, (len(boxes.lower), self._joint.unknowns.size))
        at = self.variables
        return np.hstack([boxes.lower[:, at], -unknown]), np.hstack([boxes.upper[:, at], unknown])

    def rows(self, rows: FloatArray, *, sizes: bool = False) -> FloatArray:
        """(N, variables and unknowns) from rows over columns, without regression outputs; with `sizes` of
        weights."""
        total = np.zeros((len(rows), self._joint.inputs))
        total[:, : self.variables.size] = rows[:, self.variables]
        for at, weights, _ in self._weights:
            total += rows[:, [at]] * (np.abs(weights) if sizes else weights)
        return total

    def noise(self, rows: FloatArray, off: FloatArray, slopes: FloatArray) -> FloatArray:
        """The rounding of those rows and of slopes that are added, for rows with rounding `off`."""
        size = self.rows(np.abs(rows), sizes=True) + np.abs(slopes)
        return self.rows(off, sizes=True) + gamma(2 + len(self._weights)) * size

    def constant(self, rows: FloatArray, off: FloatArray) -> FloatArray:
        """(N,) the smallest value of the constants of definitions."""
        parts = np.array([rows[:, at] * c for at, _, c in self._weights]).reshape(-1, len(rows))
        loose = np.array([off[:, at] * abs(c) for at, _, c in self._weights]).reshape(-1, len(rows))
        noise = gamma(len(parts)) * np.abs(parts).sum(axis=0) + 2.0 * loose.sum(axis=0)
        return np.asarray(parts.sum(axis=0) - noise)

    def region_row(self, mip: Mip, row: int, boxes: Boxes) -> RegionRow:
        """A row of the part over variables and unknowns."""
        if row < 0:
            return NO_ROW
        entries = mip.A[[row]].tocoo()
        weights, shift = np.zeros(self._joint.inputs), 0.0
        ends = [float(mip.row_upper[row]), float(mip.row_lower[row])]
        sizes, total = np.zeros(self._joint.inputs), sum(abs(end) for end in ends if np.isfinite(end))
        for j, a in zip(entries.coords[1].tolist(), entries.data.tolist(), strict=True):
            if j not in self._place or j in self._joint.regression.tolist():
                raise UnsupportedError("the row of a part has other columns in it")
            one = np.zeros(self._joint.inputs)
            constant = self._joint.place_in(j, one)
            weights, shift = weights + a * one, shift + a * constant
            sizes, total = sizes + np.abs(a * one), total + abs(a * constant)
        reach = Region(*self.box(boxes)).size[0]
        if not np.isfinite(shift) or not np.all(np.isfinite(reach[sizes > 0.0])):
            return NO_ROW
        total += float(sizes[sizes > 0.0] @ reach[sizes > 0.0])
        room = gamma(2 * entries.data.size) * total
        return weights, ends[0] - shift + room, ends[1] - shift - room

    def cost_row(self, cost: FloatArray, noise: FloatArray, most: float, boxes: Boxes) -> RegionRow:
        """The part's cost (known up to `noise`, by place) over variables and unknowns, at most `most`."""
        outputs = [self._place[int(j)] for j in self._joint.regression]
        if np.any(np.abs(cost[outputs]) + noise[outputs] > 0.0):
            raise UnsupportedError("the cost of a part has outputs of networks in it")
        weights = self.rows(cost[None])[0]
        size, slack = self.rows(np.array([np.abs(cost), noise]), sizes=True)
        constants = np.zeros((len(self._weights), 2))
        for k, (at, _, constant) in enumerate(self._weights):
            constants[k] = cost[at] * constant, noise[at] * abs(constant)
        reach = Region(*self.box(boxes)).size[0]
        seen = (size > 0.0) | (slack > 0.0)
        if not np.isfinite(most) or not np.all(np.isfinite(reach[seen])):
            return NO_ROW
        total = abs(most) + float(np.abs(constants[:, 0]).sum() + size[seen] @ reach[seen])
        room = float(constants[:, 1].sum() + slack[seen] @ reach[seen])
        side = most - float(constants[:, 0].sum())
        return weights, side + (room + gamma(2 * len(cost)) * total) * (1.0 + gamma(len(cost))), -np.inf


def definition(mip: Mip, column: int, row: int) -> InputDefinition:
    """The definition of a column by an equation, relaxed as in the check."""
    start, stop = mip.A.indptr[row], mip.A.indptr[row + 1]
    entries = dict(zip(mip.A.indices[start:stop].tolist(), mip.A.data[start:stop].tolist(), strict=True))
    own = entries.pop(column, 0.0)
    if abs(own) != 1.0 or not np.isfinite(mip.row_upper[row] - mip.row_lower[row]):
        raise UnsupportedError(f"{mip.row_name(row)} does not determine {mip.column_name(column)} is")
    middle = 0.5 * (mip.row_lower[row] + mip.row_upper[row])
    missed = 0.5 * (mip.row_upper[row] - mip.row_lower[row]) + gamma(4) * (1.0 + abs(middle))
    return InputDefinition(
        column, {j: -a * own for j, a in entries.items()}, float(middle * own), float(missed)
    )
