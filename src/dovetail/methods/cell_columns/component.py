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
from dovetail.bounds.box import Box
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.methods.cell_branching.ranges import ranges_in
from dovetail.methods.cell_columns.interval_rows import IntervalRows, Propagation


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
    def _propagation(self) -> Propagation:
        return Propagation(self.trees.host)

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
