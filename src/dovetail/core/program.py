"""A network as it is computed: every operation, number by number, in the order they are carried out.

Numbers are known by their place in one long vector: the inputs first, then what each operation gives. Views,
slices and transposes are no operations: they only say which numbers are meant. What a bound needs is made of
it: the graph (`core/program_graph.py`) and what rounding can do (`core/program_rounding.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.rounding import Arithmetic
from dovetail.networks.functions import FUNCTIONS

NOTHING = -1
"""In the place of a number: none, which a maximum leaves out."""
LARGEST = 20_000_000
"""Terms of one sum, at most: 240 MB. What is larger takes minutes to bound, and more memory than there is."""


@dataclass(frozen=True, eq=False)
class Sums:
    """matrix v + bias."""

    matrix: sparse.csr_array
    """(size, numbers before)."""
    bias: FloatArray
    bulk: FloatArray
    """What else goes into each number on the way, in absolute value: rounding is relative to it, too."""
    exact: bool
    """Whether nothing is rounded: constants."""

    @property
    def size(self) -> int:
        """How many numbers it gives."""
        return len(self.bias)


@dataclass(frozen=True, eq=False)
class Functions:
    """One of `networks/functions.FUNCTIONS`, of single numbers."""

    kind: str
    read: IntArray

    @property
    def size(self) -> int:
        """How many numbers it gives."""
        return len(self.read)


@dataclass(frozen=True, eq=False)
class Products:
    """Of pairs of numbers."""

    left: IntArray
    right: IntArray

    @property
    def size(self) -> int:
        """How many numbers it gives."""
        return len(self.left)


@dataclass(frozen=True, eq=False)
class Maxima:
    """The largest of some numbers each."""

    read: IntArray
    """(size, how many)."""

    @property
    def size(self) -> int:
        """How many numbers it gives."""
        return len(self.read)


@dataclass(frozen=True, eq=False)
class Softmax:
    """softmax of each row, or its logarithm."""

    read: IntArray
    """(rows, how many)."""
    logarithm: bool = False

    @property
    def size(self) -> int:
        """How many numbers it gives."""
        return self.read.size


@dataclass(frozen=True, eq=False)
class Normalised:
    """c / sqrt(mean of c^2 + eps) of each row, where c is what is left when its mean is taken off."""

    read: IntArray
    """(rows, how many)."""
    eps: float

    @property
    def size(self) -> int:
        """How many numbers it gives."""
        return self.read.size


Operation = Sums | Functions | Products | Maxima | Softmax | Normalised


@dataclass(frozen=True, eq=False)
class Program:
    """Operations in their order, and which numbers are the outputs."""

    inputs: int
    operations: tuple[Operation, ...]
    outputs: IntArray
    formats: frozenset[str]
    """Of all numbers, by numpy's names."""
    convolves: bool
    """Whether there are convolutions, which libraries carry out in ways of their own."""
    arithmetic: Arithmetic | None = None
    """What it is carried out in; None where that is not known, and nothing can be proved of its values."""

    def without_last(self, threshold: float) -> tuple[Program, str]:
        """The program whose outputs decide the class, and the rising function that was dropped; or nothing.

        As `core/layers.dropped`: a single output may lose a sigmoid, whose threshold becomes a logit.
        """
        start = self.inputs + sum(one.size for one in self.operations[:-1])
        last = self.operations[-1] if self.operations else None
        if last is None or not np.array_equal(self.outputs, np.arange(start, start + last.size)):
            return self, ""
        single = last.size == 1
        if isinstance(last, Functions) and FUNCTIONS[last.kind].rises:
            if not single or (last.kind == "sigmoid" and 0.0 < threshold < 1.0):
                return replace(self, operations=self.operations[:-1], outputs=last.read), last.kind
        elif isinstance(last, Softmax) and not single and len(last.read) == 1:
            kind = "log_softmax" if last.logarithm else "softmax"
            return replace(self, operations=self.operations[:-1], outputs=last.read[0]), kind
        return self, ""

    def values(self, X: FloatArray) -> FloatArray:
        """What it gives for each row of `X`, in float64."""
        found = np.empty((len(X), self.inputs + sum(one.size for one in self.operations)))
        found[:, : self.inputs] = X
        start = self.inputs
        for one in self.operations:
            found[:, start : start + one.size] = _computed(one, found[:, :start])
            start += one.size
        return found[:, self.outputs]


