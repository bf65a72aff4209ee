"""A program as a graph of a few kinds of steps, for bounds.

Every value is a vector. Shapes, reshaping, slices, convolutions, batch normalisation, means and sums are
affine maps of vectors and become one kind, `Affine`; softmax, LayerNorm, attention and recurrent cells are
composed of these kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.networks.functions import FUNCTIONS

GATED: dict[tuple[str, ...] | None, str] = {
    known.gate: name for name, known in FUNCTIONS.items() if known.gate is not None
}
"""Functions of the form x g(x), by g."""
LARGEST = 20_000_000
"""Largest number of entries in all matrices of a graph: 160 MB. Bounding a larger graph would take
minutes."""


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
    """Two vectors multiplied entry by entry."""


class Enclosing(NamedTuple):
    """below_slopes u + below_offset <= v <= above_slopes u + above_offset, over N boxes of u."""

    below_slopes: Any
    """(N, size, inputs)."""
    below_offset: Any
    """(N, size)."""
    above_slopes: Any
    above_offset: Any


@dataclass(frozen=True, eq=False)
class Enclosed:
    """A function of a whole vector that knows its lines over boxes."""

    values: Callable[[FloatArray], FloatArray]
    lines: Callable[[Any, Any], Enclosing]
    """Between two (N, inputs) bounds, by tensors of torch."""


@dataclass(frozen=True, eq=False)
class GraphStep:
    """One step; its sources are the inputs (0) and earlier steps (1, 2, ... in their order)."""

    operation: Affine | Elementwise | Product | Enclosed
    sources: tuple[int, ...]
    size: int
    """Length of the resulting vector."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Steps in order; the last one gives the outputs."""

    inputs: int
    steps: tuple[GraphStep, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Length of every vector: the inputs, then the steps."""
        return (self.inputs, *(step.size for step in self.steps))

    @property
    def outputs(self) -> int:
        """Length of the output."""
        return self.sizes[-1]


@dataclass(frozen=True, eq=False)
class Expressions:
    """Affine expressions: matrix base + constant, number by number."""

    matrix: sparse.csr_array
    constant: FloatArray

    def take(self, rows: IntArray) -> Expressions:
        """Some of the expressions."""
        return Expressions(self.matrix[rows], self.constant[rows])

    def times(self, weight: sparse.csr_array, bias: FloatArray | float = 0.0) -> Expressions:
        """weight times the expressions, plus a bias."""
        return Expressions(sparse.csr_array(weight @ self.matrix), weight @ self.constant + bias)


class GraphBuilder:
    """The steps so far, with every number of the program as an affine expression."""

    def __init__(self, inputs: int) -> None:
        self._steps: list[GraphStep] = []
        self._starts = [0]
        """For each vector, the first of its base numbers."""
        self._places = [0]
        """Places of the vectors in the graph."""
        self._inputs = self._base = inputs
        self._entries = 0
        self._made: dict[tuple[bytes, ...], int] = {}
        """Places of vectors by their expressions, so that a vector read twice is made once."""
        eye = sparse.csr_array(sparse.eye_array(inputs, format="csr"))
        self._known: list[Expressions] = [Expressions(eye, np.zeros(inputs))]
        self._ends = [inputs]

    def append(self, numbers: Expressions) -> None:
        """Append the next operation of the program."""
        self._known.append(numbers)
        self._ends.append(self._ends[-1] + len(numbers.constant))

    def read(self, numbers: IntArray) -> Expressions:
        """The expressions of some numbers of the program."""
        read, place = np.unique(numbers, return_inverse=True)
        ones = (np.ones(len(numbers)), (np.arange(len(numbers)), place.ravel()))
        selection = sparse.csr_array(ones, shape=(len(numbers), len(read)))
        return self.summed(read, selection, np.zeros(len(numbers)))

    def summed(self, read: IntArray, weight: FloatArray | sparse.csr_array, bias: FloatArray) -> Expressions:
        """weight times numbers of the program, plus a bias."""
        owner = np.searchsorted(self._ends, read, side="right")
        matrix = sparse.csr_array((len(bias), self._base))
        constant = bias.copy()
        for number in np.unique(owner):
            own = np.flatnonzero(owner == number)
            known = self._known[number]
            known.matrix.resize((known.matrix.shape[0], self._base))
            start = self._ends[number - 1] if number else 0
            part = known.take(read[own] - start).times(sparse.csr_array(weight[:, own]))
            matrix = matrix + part.matrix
            constant = constant + part.constant
        return Expressions(sparse.csr_array(matrix), constant)

    def added(self, one: Expressions, other: Expressions, factor: float = 1.0) -> Expressions:
        """one + factor other, number by number."""
        for part in (one, other):
            part.matrix.resize((len(part.constant), self._base))
        matrix = sparse.csr_array(one.matrix + factor * other.matrix)
        return Expressions(matrix, one.constant + factor * other.constant)

    def constants(self, values: FloatArray) -> Expressions:
        """Numbers that do not depend on the inputs."""
        return Expressions(sparse.csr_array((len(values), self._base)), values)

    def function(self, kind: str, of: Expressions) -> Expressions:
        """A function of single values as new base numbers."""
        return self._new_base(GraphStep(Elementwise(kind), (self.affine(of),), len(of.constant)))

    def product(self, one: Expressions, other: Expressions) -> Expressions:
        """Products, number by number, as new base numbers; a function if the product is known as one."""
        left, right = self.affine(one), self.affine(other)
        for read, gate in ((left, right), (right, left)):
            kind = GATED.get(self._functions_between(read, gate))
            if kind is not None:
                return self._new_base(GraphStep(Elementwise(kind), (read,), len(one.constant)))
        return self._new_base(GraphStep(Product(), (left, right), len(one.constant)))

    def enclosed(self, function: Enclosed, of: Expressions, size: int) -> Expressions:
        """A function of a whole vector as new base numbers."""
        return self._new_base(GraphStep(function, (self.affine(of),), size))

    def _functions_between(self, first: int, last: int) -> tuple[str, ...] | None:
        """The functions that lead from one vector to another; None if other operations are involved."""
        kinds: list[str] = []
        while last > first:
            step = self._steps[last - 1]
            if not isinstance(step.operation, Elementwise):
                return None
            kinds.insert(0, step.operation.kind)
            (last,) = step.sources
        return tuple(kinds) if last == first else None

    def affine(self, wanted: Expressions) -> int:
        """The place of a vector with these values: an existing one, or a new step."""
        wanted.matrix.resize((len(wanted.constant), self._base))
        wanted.matrix.sort_indices()
        parts = (wanted.matrix.indptr, wanted.matrix.indices, wanted.matrix.data, wanted.constant)
        key = tuple(part.tobytes() for part in parts)
        if key not in self._made:
            self._made[key] = self._new_affine(wanted)
        return self._made[key]

    def graph(self, outputs: Expressions) -> Graph:
        """The graph of these outputs, without steps that they do not need."""
        place, size = self.affine(outputs), len(outputs.constant)
        if not place:  # the inputs are passed on
            return Graph(self._inputs, (GraphStep(Affine((np.eye(size),), np.zeros(size)), (0,), size),))
        return Graph(self._inputs, tuple(_needed_steps(self._steps[:place])))

    def _new_affine(self, wanted: Expressions) -> int:
        columns = wanted.matrix.tocsc()
        sources, weights = [], []
        ends = [*self._starts[1:], self._base]
        for place, start, end in zip(self._places, self._starts, ends, strict=True):
            part = columns[:, start:end]
            if part.nnz:
                self._entries += part.shape[0] * part.shape[1]
                if self._entries > LARGEST:
                    raise UnsupportedError(f"its matrices have more than {LARGEST} numbers")
                sources.append(place)
                weights.append(part.toarray())
        if not sources:
            sources, weights = [0], [np.zeros((len(wanted.constant), self._inputs))]
        if len(sources) == 1 and not wanted.constant.any() and is_identity(weights[0]):
            return sources[0]
        self._steps.append(
            GraphStep(Affine(tuple(weights), wanted.constant), tuple(sources), len(wanted.constant))
        )
        return len(self._steps)

    def _new_base(self, step: GraphStep) -> Expressions:
        self._steps.append(step)
        self._places.append(len(self._steps))
        self._starts.append(self._base)
        self._base += step.size
        size = step.size
        ones = (np.ones(size), (np.arange(size), np.arange(self._base - size, self._base)))
        return Expressions(sparse.csr_array(ones, shape=(size, self._base)), np.zeros(size))


def is_identity(weight: FloatArray) -> bool:
    """Whether a matrix is the identity."""
    return weight.shape[0] == weight.shape[1] and bool(np.array_equal(weight, np.eye(len(weight))))


def _needed_steps(steps: list[GraphStep]) -> list[GraphStep]:
    wanted = {len(steps)}
    for place in range(len(steps), 0, -1):
        if place in wanted:
            wanted.update(steps[place - 1].sources)
    kept = [place for place in range(1, len(steps) + 1) if place in wanted]
    number = {0: 0, **{place: new for new, place in enumerate(kept, start=1)}}
    return [
        GraphStep(step.operation, tuple(number[source] for source in step.sources), step.size)
        for step in (steps[place - 1] for place in kept)
    ]
