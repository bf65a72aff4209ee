"""Values and derivatives of several graphs of one shape together.

A small network takes microseconds to compute, and a hundred times as long to call through a library.
Searches that know the graphs of networks and have many inputs, or many networks of one shape, compute the
values here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.networks.functions import FUNCTIONS, NUMPY
from dovetail.networks.graph import Affine, Elementwise, Graph


def shape_of(graph: Graph) -> Hashable:
    """A key: graphs with the same key differ in their numbers only."""
    kinds = (
        step.operation.kind if isinstance(step.operation, Elementwise) else type(step.operation).__name__
        for step in graph.steps
    )
    return graph.sizes, tuple(kinds), tuple(step.sources for step in graph.steps)


class StackedGraphs:
    """K graphs of one shape."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self._shape = graphs[0]
        self._weights: list[list[FloatArray]] = []
        """Of affine steps, by source: (K, outputs, inputs)."""
        self._bias: list[FloatArray] = []
        """Of affine steps: (K, 1, outputs)."""
        for operations in zip(*([step.operation for step in graph.steps] for graph in graphs), strict=True):
            affine = [one for one in operations if isinstance(one, Affine)]
            self._weights.append(
                [np.stack(parts) for parts in zip(*(a.weights for a in affine), strict=True)]
            )
            self._bias.append(np.stack([a.bias for a in affine])[:, None] if affine else np.empty(0))

    def values(self, X: FloatArray) -> FloatArray:
        """(K, n, outputs) at n points (K, n, inputs) of each."""
        with np.errstate(all="ignore"):
            return self._vectors(X)[-1]

    def slopes(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The values, and (K, n, outputs, inputs) derivatives by backward accumulation."""
        with np.errstate(all="ignore"):
            vectors = self._vectors(X)
            many, points, q = vectors[-1].shape
            last = np.broadcast_to(np.eye(q), (many, points, q, q))
            of: list[FloatArray | None] = [*[None] * (len(vectors) - 1), last]
            for place in range(len(vectors) - 1, 0, -1):
                slope = of[place]
                if slope is not None:
                    self._pass_back(place, slope, vectors, of)
        found = of[0]
        return vectors[-1], np.zeros((many, points, q, X.shape[2])) if found is None else found

    def _vectors(self, X: FloatArray) -> list[FloatArray]:
        vectors = [X]
        for step, weights, bias in zip(self._shape.steps, self._weights, self._bias, strict=True):
            read = [vectors[source] for source in step.sources]
            if isinstance(step.operation, Affine):
                total = bias
                for weight, vector in zip(weights, read, strict=True):
                    total = total + vector @ weight.swapaxes(1, 2)
                vectors.append(total)
            elif isinstance(step.operation, Elementwise):
                vectors.append(FUNCTIONS[step.operation.kind].value(read[0]))
            else:
                vectors.append(read[0] * read[1])
        return vectors

    def _pass_back(
        self, place: int, slope: FloatArray, vectors: list[FloatArray], of: list[FloatArray | None]
    ) -> None:
        """The derivatives passed back through a step."""
        step = self._shape.steps[place - 1]
        read = [vectors[source] for source in step.sources]
        if isinstance(step.operation, Affine):
            many, points, q, size = slope.shape
            flat = slope.reshape(many, points * q, size)
            parts = [(flat @ weight).reshape(many, points, q, -1) for weight in self._weights[place - 1]]
        elif isinstance(step.operation, Elementwise):
            steep = FUNCTIONS[step.operation.kind].derivative(NUMPY, read[0])
            parts = [slope * steep[:, :, None]]
        else:
            parts = [slope * read[1][:, :, None], slope * read[0][:, :, None]]
        for source, part in zip(step.sources, parts, strict=True):
            known = of[source]
            of[source] = part if known is None else known + part
