"""A network as a program: every scalar operation, in the order of computation.

Numbers are known by their index in one long vector: the inputs first, then the result of each operation.
Views, slices and transposes are no operations: they only select indices.

All facts about a network follow from its program, operation by operation: values, ranges, rounding errors,
and the graph from which planes are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import sparse

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.deadline import require_time
from dovetail.core.errors import UnsupportedError
from dovetail.core.pieces import pieces
from dovetail.networks.arithmetic import Arithmetic
from dovetail.networks.elementwise import Functions
from dovetail.networks.graph import Graph, GraphBuilder
from dovetail.networks.largest import MAXIMUM, Largest
from dovetail.networks.normalised import Normalised
from dovetail.networks.operation import Between, Operation
from dovetail.networks.products import Products
from dovetail.networks.softmax import Softmax
from dovetail.networks.sums import Sums

Provenance = Literal["layers", "trace"]
"""Layers of exact types, whose code is known; or operations that were seen to be carried out on one row. Both
are compared with the predictor before a proof uses them, a trace at more points."""
NOTHING = -1
"""Stands for a missing number, which a maximum ignores."""
LARGEST = 20_000_000
"""Largest number of terms of one sum: 240 MB. Larger sums take minutes to bound."""
DENSE = 0.25
"""Sums with a larger share of nonzero terms are stored as full matrices."""
AT_ONCE = 64
"""Size of the pieces of samples whose errors are computed together."""


@dataclass(frozen=True, eq=False)
class Program:
    """Operations in order, and the places of the outputs."""

    inputs: int
    operations: tuple[Operation, ...]
    outputs: IntArray
    formats: frozenset[str]
    """Dtypes of all numbers, by numpy's names."""
    convolves: bool
    """Whether there are convolutions, which libraries compute by their own algorithms."""
    arithmetic: Arithmetic | None = None
    """The arithmetic of the program; None if unknown; then no bound of its values can be proved."""
    provenance: Provenance = "trace"
    """How the program was obtained."""

    @property
    def count(self) -> int:
        """Number of all numbers, including inputs and outputs."""
        return self.inputs + sum(one.size for one in self.operations)

    def values(self, X: FloatArray) -> FloatArray:
        """The outputs for each row of `X`, in float64."""
        found = np.empty((len(X), self.count))
        found[:, : self.inputs] = X
        for one, start, end in self._operations_with_places():
            found[:, start:end] = one.values(found[:, :start])
        return found[:, self.outputs]

    def ranges(self, lower: FloatArray, upper: FloatArray) -> Between:
        """(n, count) bounds of all numbers, operation by operation, for inputs between (n, d) bounds."""
        low, high = np.empty((2, len(lower), self.count))
        low[:, : self.inputs], high[:, : self.inputs] = lower, upper
        with np.errstate(all="ignore"):  # NaN counts as unknown
            for one, start, end in self._operations_with_places():
                low[:, start:end], high[:, start:end] = one.range(low[:, :start], high[:, :start])
        return low, high

    def errors(
        self, arithmetic: Arithmetic, lower: FloatArray, upper: FloatArray, given: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """For each output, with inputs between (n, d) bounds: its bounds, and the largest error of the
        network.

        `given`: the errors of the inputs, by default of their conversion. Equal bounds give the error at a
        point. Infinity if no bound is known: if a sum is too long for the
        format, or numbers exceed its range.
        """
        if given is None:
            given = arithmetic.cast(lower, upper)
        some = list(pieces(len(lower), 3 * self.count, times=AT_ONCE)) or [slice(0, 0)]
        found = [self._errors(arithmetic, lower[part], upper[part], given[part]) for part in some]
        low, high, error = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return low, high, error

    def _errors(
        self, arithmetic: Arithmetic, lower: FloatArray, upper: FloatArray, given: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        low, high = self.ranges(lower, upper)
        error = np.empty(low.shape)
        error[:, : self.inputs] = given
        with np.errstate(all="ignore"):  # NaN counts as unknown
            for one, start, end in self._operations_with_places():
                require_time()
                off = one.error(arithmetic, low[:, :start], high[:, :start], error[:, :start])
                error[:, start:end] = np.where(np.isnan(off), np.inf, off)
        return low[:, self.outputs], high[:, self.outputs], error[:, self.outputs]

    def graph(self, shift: float = 0.0) -> Graph:
        """The graph of the program, with its outputs shifted by `shift`."""
        return self._graph if shift == 0.0 else self._built(shift)

    @cached_property
    def _graph(self) -> Graph:
        return self._built(0.0)

    def _built(self, shift: float) -> Graph:
        builder = GraphBuilder(self.inputs)
        for one in self.operations:
            builder.append(one.write(builder))
        outputs = builder.read(self.outputs)
        return builder.graph(replace(outputs, constant=outputs.constant + shift))

    def without_last(self, threshold: float) -> tuple[Program, str]:
        """The program without an increasing last function that does not change the class, and that function;
        or None. A single output may lose a sigmoid, whose threshold becomes a logit."""
        last = self.operations[-1] if self.operations else None
        if last is None or not np.array_equal(self.outputs, np.arange(self.count - last.size, self.count)):
            return self, ""
        single = last.size == 1
        if isinstance(last, Functions) and last.function.rises:
            if not single or (last.kind == "sigmoid" and 0.0 < threshold < 1.0):
                return replace(self, operations=self.operations[:-1], outputs=last.read), last.kind
        elif isinstance(last, Softmax) and not single and len(last.read) == 1:
            return replace(self, operations=self.operations[:-1], outputs=last.read[0]), last.kind
        return self, ""

    def with_more_inputs(self, extra: int) -> Program:
        """The same program with additional inputs after its own, which it ignores."""
        if not extra:
            return self

        def moved(places: IntArray) -> IntArray:
            return np.where(places >= self.inputs, places + extra, places)

        operations = tuple(one.moved(moved) for one in self.operations)
        outputs = moved(self.outputs)
        return replace(self, inputs=self.inputs + extra, operations=operations, outputs=outputs)

    @property
    def read_inputs(self) -> BoolArray:
        """(inputs,) which inputs some operation reads with a weight other than 0, or are outputs."""
        found = np.zeros(self.count, dtype=bool)
        found[self.outputs] = True
        for one in self.operations:
            found[one.sources] = True
        return found[: self.inputs]

    def after(self, first: Program) -> Program:
        """The program that reads the outputs of another one, in the coarser arithmetic of the two."""
        begin = first.count - self.inputs
        if not np.array_equal(first.outputs, np.arange(begin, first.count)):
            raise UnsupportedError("outputs in another order than the numbers that are computed last")

        def moved(places: IntArray) -> IntArray:
            return places + begin

        both = first.arithmetic, self.arithmetic
        known = [one for one in both if one is not None]
        return Program(
            first.inputs,
            first.operations + tuple(one.moved(moved) for one in self.operations),
            moved(self.outputs),
            first.formats | self.formats,
            first.convolves or self.convolves,
            max(known, key=lambda one: one.roundoff) if len(known) == 2 else None,
            "layers" if first.provenance == self.provenance == "layers" else "trace",
        )

    def _operations_with_places(self) -> Iterator[tuple[Operation, int, int]]:
        """Every operation with the places of its results."""
        start = self.inputs
        for one in self.operations:
            yield one, start, start + one.size
            start += one.size


@dataclass(eq=False)
class Recording:
    """A program under construction. Each method returns the places of the new numbers."""

    inputs: int
    operations: list[Operation] = field(default_factory=list)
    formats: set[str] = field(default_factory=set)
    convolves: bool = False
    count: int = 0

    def __post_init__(self) -> None:
        self.count = self.inputs

    @classmethod
    def resumed(cls, program: Program) -> Recording:
        """A recording that continues a program."""
        made = cls(program.inputs, list(program.operations), set(program.formats), program.convolves)
        made.count = program.count
        return made

    @classmethod
    def of_several(cls, programs: Sequence[Program]) -> tuple[Recording, list[IntArray]]:
        """Programs over the same inputs, one after the other, and the places of the outputs of each."""
        made, places = cls(programs[0].inputs), list[IntArray]()
        for program in programs:
            moved = program.with_more_inputs(made.count - made.inputs)  # numbers so far are inputs it ignores
            made.operations += moved.operations
            made.count = moved.count
            made.formats |= program.formats
            made.convolves |= program.convolves
            places.append(moved.outputs)
        return made, places

    def program(self, outputs: IntArray) -> Program:
        """The recorded program with these outputs."""
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
        """Sum rows[k] has the term weights[k] times number read[k]."""
        if len(weights) > LARGEST:
            raise UnsupportedError(f"a sum of {len(weights)} terms is too large to be bounded")
        if not (np.all(np.isfinite(weights)) and np.all(np.isfinite(bias))):
            raise UnsupportedError("a constant that is not finite has no bound")
        _require_numbers(read)
        matrix = sparse.csr_array((weights, (rows, read)), shape=(len(bias), self.count))
        matrix.eliminate_zeros()
        places = np.unique(matrix.indices)
        weight = matrix[:, places]
        if weight.nnz >= DENSE * len(bias) * len(places):
            weight = weight.toarray()
        bulk = np.zeros(len(bias)) if bulk is None else bulk
        return self.add(Sums(places, weight, np.asarray(bias, dtype=np.float64), bulk))

    def constants(self, values: FloatArray) -> IntArray:
        """Constant numbers."""
        if not np.all(np.isfinite(values)):
            raise UnsupportedError("a constant that is not finite has no bound")
        nothing, bias = np.zeros(0, dtype=np.int64), np.asarray(values, dtype=np.float64)
        return self.add(Sums(nothing, np.zeros((len(bias), 0)), bias, np.zeros(len(bias)), exact=True))

    def functions(self, kind: str, read: IntArray) -> IntArray:
        """An operation on single numbers."""
        return self.add(Functions(kind, read), read=read)

    def products(self, left: IntArray, right: IntArray) -> IntArray:
        """An operation on pairs of numbers."""
        return self.add(Products(left, right), read=np.minimum(left, right))

    def maxima(self, read: IntArray) -> IntArray:
        """The largest of each row, ignoring `NOTHING`."""
        largest = read.max(axis=1, keepdims=True)
        return self.add(Largest(np.where(read == NOTHING, largest, read), MAXIMUM), read=largest)

    def largest(self, read: IntArray, shares: FloatArray) -> IntArray:
        """Weighted sums of the largest numbers of each row."""
        return self.add(Largest(read, shares), read=read)

    def shares(self, read: IntArray, *, logarithm: bool) -> IntArray:
        """Softmax of each row, row after row."""
        return self.add(Softmax(read, logarithm), read=read)

    def normalised(self, read: IntArray, eps: float) -> IntArray:
        """Normalise each row, one row after the other."""
        return self.add(Normalised(read, eps), read=read)

    def add(self, one: Operation, read: IntArray | None = None) -> IntArray:
        """Add an operation; `read` are places that must be numbers."""
        if read is not None:
            _require_numbers(read)
        self.operations.append(one)
        self.count += one.size
        return np.arange(self.count - one.size, self.count)


def _require_numbers(read: IntArray) -> None:
    if np.any(read == NOTHING):
        raise UnsupportedError("a constant that is not finite has no bound")
