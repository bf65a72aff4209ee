"""The networks of a problem during branch and bound: ranges of their vectors, and planes below the vectors.

A *column* here is a number that a box bounds. The variables of the linear part come first, then the logits
of classes, then the inputs of each sample's nonlinear steps (the pre-activations of its neurons). An input,
an integer and the sign of a neuron are therefore bounded, and branched on, in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.planes.domain import Boxes, Domain
from dovetail.bounds.planes.network_planes import Choices, NetworkPlanes, Ranges
from dovetail.branching.effort import count_intervals, count_ranges
from dovetail.branching.input_sets import InputSets
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.networks.functions import FUNCTIONS
from dovetail.networks.graph import Affine, Elementwise, Enclosed, Graph

CELLS = 2**23
"""Largest number of entries of a tensor of one pass (64 MB)."""


@dataclass(frozen=True, eq=False)
class NetworkSamples:
    """All samples of one network, with the columns that they read, write and have inside."""

    planes: NetworkPlanes
    inputs: IntArray
    """(samples, d) columns."""
    outputs: IntArray
    """(samples, q) columns."""
    slack: FloatArray
    """(samples, q) the error of the graph for the deployed network."""
    inner: Mapping[int, IntArray]
    """(samples, size) columns of each vector that a nonlinear step reads, by its place in the graph."""
    sets: InputSets | None = None
    """The sets of inputs from constraints, in addition to their box."""

    @property
    def graph(self) -> Graph:
        """The network's graph."""
        return self.planes.graph

    def vectors(self, X: FloatArray) -> list[FloatArray]:
        """All vectors at (samples, d) inputs: inputs first, outputs last."""
        found = [X]
        for step in self.graph.steps:
            read = [found[source] for source in step.sources]
            if isinstance(step.operation, Affine):
                parts = [v @ w.T for v, w in zip(read, step.operation.weights, strict=True)]
                found.append(np.sum(parts, axis=0) + step.operation.bias)
            elif isinstance(step.operation, Elementwise):
                found.append(FUNCTIONS[step.operation.kind].value(read[0]))
            elif isinstance(step.operation, Enclosed):
                found.append(step.operation.values(read[0]))
            else:
                found.append(read[0] * read[1])
        return found

    @cached_property
    def entries(self) -> int:
        """Number of weights of one sample, and a few numbers for every neuron."""
        affine = [step.operation for step in self.graph.steps if isinstance(step.operation, Affine)]
        weights = sum(int(np.count_nonzero(w)) for operation in affine for w in operation.weights)
        return weights + 4 * sum(self.graph.sizes)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.inputs)

    def column(self, place: int) -> IntArray:
        """(samples, size) the columns of a vector that a nonlinear step reads."""
        return self.inner[place] if place else self.inputs

    @cached_property
    def path_weights(self) -> dict[int, FloatArray]:
        """(size,) by place: the largest effect of one unit of a vector on the outputs, along all paths."""
        steps = self.graph.steps
        found = {place: np.zeros(size) for place, size in enumerate(self.graph.sizes)}
        found[len(steps)] += 1.0
        for place in range(len(steps), 0, -1):
            operation = steps[place - 1].operation
            for number, source in enumerate(steps[place - 1].sources):
                if isinstance(operation, Affine):
                    found[source] = found[source] + np.abs(operation.weights[number]).T @ found[place]
                else:
                    found[source] = found[source] + found[place]
        return found

    @cached_property
    def reach(self) -> dict[int, FloatArray]:
        """(size, d) by place: the largest effect of one unit of an input on a vector, along all paths."""
        found = {0: np.eye(self.graph.inputs)}
        for place, step in enumerate(self.graph.steps, start=1):
            sources = [found[source] for source in step.sources]
            if isinstance(step.operation, Affine):
                sources = [np.abs(w) @ r for w, r in zip(step.operation.weights, sources, strict=True)]
            found[place] = np.sum(sources, axis=0)
        return found

    def ranges(
        self,
        lower: FloatArray,
        upper: FloatArray,
        *,
        settled: bool = False,
    ) -> tuple[Domain, Ranges]:
        """Ranges of every vector over N boxes, sample by sample, at least as tight as the boxes. `settled`:
        the boxes of neurons are as tight as planes make them."""
        box, sample = self._all(len(lower))

        def of(columns: IntArray, bounds: FloatArray) -> Tensor:
            return torch.from_numpy(bounds[box[:, None], columns[sample]])

        boxes: Domain = Boxes(of(self.inputs, lower), of(self.inputs, upper))
        if self.sets is not None and not settled:
            boxes = self.sets.within(boxes, lower, upper, box, sample)
        nothing = torch.full((1, 1), torch.inf, dtype=torch.float64)
        low, high = [boxes.lower], [boxes.upper]
        for place in range(1, len(self.graph.steps) + 1):
            columns = self.inner.get(place)
            low.append(-nothing if columns is None else of(columns, lower))
            high.append(nothing if columns is None else of(columns, upper))
        return boxes, self.planes.ranges(boxes, Ranges(low, high), len(self.graph.steps) if settled else 0)

    def _all(self, boxes: int) -> tuple[IntArray, IntArray]:
        """Numbers of all samples in all boxes."""
        return np.repeat(np.arange(boxes), self.samples), np.tile(np.arange(self.samples), boxes)

    def tighten(self, lower: FloatArray, upper: FloatArray) -> None:
        """Tighten N boxes, in place: the network bounds its neurons and outputs by its inputs. Bounds that
        cross mean an empty box."""
        for part in self._parts(len(lower)):
            low, high = lower[part], upper[part]
            box, sample = self._all(len(low))
            count_ranges(box.size, self.entries)
            boxes, ranges = self.ranges(low, high)
            one = torch.eye(self.graph.outputs, dtype=torch.float64)
            below = self.planes.planes(torch.cat([one, -one]), ranges)
            least = boxes.minimum(below.slopes, below.offset)
            bottom = torch.fmax(ranges.lower[-1], least[:, : len(one)]).numpy()
            top = torch.fmin(ranges.upper[-1], -least[:, len(one) :]).numpy()
            for place, columns in self.inner.items():
                ends = ranges.lower[place].numpy(), ranges.upper[place].numpy()
                _narrow(low, high, box, columns[sample], *ends)
            _narrow(
                low, high, box, self.outputs[sample], bottom - self.slack[sample], top + self.slack[sample]
            )
            lower[part], upper[part] = low, high

    def settle(self, lower: FloatArray, upper: FloatArray) -> None:
        """Tighten the neurons of N boxes by intervals of their inputs, in place, so that bounds equal the
        ranges that planes use, and reduced costs of neurons count from the same ends."""
        for part in self._parts(len(lower)):
            low, high = lower[part], upper[part]
            box, sample = self._all(len(low))
            count_intervals(box.size, self.entries)
            _, ranges = self.ranges(low, high, settled=True)
            for place, columns in self.inner.items():
                ends = ranges.lower[place].numpy(), ranges.upper[place].numpy()
                _narrow(low, high, box, columns[sample], *ends)
            lower[part], upper[part] = low, high

    def _parts(self, boxes: int) -> Sequence[slice]:
        widest = max(self.graph.sizes)
        step = max(1, CELLS // (self.samples * widest * max(2 * widest, 1)))
        return [slice(first, first + step) for first in range(0, boxes, step)]

    def below(
        self, weights: NetworkWeights, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Planes below weights of the outputs and neurons over N tightened boxes: (N, samples, d) slopes,
        (N, samples) offsets."""
        slopes, offsets = np.empty((len(lower), *self.inputs.shape)), np.empty((len(lower), self.samples))
        for part in self._parts(len(lower)):
            _, ranges = self.ranges(lower[part], upper[part], settled=True)
            some = weights.take(np.arange(len(lower))[part])
            rows = some.outputs.reshape(-1, 1, self.graph.outputs)
            found = self.planes.planes(rows, ranges, some.choices)
            slopes[part] = found.slopes[:, 0].numpy().reshape(-1, *self.inputs.shape)
            offsets[part] = found.offset[:, 0].numpy().reshape(-1, self.samples)
        return slopes, offsets

    def heights(
        self, lower: FloatArray, upper: FloatArray
    ) -> Iterator[tuple[int, tuple[int, ...], FloatArray]]:
        """The nonlinearity of the network over N boxes: for each nonlinear step its place and sources, and
        (N, samples, size) heights of triangles or widths of bands."""
        for place, step in enumerate(self.graph.steps, start=1):
            if isinstance(step.operation, Affine):
                continue
            between = []
            for columns in (self.column(source) for source in step.sources):
                between.append((lower[:, columns], np.maximum(lower[:, columns], upper[:, columns])))
            if isinstance(step.operation, Elementwise):
                high = heights(step.operation.kind, *between[0])
            else:
                (a, b), (c, d) = between
                high = 0.25 * (b - a) * (d - c)
            yield place, step.sources, high

    def open_area(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, samples) the sum of all heights."""
        total = np.zeros((len(lower), self.samples))
        for *_, high in self.heights(lower, upper):
            total += high.sum(2)
        return total


def _narrow(
    lower: FloatArray,
    upper: FloatArray,
    box: IntArray,
    columns: IntArray,
    bottom: FloatArray,
    top: FloatArray,
) -> None:
    """Tighten some columns of some boxes, in place."""
    at = box[:, None], columns
    lower[at], upper[at] = np.fmax(lower[at], bottom), np.fmin(upper[at], top)


def heights(kind: str, low: FloatArray, high: FloatArray) -> FloatArray:
    """The distance of a function from its chord between these bounds: of a ReLU at its kink, otherwise the
    largest at three places."""
    if kind == "relu":
        wide = np.where((low < 0.0) & (high > 0.0), high - low, 1.0)
        return np.where((low < 0.0) & (high > 0.0), -low * high / wide, 0.0)
    value = FUNCTIONS[kind].value
    left, right = value(low), value(high)
    apart = [np.abs(value(low + t * (high - low)) - left - t * (right - left)) for t in (0.25, 0.5, 0.75)]
    return np.asarray(np.max(apart, axis=0))


@dataclass(frozen=True, eq=False)
class NetworkWeights:
    """The request to a network over N boxes: weights of its outputs, and choices that make planes better.

    (N, samples, size) each; by place of the vector, as in `Choices`.
    """

    outputs: Tensor
    slopes: dict[int, Tensor] = field(default_factory=dict)
    multipliers: dict[int, Tensor] = field(default_factory=dict)
    held: dict[int, Tensor] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[NetworkWeights]) -> NetworkWeights:
        """The data of several boxes, concatenated; missing vectors are 0."""

        def together(dicts: list[dict[int, Tensor]]) -> dict[int, Tensor]:
            like = {place: tensor for tensors in dicts for place, tensor in tensors.items()}
            nothing = {place: tensor.new_zeros(1, *tensor.shape[1:]) for place, tensor in like.items()}
            return {
                place: torch.cat(
                    [
                        tensors.get(place, nothing[place].expand(len(part.outputs), -1, -1))
                        for part, tensors in zip(parts, dicts, strict=True)
                    ]
                )
                for place in like
            }

        return cls(
            torch.cat([part.outputs for part in parts]),
            together([part.slopes for part in parts]),
            together([part.multipliers for part in parts]),
            together([part.held for part in parts]),
        )

    def take(self, boxes: IntArray) -> NetworkWeights:
        """The weights of a selection of the boxes, by number."""
        chosen = torch.from_numpy(boxes)

        def some(tensors: dict[int, Tensor]) -> dict[int, Tensor]:
            return {place: tensor[chosen] for place, tensor in tensors.items()}

        return NetworkWeights(
            self.outputs[chosen], some(self.slopes), some(self.multipliers), some(self.held)
        )

    @property
    def choices(self) -> Choices:
        """The choices in the form that planes take."""

        def flat(tensors: dict[int, Tensor]) -> dict[int, Tensor]:
            return {place: tensor.reshape(-1, 1, tensor.shape[2]) for place, tensor in tensors.items()}

        return Choices(flat(self.slopes), flat(self.multipliers), flat(self.held))
