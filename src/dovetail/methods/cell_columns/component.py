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
from dovetail.branching.model import Model
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.methods.branching_model import model_of
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
    def model(self) -> Model:
        """As branching has it, for what rows and trees leave of boxes."""
        problem, host = self.trees.problem, self.trees.host
        ensembles = {sample.block.name: sample.boxes.ensemble for sample in self.trees.samples}
        return model_of(problem.derived(host, problem.blocks), host.lower, host.upper, ensembles)

    @cached_property
    def _uses(self) -> RowEntries:
        return RowEntries.filled(self.terms)

    def bounded(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, BoolArray]:
        """(N, 1 + R) the least use of boxes (N, columns), which are tightened in place, and which of them are
        empty."""
        left = self.model.tighten(lower, upper, np.inf)
        use = np.zeros((len(lower), self.terms.shape[0]))
        use[:, self._uses.number] = self._uses.least(lower, np.maximum(lower, upper))
        return use, ~left


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
