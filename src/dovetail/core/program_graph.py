"""A program as a graph of few steps: everything affine between two nonlinear steps multiplied out.

Every number is kept as an affine expression of `base` numbers: the inputs and what nonlinear steps give. Only
a nonlinear step makes the graph longer. A maximum is written with ReLUs, max(a, b) = a + relu(b - a), and
a share of a softmax as 1 / (1 + sum of exp(z_j - z_i)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.graph import Affine, Elementwise, Graph, GraphStep, Product
from dovetail.core.program import (
    Functions,
    Maxima,
    Normalised,
    Operation,
    Products,
    Program,
    Softmax,
    Sums,
)

LARGEST = 20_000_000
"""Numbers in all matrices of a graph: 160 MB. Bounding a larger one would take minutes."""


@dataclass(frozen=True, eq=False)
class Expressions:
    """matrix base + constant, number by number."""

    matrix: sparse.csr_array
    constant: FloatArray

    def take(self, rows: IntArray) -> Expressions:
        """Some of the numbers."""
        return Expressions(self.matrix[rows], self.constant[rows])

    def minus(self, other: Expressions) -> Expressions:
        """Number by number."""
        return Expressions(self.matrix - other.matrix, self.constant - other.constant)


def graph_of(program: Program, shift: float = 0.0) -> Graph:
    """The graph of a program, its outputs moved by `shift`."""
    making = _Making(program.inputs)
    for operation in program.operations:
        making.carry_out(operation)
    outputs = making.read(program.outputs)
    place = making.affine(Expressions(outputs.matrix, outputs.constant + shift))
    size = len(program.outputs)
    handed_on = [GraphStep(Affine((np.eye(size),), np.zeros(size)), (0,), size)]
    return Graph(program.inputs, tuple(_needed(making.steps[:place] if place else handed_on)))


class _Making:
    """The steps so far, and every number of the program as an expression."""

    def __init__(self, inputs: int) -> None:
        self.steps: list[GraphStep] = []
        self._starts = [0]
        """Of the base numbers of each vector, by the order in which vectors became base."""
        self._places = [0]
        """Their places in the graph."""
        self._inputs = self._base = inputs
        self._entries = 0
        self._made: dict[tuple[bytes, ...], int] = {}
        """Places of vectors by their expressions: what two steps read is made once."""
        eye = sparse.csr_array(sparse.eye_array(inputs, format="csr"))
        self._known: list[Expressions] = [Expressions(eye, np.zeros(inputs))]
        self._ends = [inputs]

    def carry_out(self, operation: Operation) -> None:
        if isinstance(operation, Sums):
            found = self._summed(operation)
        elif isinstance(operation, Functions):
            found = self.function(operation.kind, self.read(operation.read))
        elif isinstance(operation, Products):
            left, right = self.affine(self.read(operation.left)), self.affine(self.read(operation.right))
            found = self._new_base(GraphStep(Product(), (left, right), operation.size))
        elif isinstance(operation, Maxima):
            found = self._maxima(operation)
        elif isinstance(operation, Normalised):
            found = self._normalised(operation)
        else:
            found = self._shares(operation)
        self._known.append(found)
        self._ends.append(self._ends[-1] + operation.size)

    def read(self, numbers: IntArray) -> Expressions:
        """The expressions of some numbers of the program."""
        size = len(numbers)
        selection = sparse.csr_array(
            (np.ones(size), (np.arange(size), numbers)), shape=(size, self._ends[-1])
        )
        return self._summed(Sums(selection, np.zeros(size), np.zeros(size), exact=True))

    def _summed(self, sums: Sums) -> Expressions:
        columns = sums.matrix.tocsc()
        used = np.unique(np.searchsorted(self._ends, sums.matrix.indices, side="right"))
        matrix = sparse.csr_array((sums.size, self._base))
        constant = sums.bias.copy()
        for number in used:
            start = self._ends[number - 1] if number else 0
            part = columns[:, start : self._ends[number]].tocsr()
            known = self._known[number]
            known.matrix.resize((known.matrix.shape[0], self._base))
            matrix = matrix + part @ known.matrix
            constant = constant + part @ known.constant
        return Expressions(sparse.csr_array(matrix), constant)

    def affine(self, wanted: Expressions) -> int:
        """The place of a vector with these values: one that is there, or a new step."""
        wanted.matrix.resize((len(wanted.constant), self._base))
        wanted.matrix.sort_indices()
        parts = (wanted.matrix.indptr, wanted.matrix.indices, wanted.matrix.data, wanted.constant)
        key = tuple(part.tobytes() for part in parts)
        if key not in self._made:
            self._made[key] = self._new_affine(wanted)
        return self._made[key]

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
        if len(sources) == 1 and not wanted.constant.any() and _is_identity(weights[0]):
            return sources[0]
        self.steps.append(
            GraphStep(Affine(tuple(weights), wanted.constant), tuple(sources), len(wanted.constant))
        )
        return len(self.steps)

    def function(self, kind: str, of: Expressions) -> Expressions:
        """A function of single values as new base numbers."""
        return self._new_base(GraphStep(Elementwise(kind), (self.affine(of),), len(of.constant)))

    def _new_base(self, step: GraphStep) -> Expressions:
        self.steps.append(step)
        self._places.append(len(self.steps))
        self._starts.append(self._base)
        self._base += step.size
        size = step.size
        ones = (np.ones(size), (np.arange(size), np.arange(self._base - size, self._base)))
        return Expressions(sparse.csr_array(ones, shape=(size, self._base)), np.zeros(size))

    def _maxima(self, operation: Maxima) -> Expressions:
        """In rounds of pairs."""
        rivals = [self.read(column) for column in operation.read.T]
        while len(rivals) > 1:
            pairs = list(zip(rivals[0::2], rivals[1::2], strict=False))
            left = rivals[-1:] if len(rivals) % 2 else []
            rivals = [self._larger(a, b) for a, b in pairs] + left
        return rivals[0]

    def _larger(self, a: Expressions, b: Expressions) -> Expressions:
        for one in (a, b):
            one.matrix.resize((len(one.constant), self._base))
        ahead = self.function("relu", b.minus(a))
        a.matrix.resize(ahead.matrix.shape)
        return Expressions(a.matrix + ahead.matrix, a.constant + ahead.constant)

    def _normalised(self, operation: Normalised) -> Expressions:
        rows, count = operation.read.shape
        eye, mean = sparse.eye_array(rows), np.full((1, count), 1.0 / count)
        centring = sparse.csr_array(sparse.kron(eye, np.eye(count) - mean))
        given = self.read(operation.read.ravel())
        centred = Expressions(centring @ given.matrix, centring @ given.constant)
        squares = self.function("square", centred)
        means = sparse.csr_array(sparse.kron(eye, mean)) @ squares.matrix
        rate = self.function("rsqrt", Expressions(means, np.full(rows, operation.eps)))
        places = self.affine(centred), self.affine(rate.take(np.repeat(np.arange(rows), count)))
        return self._new_base(GraphStep(Product(), places, rows * count))

    def _shares(self, operation: Softmax) -> Expressions:
        rows, count = operation.read.shape
        if count == 1:
            alone = np.full(rows, 0.0 if operation.logarithm else 1.0)
            return Expressions(sparse.csr_array((rows, self._base)), alone)
        own, others = np.nonzero(~np.eye(count, dtype=bool))
        mine, theirs = operation.read[:, own].ravel(), operation.read[:, others].ravel()
        ahead = self.read(theirs).minus(self.read(mine))
        if count == 2 and not operation.logarithm:
            return self.function("sigmoid", Expressions(-ahead.matrix, -ahead.constant))
        powers = self.function("exp", ahead)
        size = rows * count
        places = np.repeat(np.arange(size), count - 1)
        adding = sparse.csr_array((np.ones(len(places)), (places, np.arange(len(places)))))
        total = Expressions(adding @ powers.matrix, np.ones(size))
        if operation.logarithm:
            logs = self.function("log", total)
            return Expressions(-logs.matrix, -logs.constant)
        return self.function("reciprocal", total)


def _is_identity(weight: FloatArray) -> bool:
    return weight.shape[0] == weight.shape[1] and bool(np.array_equal(weight, np.eye(len(weight))))


def _needed(steps: list[GraphStep]) -> list[GraphStep]:
    """Without those that nothing reads on the way to the last, numbered anew."""
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
