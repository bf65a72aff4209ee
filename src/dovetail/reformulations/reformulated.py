"""The protocol for rewriting problems, with the way back for points.

A reformulation appends columns and rows and may turn block samples into them: points are restricted by
dropping the new columns and lifted by computing them. A presolve removes or joins columns and has maps in
both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import Box, narrow, propagate
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.problem import Problem
from dovetail.run.context import CheckpointSource, SolveContext, Start
from dovetail.run.incumbent import LiftedIncumbent
from dovetail.structure.structure import structure_of

FillColumns = Callable[[FloatArray], FloatArray]
"""Computes the values of some new columns from all columns before them."""


@dataclass(frozen=True, eq=False)
class Reformulated:
    """A rewritten problem, and the maps of points."""

    problem: Problem
    previous: Reformulated | None = None
    """The problem before the last reformulation; None: nothing was rewritten."""
    fills: tuple[FillColumns, ...] = ()
    settled: FillColumns | None = None
    """Sets the new columns of a point to the values that their definitions give; None: unchanged."""
    relaxed: Reformulated | None = None
    """The problem that bounds are proved for, if not `problem`."""
    slack: FloatArray | None = None
    """By how much each earlier column may differ here, because the predictors of a relaxation round."""
    proves: bool = True
    note: str = ""
    """A description of the reformulation, for the log."""
    known_box: Box | None = None
    into: sp.csr_array | None = None
    """The first columns here, each a sum of earlier columns (see `picked`); None: all of them unchanged."""
    back: FillColumns | None = None
    """All earlier columns from these first ones; None if they are the same."""

    @classmethod
    def start(cls, problem: Problem, box: Box, relaxed: Problem | None = None) -> Reformulated:
        """An unchanged problem with a box that contains its points; `relaxed` is the problem that bounds are
        proved for."""
        twin = None if relaxed is None else cls(relaxed, known_box=box)
        return cls(problem, relaxed=twin, known_box=box)

    @property
    def original(self) -> Problem:
        """The problem before any rewriting."""
        return self.problem if self.previous is None else self.previous.original

    @property
    def for_bounds(self) -> Reformulated:
        """The problem that bounds are proved for."""
        return self if self.relaxed is None else self.relaxed

    @cached_property
    def box(self) -> Box:
        """A box that contains every point of the problem and of its relaxation."""
        if self.known_box is not None:
            return self.known_box
        if self.relaxed is not None:
            return self.relaxed.box
        assert self.previous is not None
        before, mip = self.previous.box, self.problem.mip
        slack = np.zeros(before.lower.size) if self.slack is None else self.slack
        least, most = self._first_ends(before.lower - slack, before.upper + slack)
        lower, upper = mip.lower.copy(), mip.upper.copy()
        narrow(lower, upper, np.arange(least.size), least, most)
        return propagate(replace(mip.minimised(), lower=lower, upper=upper))  # rows bound the outputs

    def lift(self, x: FloatArray) -> FloatArray:
        """A point of the original as one of this problem."""
        if self.previous is None:
            return x
        z = self._first_columns(self.previous.lift(x))
        return np.concatenate([z, *(fill(z) for fill in self.fills)])

    def _first_columns(self, values: FloatArray) -> FloatArray:
        """The first columns here for an earlier point."""
        return values if self.into is None else np.asarray(self.into @ values)

    def _first_ends(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The ranges of the first columns here, from ranges of the earlier columns."""
        if self.into is None:
            return lower, upper
        up, down = self.into.maximum(0.0), self.into.minimum(0.0)
        return up @ lower + down @ upper, up @ upper + down @ lower

    def carried(self, values: FloatArray) -> FloatArray:
        """Sizes of the original's columns as sizes of the columns here; 0 for appended columns."""
        if self.previous is None:
            return values
        before = self.previous.carried(values)
        first = before if self.into is None else np.asarray(abs(self.into) @ before)
        return np.concatenate([first, np.zeros(self.problem.mip.n_columns - first.size)])

    def restrict(self, z: FloatArray) -> FloatArray:
        """A point of this problem as one of the original."""
        if self.previous is None:
            return z
        meant = z if self.settled is None else self.settled(z)
        if self.back is not None and self.into is not None:
            return self.previous.restrict(self.back(meant[: self.into.shape[0]]))
        return self.previous.restrict(meant[: self.previous.problem.mip.n_columns])

    def original_prices(self, prices: FloatArray) -> FloatArray:
        """Multipliers of the rows here as those of the original's rows that are the same up to a factor; 0
        for its other rows."""
        there = self.original.mip
        if prices.size != self.problem.mip.n_rows:  # of a relaxation with other rows
            return np.zeros(there.n_rows)
        priced = np.flatnonzero(prices)
        mine = self._over_original(self.problem.mip.A[priced])
        known = {key: (k, size) for k, (key, size) in enumerate(_row_keys(mine)) if key is not None}
        found = np.zeros(there.n_rows)
        for i, (key, size) in enumerate(_row_keys(there.A)):
            if key is not None and key in known:
                k, own = known[key]
                found[i] = prices[priced[k]] * own / size
        return found

    def _over_original(self, rows: sp.csr_array) -> sp.csr_array:
        """Rows over the original's columns; empty for rows with appended columns."""
        if self.previous is None:
            return rows
        first = self.previous.problem.mip.n_columns if self.into is None else self.into.shape[0]
        appended = np.diff(rows[:, first:].indptr) > 0
        kept = sp.csr_array(sp.diags_array((~appended).astype(np.float64)) @ rows[:, :first])
        kept = kept if self.into is None else sp.csr_array(kept @ self.into)
        kept.eliminate_zeros()
        return self.previous._over_original(kept)


