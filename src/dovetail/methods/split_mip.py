"""Tree ensembles as one MIP with a binary for each cut, for HiGHS and, where installed, SCIP.

Idea: a few hundred ordered binaries stand for thousands of leaves, and engines prove what they like. A point
of the MIP may be on the wrong side of a cut by what engines call feasible: its binaries say which cells are
meant, and the host alone is solved inside these before the point is offered. Weakness: beyond a few thousand
cuts engines find no point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from dovetail.bounds.box import Box
from dovetail.core.arrays import FloatArray
from dovetail.methods.cell_descent.method import NONE, cell_search
from dovetail.methods.exact_mip import ExactMip
from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail.reformulations.tree_splits import TreeSplits
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.structure.structure import structure_of
from dovetail.structure.trees import TreeProblem


@dataclass(frozen=True)
class SplitMip:
    """Solves a problem whose predictors are all tree ensembles."""

    name = "split-mip"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """One MIP for points and a bound."""
        trees, written = context.once(structure_of).loose_trees, context.once(split_form)
        if trees is None or written is None or context.once(structure_of).trees is None:
            return MethodOutcome(StopReason.STALLED, 0, f"split MIP: {NONE}")
        context.monitor.say(f"  proof: {written.note}")
        met = partial(_met, context, written)
        return ExactMip(written, source="splits", met=met).solve(context)


def split_form(context: SolveContext) -> Reformulated | None:
    """The problem of a solve with its trees as rows; made once (see `SolveContext.once`).

    Rows are as far out as the check accepts: trees jump, so that a point that misses one by a hair may be
    worth quite something else.
    """
    trees = context.once(structure_of).loose_trees
    written = None if trees is None else written_trees(trees)
    return None if written is None or written.previous is None else written


def written_trees(trees: TreeProblem) -> Reformulated:
    """A problem of trees with its trees as rows, where they can be."""
    given = Reformulated.start(trees.problem, Box(trees.host.lower, trees.host.upper))
    return reformulate(given, (TreeSplits(trees),))


def _met(context: SolveContext, written: Reformulated, z: FloatArray) -> None:
    """The best point in the cells that the binaries mean."""
    search = context.once(cell_search)
    search.look_at(search.trees.cells.of_point(written.restrict(z)), context, descend=True)
