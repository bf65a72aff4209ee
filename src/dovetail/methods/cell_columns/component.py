"""One component of a problem of tree ensembles, and what it adds to cost and coupling rows at least.

All that the rest of the problem sees of a component is its *use*: its cost, and what it adds to each coupling
row, all of which are read as G z <= h. A box of cells has a least use, entry by entry, by intervals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from dovetail.analysis.component_problem import component_columns, component_problem
from dovetail.analysis.components import Components
from dovetail.analysis.tree_problem import TreeProblem, in_cells
from dovetail.bounds.box import PAD, UNIT, Box
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.methods.cell_branching.ranges import ranges_in


@dataclass(frozen=True, eq=False)
class TreeComponent:
    """A component alone."""

    trees: TreeProblem
    columns: IntArray
    """Of the whole problem."""
    terms: sp.csr_array
    """(1 + R, columns) its cost, and its entries in all coupling rows."""

    @cached_property
    def prices_of(self) -> sp.csr_array:
        """(columns, 1 + R) the terms, turned: times prices they are what each column costs."""
        return sp.csr_array(self.terms.T)

    @cached_property
    def _propagation(self) -> BoxPropagation:
        return BoxPropagation(self.trees.host)

    @cached_property
    def _uses(self) -> IntervalRows:
        return IntervalRows(self.terms)

    def bounded(
        self, low: IntArray, high: IntArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """(N, 1 + R) the least use of boxes of cells (N, J), and which of them are empty.

        Bounds (N, columns) are tightened in place: inputs by the cells, outputs by the trees, the others by
        the component's rows.
        """
        cells, own = self.trees.cells, self.trees.cells.columns
        lower[:, own] = np.maximum(lower[:, own], cells.low[cells.first[:-1] + low])
        upper[:, own] = np.minimum(upper[:, own], cells.high[cells.first[:-1] + high])
        for sample in self.trees.samples:
            _, least, most = ranges_in(sample, low, high)
            columns = sample.outputs
            lower[:, columns] = np.maximum(lower[:, columns], least)
            upper[:, columns] = np.minimum(upper[:, columns], most)
        empty = np.any(lower > upper, axis=1)
        empty |= self._propagation.tighten(lower, upper)
        return self._uses.least(lower, upper), empty


def tree_components(
    trees: TreeProblem, ensembles: list[TreeEnsemble], parts: Components, G: sp.csr_array
) -> Iterator[TreeComponent]:
    """Of a problem and its coupling rows G, one after the other."""
    host, problem = trees.host, trees.problem
    own = np.split(
        np.argsort(parts.row_owner, kind="stable"),
        np.searchsorted(np.sort(parts.row_owner), np.arange(parts.count + 1)),
    )[1:-1]
    by_name = {block.name: ensemble for block, ensemble in zip(problem.blocks, ensembles, strict=True)}
    for c, columns in enumerate(component_columns(problem, parts)):
        alone = component_problem(problem, columns, own[c])
        found = [by_name[block.name] for block in alone.blocks]
        mine = sp.diags_array((parts.owner[columns] == c).astype(float))
        terms = sp.vstack([sp.csr_array(host.cost[None, columns]), G[:, columns]], format="csr") @ mine
        terms = sp.csr_array(terms)
        terms.eliminate_zeros()
        box = Box(host.lower[columns], host.upper[columns])
        yield TreeComponent(in_cells(alone, found, box), columns, terms)


class IntervalRows:
    """Rows of a program, none of them empty, entry by entry."""

    def __init__(self, A: sp.csr_array) -> None:
        self._kept = np.flatnonzero(np.diff(A.indptr))
        self._rows = A.shape[0]
        self.a, self.column = A.data, A.indices.astype(np.intp)
        self._first = A.indptr[:-1][self._kept].astype(np.intp)
        self.row = np.repeat(np.arange(self._kept.size), np.diff(A.indptr)[self._kept])

    @property
    def kept(self) -> np.ndarray:
        """The numbers of rows that are not empty."""
        return self._kept

    def parts(self, a: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, entries) the least of each entry `a` times its column between (N, columns) bounds."""
        return np.asarray(a * np.where(a > 0.0, lower[:, self.column], upper[:, self.column]))

    def sums(self, parts: FloatArray) -> FloatArray:
        """(N, kept rows) of (N, entries)."""
        if self._first.size == 0:
            return np.zeros((len(parts), 0))
        return np.asarray(np.add.reduceat(parts, self._first, axis=1))

    def least(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, rows) what each is at least between (N, columns) bounds, rounded down; 0 where it is empty."""
        parts, found = self.parts(self.a, lower, upper), np.zeros((len(lower), self._rows))
        total, size = self.sums(parts), self.sums(np.abs(parts))
        entries = np.bincount(self.row, minlength=self._kept.size)
        found[:, self._kept] = np.where(
            np.isfinite(total), total - 2.0 * UNIT * (entries + 2) * size, -np.inf
        )
        return found


class BoxPropagation:
    """What the rows of a program leave to its columns, for many boxes at once (see `bounds.box`)."""

    def __init__(self, mip: Mip) -> None:
        self._mip, self._rows = mip, IntervalRows(mip.A)
        low, high = mip.sides_as_checked
        row = self._rows.row
        self._sides = high[self._rows.kept][row], -low[self._rows.kept][row]
        self._noise = 2.0 * UNIT * (np.bincount(row)[row] + 2) / np.abs(self._rows.a)
        self._order = np.argsort(self._rows.column, kind="stable")
        self._columns, self._begin = np.unique(self._rows.column[self._order], return_index=True)

    def tighten(self, lower: FloatArray, upper: FloatArray) -> BoolArray:
        """(N,) which boxes hold nothing; bounds (N, columns) are tightened in place, in one pass.

        A box that is cut again passes on what the first pass left.
        """
        whole = self._mip.integer
        for sign, side in zip((1.0, -1.0), self._sides, strict=True) if self._rows.a.size else ():
            self._pass_on(sign * self._rows.a, side, lower, upper)
        lower[:, whole] = np.ceil(lower[:, whole] - TOLERANCE)
        upper[:, whole] = np.floor(upper[:, whole] + TOLERANCE)
        return np.asarray(np.any(lower > upper, axis=1))

    def _pass_on(self, a: FloatArray, side: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        rows = self._rows
        least = rows.parts(a, lower, upper)
        endless = np.isinf(least)
        finite = np.where(endless, 0.0, least)
        total, size = rows.sums(finite)[:, rows.row], rows.sums(np.abs(finite))[:, rows.row]
        says = np.isfinite(side)
        if np.any(endless):
            says = says & (rows.sums(endless.astype(np.int64))[:, rows.row] == endless)
        limit = np.where(says, side - (total - finite), 0.0) / a
        room = PAD * np.maximum(1.0, np.abs(limit)) + self._noise * size
        above = np.where(says & (a > 0.0), limit + room, np.inf)[:, self._order]
        below = np.where(says & (a < 0.0), limit - room, -np.inf)[:, self._order]
        own = self._columns
        upper[:, own] = np.minimum(upper[:, own], np.minimum.reduceat(above, self._begin, axis=1))
        lower[:, own] = np.maximum(lower[:, own], np.maximum.reduceat(below, self._begin, axis=1))