SAME_DIGITS = 9
"""Digits after the point in which entries of the same row agree, relative to the first."""


def _row_keys(A: sp.csr_array) -> Iterator[tuple[tuple[bytes, bytes] | None, float]]:
    """What rows that are the same up to a factor have in common, and the factor; None for empty rows."""
    A = sp.csr_array(A)
    A.sort_indices()
    for begin, end in zip(A.indptr[:-1].tolist(), A.indptr[1:].tolist(), strict=True):
        entries, columns = A.data[begin:end], A.indices[begin:end].astype(np.int64)
        if begin == end:
            yield None, 1.0
        else:
            shape = np.round(entries / entries[0], SAME_DIGITS) + 0.0
            yield (columns.tobytes(), shape.tobytes()), float(entries[0])


def picked(columns: IntArray, count: int) -> sp.csr_array:
    """Some of so many columns, in this order, in the form of `Reformulated.into`."""
    ones = np.ones(columns.size)
    return sp.csr_array((ones, columns, np.arange(columns.size + 1)), shape=(columns.size, count))


class Reformulation(Protocol):
    """One way to rewrite problems."""

    @property
    def name(self) -> str:
        """The name in the log."""
        ...

    def apply(self, given: Reformulated) -> Reformulated | None:
        """`given.problem` rewritten, with `given` as `previous`; None if the reformulation does not apply.
        `reformulate` also applies it to the relaxation of `given`."""
        ...


def reformulate(given: Reformulated, reformulations: Iterable[Reformulation]) -> Reformulated:
    """Apply reformulations one after the other, to the problem and to its relaxation. Both have the same
    columns: a reformulation that adds others to one of them is left out."""
    for reformulation in reformulations:
        further = reformulation.apply(given)
        if further is None:
            continue
        if given.relaxed is not None:
            bounds = reformulation.apply(given.relaxed) or given.relaxed
            if not _same_columns(bounds.for_bounds, further):
                continue
            further = replace(further, relaxed=bounds.for_bounds, proves=further.proves and bounds.proves)
        given = further
    return given


def _same_columns(one: Reformulated, other: Reformulated) -> bool:
    if one.into is not None and other.into is not None:
        same = one.into.shape == other.into.shape and (one.into != other.into).nnz == 0
    else:
        same = one.into is other.into
    return same and one.problem.mip.n_columns == other.problem.mip.n_columns


def context_of(context: SolveContext, reformulated: Reformulated) -> SolveContext:
    """The same solve over the reformulated problem; candidates are restricted before they are checked."""
    if reformulated.previous is None:
        return context
    x, relaxed = context.start.x, reformulated.relaxed
    there, back = reformulated.lift, reformulated.restrict
    made = context.rewritten(
        reformulated.problem,
        incumbent=LiftedIncumbent(
            context.incumbent, there, back, reformulated.carried, reformulated.original_prices
        ),
        start=Start(None if x is None else there(x)),
        relaxed=None if relaxed is None else relaxed.problem,
        checkpoint=CheckpointSource(),
    )
    if reformulated.problem.blocks:
        made.keep(structure_of, replace(structure_of(made), known_box=reformulated.box))
    return made
