"""A network as a graph of a few kinds of operations, for those who have to bound it.

Every value is a vector. Shapes, reshaping, slices, convolutions, batch normalisation, means and sums are all
affine maps of vectors and become one kind, `Affine`; softmax, LayerNorm, attention and recurrent cells are
made of it, of functions of single values, and of products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.layers import FUNCTIONS, Dense, Layer

VALUES: dict[str, Callable[[FloatArray], FloatArray]] = {
    **{kind: FUNCTIONS[kind] for kind in ("relu", "tanh", "softplus")},
    "sigmoid": special.expit,
    "erf": special.erf,
    "gelu": lambda z: z * special.ndtr(z),
    "gelu_tanh": lambda z: z * special.expit(np.sqrt(8.0 / np.pi) * (z + 0.044715 * z**3)),
    "silu": lambda z: z * special.expit(z),
    "elu": lambda z: np.where(z > 0.0, z, np.expm1(np.minimum(z, 0.0))),
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda z: 1.0 / np.sqrt(z),
    "reciprocal": lambda z: 1.0 / z,
    "square": np.square,
}
"""Functions of single values; log, sqrt and rsqrt of positive ones only."""


@dataclass(frozen=True, eq=False)
class Affine:
    """The sum of weight v over its sources, plus a bias."""

    weights: tuple[FloatArray, ...]
    """One (outputs, inputs) matrix per source."""
    bias: FloatArray


@dataclass(frozen=True)
class Elementwise:
    """One of `VALUES`, on each single value.

    What is made of straight pieces (leaky ReLU, clamp, a maximum) is written with ReLUs.
    """

    kind: str


@dataclass(frozen=True)
class Product:
    """Two vectors, multiplied value by value."""


Operation = Affine | Elementwise | Product


@dataclass(frozen=True, eq=False)
class Step:
    """One operation; its sources are the inputs (0) and earlier steps (1, 2, ... in their order)."""

    operation: Operation
    sources: tuple[int, ...]
    size: int
    """Length of the vector that it gives."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Steps in the order they are computed; the last one gives the outputs."""

    inputs: int
    steps: tuple[Step, ...]

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
                found.append(np.asarray(VALUES[operation.kind](read[0])))
            else:
                found.append(read[0] * read[1])
        return found

    def values(self, X: FloatArray) -> FloatArray:
        """What it gives for each row of `X`, in float64."""
        return self.vectors(X)[-1]

    @classmethod
    def of_layers(cls, layers: Sequence[Layer], inputs: int) -> Graph:
        """Dense layers and activations, one after the other."""
        steps: list[Step] = []
        size = inputs
        for number, layer in enumerate(layers):
            if isinstance(layer, Dense):
                size = len(layer.bias)
                steps.append(Step(Affine((layer.weight,), layer.bias), (number,), size))
            elif layer.kind not in VALUES:
                raise UnsupportedError(f"{layer.kind} is no function of single values")
            else:
                steps.append(Step(Elementwise(layer.kind), (number,), size))
        if not steps:
            steps.append(Step(Affine((np.eye(inputs),), np.zeros(inputs)), (0,), inputs))
        return cls(inputs, tuple(steps))
