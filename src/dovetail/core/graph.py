"""A network as a graph of a few kinds of operations, for those who have to bound it.

Every value is a vector. Shapes, reshaping, slices, convolutions, batch normalisation, means and sums are all
affine maps of vectors and become one kind, `Affine`; softmax, LayerNorm, attention and recurrent cells are
made of it, of functions of single values, and of products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.layers import Dense, Layer
from dovetail.networks.functions import FUNCTIONS


@dataclass(frozen=True, eq=False)
class Affine:
    """The sum of weight v over its sources, plus a bias."""

    weights: tuple[FloatArray, ...]
    """One (outputs, inputs) matrix per source."""
    bias: FloatArray


@dataclass(frozen=True)
class Elementwise:
    """One of `functions.FUNCTIONS`, on each single value."""

    kind: str


@dataclass(frozen=True)
class Product:
    """Two vectors, multiplied value by value."""


Operation = Affine | Elementwise | Product


@dataclass(frozen=True, eq=False)
class GraphStep:
    """One operation; its sources are the inputs (0) and earlier steps (1, 2, ... in their order)."""

    operation: Operation
    sources: tuple[int, ...]
    size: int
    """Length of the vector that it gives."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Steps in the order they are computed; the last one gives the outputs."""

    inputs: int
    steps: tuple[GraphStep, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Length of every vector: the inputs, then the steps."""
        return (self.inputs, *(step.size for step in self.steps))

    @property
    def outputs(self) -> int:
        """Length of what it gives."""
        return self.sizes[-1]

    def vectors(self, X: FloatArray) -> list[FloatArray]:
        """Every vector, for each row of `X`: the inputs, then the steps."""
        found = [X]
        for step in self.steps:
            read = [found[source] for source in step.sources]
            operation = step.operation
            if isinstance(operation, Affine):
                parts = [v @ weight.T for v, weight in zip(read, operation.weights, strict=True)]
                found.append(np.broadcast_to(sum(parts) + operation.bias, (len(X), step.size)))
            elif isinstance(operation, Elementwise):
                found.append(np.asarray(FUNCTIONS[operation.kind].value(read[0])))
            else:
                found.append(read[0] * read[1])
        return found

    def values(self, X: FloatArray) -> FloatArray:
        """What it gives for each row of `X`, in float64."""
        return self.vectors(X)[-1]

    @classmethod
    def of_layers(cls, layers: Sequence[Layer], inputs: int) -> Graph:
        """Dense layers and activations, one after the other."""
        steps: list[GraphStep] = []
        size = inputs
        for number, layer in enumerate(layers):
            if isinstance(layer, Dense):
                size = len(layer.bias)
                steps.append(GraphStep(Affine((layer.weight,), layer.bias), (number,), size))
            elif layer.kind not in FUNCTIONS:
                raise UnsupportedError(f"{layer.kind} is no function of single values")
            else:
                steps.append(GraphStep(Elementwise(layer.kind), (number,), size))
        if not steps:
            steps.append(GraphStep(Affine((np.eye(inputs),), np.zeros(inputs)), (0,), inputs))
        return cls(inputs, tuple(steps))
