"""Sets of a network's inputs in addition to their box: balls and simplices from constraints.

Planes over a box take every input at its worst. If a constraint excludes most corners of the box, ranges of
neurons over the set are much narrower and cost one sort (an adversarial example then takes 9 boxes instead of
hundreds).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from dovetail.bounds.box import Box
from dovetail.bounds.planes.domain import Domain
from dovetail.bounds.planes.moves import Moves
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.mip import TOLERANCE
from dovetail.core.problem import Problem
from dovetail.structure.components import SampleComponent
from dovetail.structure.move_sets import MoveSet, move_set, moves_of

FEW_INPUTS = 10
"""Networks with at most this number of free inputs are divided by inputs: with signs as candidates too,
the score chose them 7 times of 385; with 64 inputs, only signs close the tree."""


@dataclass(frozen=True, eq=False)
class Intersection:
    """The intersection of N sets with N others."""

    one: Domain
    other: Domain

    @property
    def lower(self) -> Tensor:
        """(N, d) lower limits of a box around each set."""
        return torch.maximum(self.one.lower, self.other.lower)

    @property
    def upper(self) -> Tensor:
        """(N, d)."""
        return torch.minimum(self.one.upper, self.other.upper)

    def minimum(self, slopes: Tensor, offsets: Tensor) -> Tensor:
        """(N, S) the better of both bounds."""
        return torch.fmax(self.one.minimum(slopes, offsets), self.other.minimum(slopes, offsets))

    def take(self, chosen: Tensor | slice) -> Domain:
        """A selection of the sets, by index."""
        return Intersection(self.one.take(chosen), self.other.take(chosen))


@dataclass(frozen=True, eq=False)
class InputSets:
    """The sets of all samples of one network."""

    columns: IntArray
    """(samples, m) columns of the moves: column = start + sign t."""
    start: FloatArray
    sign: FloatArray
    moves: Moves

    def within(
        self, boxes: Domain, lower: FloatArray, upper: FloatArray, box: IntArray, sample: IntArray
    ) -> Domain:
        """The sets within boxes of inputs, for these samples in these of N boxes of columns."""
        columns, start, sign = self.columns[sample], self.start[sample], self.sign[sample]
        from_start = [sign * (ends[box[:, None], columns] - start) for ends in (lower, upper)]
        limit = self.moves.limit.numpy()[sample]
        least = np.clip(np.minimum(*from_start), 0.0, limit)
        most = np.clip(np.maximum(*from_start), least, limit)
        moves = self.moves.take(torch.from_numpy(sample))
        return Intersection(boxes, moves.within(torch.from_numpy(least), torch.from_numpy(most))[0])


def input_sets(problem: Problem, block: Block, lower: FloatArray, upper: FloatArray) -> InputSets | None:
    """The sets of a block's samples, in a box relaxed as in the check; None if they read few inputs, no row
    limits them together, or directions differ between samples."""
    if np.all((upper > lower)[block.inputs].sum(1) <= FEW_INPUTS):
        return None
    n, columns, found = problem.mip.n_columns, problem.mip.A.tocsc(), list[MoveSet]()
    for sample in range(block.samples):
        part = _around(problem, columns, block, sample)
        one = move_set(problem, part, Box(lower[:n], upper[:n]), TOLERANCE, projected=True)
        if one is None or not (one.weights @ one.limit > one.most or np.isfinite(one.least)):
            return None
        found.append(one)
    if not all(np.array_equal(one.directions, found[0].directions) for one in found):
        return None
    places, start, sign = (np.array([getattr(one, name) for one in found]) for name in PLACES)
    return InputSets(places, start, sign, moves_of(found))


PLACES = "columns", "start", "sign"


def _around(problem: Problem, columns: sp.csc_array, block: Block, sample: int) -> SampleComponent:
    """A sample with the columns that define its inputs, and all rows that contain any of these."""
    mip, reads = problem.mip, block.inputs[sample]
    rows = _entries(columns, reads)
    equal = rows[mip.row_lower[rows] == mip.row_upper[rows]]
    members = np.union1d(reads, _entries(mip.A, equal))
    return SampleComponent(0, block, sample, members, _entries(columns, members))


def _entries(matrix: sp.csr_array | sp.csc_array, lines: IntArray) -> IntArray:
    """The entries of some rows, or columns."""
    ends = zip(matrix.indptr[lines], matrix.indptr[lines + 1], strict=True)
    found = [matrix.indices[:0], *(matrix.indices[first:last] for first, last in ends)]
    return np.unique(np.concatenate(found)).astype(np.int64)
