"""Tree ensembles as one MIP with a binary for each cut, for HiGHS and, where installed, SCIP.

Idea: a few hundred ordered binaries stand for thousands of leaves, and engines prove what they like. A point
of the MIP may be on the wrong side of a cut by what engines call feasible: its binaries say which cells are
meant, and the host alone is solved inside these before the point is offered. Weakness: beyond a few thousand
cuts engines find no point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from dovetail.analysis.boxes import tight_box
from dovetail.analysis.tree_problem import TreeProblem, tree_problem
from dovetail.core.arrays import FloatArray
from dovetail.methods.cell_descent.method import NONE, cell_search
from dovetail.methods.exact_mip import ExactMip
from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail.reformulations.tree_splits import TreeSplits, cells_of
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext


@dataclass(frozen=True)
class SplitMip:
    """Solves a problem whose predictors are all tree ensembles."""

    name = "split-mip"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """One MIP for points and a bound."""
        trees, written = context.once(tree_problem), context.once(split_form)
        if trees is None or written is None:
            return MethodOutcome(StopReason.STALLED, 0, f"split MIP: {NONE}")
        context.monitor.say(f"  proof: {written.note}")
        met = partial(_met, context, trees)
        return ExactMip(written, source="splits", met=met).solve(context)


def split_form(context: SolveContext) -> Reformulated | None:
    """The problem of a solve with its trees as rows; made once (see `SolveContext.once`)."""
    trees = context.once(tree_problem)
    if trees is None:
        return None
    given = Reformulated.start(context.problem, context.once(tight_box), context.relaxed)
    written = reformulate(given, (TreeSplits(trees),))
    return None if written.previous is None else written


def _met(context: SolveContext, trees: TreeProblem, z: FloatArray) -> None:
    """The best point in the cells that the binaries mean."""
    cells = cells_of(trees, context.problem.mip.n_columns, z)
    context.once(cell_search).look_at(cells, context, descend=True)