def _computed(one: Operation, v: FloatArray) -> FloatArray:
    if isinstance(one, Sums):
        return np.asarray((one.matrix @ v.T).T + one.bias)
    if isinstance(one, Functions):
        return np.asarray(FUNCTIONS[one.kind].value(v[:, one.read]))
    if isinstance(one, Products):
        return np.asarray(v[:, one.left] * v[:, one.right])
    if isinstance(one, Maxima):
        return np.asarray(v[:, one.read].max(axis=2))
    if isinstance(one, Normalised):
        centred = v[:, one.read] - v[:, one.read].mean(axis=2, keepdims=True)
        rate = np.sqrt(np.square(centred).mean(axis=2, keepdims=True) + one.eps)
        return np.asarray(centred / rate).reshape(len(v), -1)
    logits = v[:, one.read] - v[:, one.read].max(axis=2, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    return np.asarray(logs if one.logarithm else np.exp(logs)).reshape(len(v), -1)


@dataclass(eq=False)
class Recording:
    """A program in the making. Everything it is told gives the places of the new numbers."""

    inputs: int
    operations: list[Operation] = field(default_factory=list)
    formats: set[str] = field(default_factory=set)
    convolves: bool = False
    count: int = 0

    def __post_init__(self) -> None:
        self.count = self.inputs

    @classmethod
    def resumed(cls, program: Program) -> Recording:
        """A recording that goes on where a program ends."""
        made = cls(program.inputs, list(program.operations), set(program.formats), program.convolves)
        made.count += sum(one.size for one in program.operations)
        return made

    def program(self, outputs: IntArray) -> Program:
        """What was recorded, with these outputs."""
        return Program(self.inputs, tuple(self.operations), outputs, frozenset(self.formats), self.convolves)

    def sums(
        self,
        rows: IntArray,
        read: IntArray,
        weights: FloatArray,
        bias: FloatArray,
        *,
        bulk: FloatArray | None = None,
    ) -> IntArray:
        """Number rows[k] has the term weights[k] times number read[k]."""
        if len(weights) > LARGEST:
            raise UnsupportedError(f"a sum of {len(weights)} terms is too large to be bounded")
        if not (np.all(np.isfinite(weights)) and np.all(np.isfinite(bias))):
            raise UnsupportedError("a constant that is not finite has no bound")
        _require_numbers(read)
        matrix = sparse.csr_array((weights, (rows, read)), shape=(len(bias), self.count))
        matrix.eliminate_zeros()
        bulk = np.zeros(len(bias)) if bulk is None else bulk
        return self._add(Sums(matrix, np.asarray(bias, dtype=np.float64), bulk, exact=False))

    def constants(self, values: FloatArray) -> IntArray:
        """Numbers that do not depend on the inputs."""
        if not np.all(np.isfinite(values)):
            raise UnsupportedError("a constant that is not finite has no bound")
        size = len(values)
        nothing = sparse.csr_array((size, self.count), dtype=np.float64)
        return self._add(Sums(nothing, np.asarray(values, dtype=np.float64), np.zeros(size), exact=True))

    def functions(self, kind: str, read: IntArray) -> IntArray:
        """Of single numbers."""
        return self._add(Functions(kind, read), read=read)

    def products(self, left: IntArray, right: IntArray) -> IntArray:
        """Of pairs."""
        return self._add(Products(left, right), read=np.minimum(left, right))

    def maxima(self, read: IntArray) -> IntArray:
        """Of each row; what is `NOTHING` does not count."""
        largest = read.max(axis=1, keepdims=True)
        return self._add(Maxima(np.where(read == NOTHING, largest, read)), read=largest)

    def shares(self, read: IntArray, *, logarithm: bool) -> IntArray:
        """Softmax of each row, row after row."""
        return self._add(Softmax(read, logarithm), read=read)

    def normalised(self, read: IntArray, eps: float) -> IntArray:
        """Of each row, row after row."""
        return self._add(Normalised(read, eps), read=read)

    def _add(self, one: Operation, read: IntArray | None = None) -> IntArray:
        if read is not None:
            _require_numbers(read)
        self.operations.append(one)
        self.count += one.size
        return np.arange(self.count - one.size, self.count)


def _require_numbers(read: IntArray) -> None:
    if np.any(read == NOTHING):
        raise UnsupportedError("a constant that is not finite has no bound")
