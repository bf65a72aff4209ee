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

from dovetail.bounds.box import Box, RowEntries
from dovetail.branching.tree_ensembles import ranges_in
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import TOLERANCE
from dovetail.structure.components import Components, component_problem
from dovetail.structure.trees import TreeProblem, in_cells


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
    def _rows(self) -> RowEntries:
        return RowEntries.filled(self.trees.host.A)

    @cached_property
    def _uses(self) -> RowEntries:
        return RowEntries.filled(self.terms)

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
        self._tighten(lower, upper)
        use = np.zeros((len(low), self.terms.shape[0]))
        use[:, self._uses.number] = self._uses.least(lower, upper)
        return use, empty | np.any(lower > upper, axis=1)

    def _tighten(self, lower: FloatArray, upper: FloatArray) -> None:
        """Bounds by the component's rows, in one pass: a box that is cut again passes on what it left."""
        rows, whole = self._rows, self.trees.host.integer
        least, most = self.trees.host.sides_as_checked
        for a, side in ((rows.a, most), (-rows.a, -least)) if rows.number.size else ():
            ends = lower[:, rows.column], upper[:, rows.column]
            rows.pass_on(a, side[rows.number], ends, lower, upper)
        lower[:, whole] = np.ceil(lower[:, whole] - TOLERANCE)
        upper[:, whole] = np.floor(upper[:, whole] + TOLERANCE)


def tree_components(trees: TreeProblem, parts: Components) -> Iterator[TreeComponent]:
    """Of a problem, one after the other."""
    host, problem = trees.host, trees.problem
    terms = sp.csr_array(sp.vstack([sp.csr_array(host.cost[None]), parts.coupling(host)[0]], format="csr"))
    ensembles = {sample.block.name: sample.boxes.ensemble for sample in trees.samples}
    for c, columns in enumerate(parts.columns(problem)):
        alone = component_problem(problem, columns, parts.rows[c])
        mine = sp.diags_array((parts.owner[columns] == c).astype(float))
        own = sp.csr_array(terms[:, columns] @ mine)
        own.eliminate_zeros()
        box = Box(host.lower[columns], host.upper[columns])
        yield TreeComponent(in_cells(alone, ensembles, box), columns, own)
