"""Tree ensembles beside networks, or behind each other, written as rows; the networks stay blocks.

What is left is a problem of networks alone, with a binary for each cut, for all methods that know networks.
Points are looked for a margin inside the cells, where engines' tolerances do not matter. Bounds are proved of
closed cells, and of rows as far out as the check accepts: trees jump (`tree_splits`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.box import Box
from dovetail.core.problem import Problem
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.reformulations.reformulated import Reformulated
from dovetail.reformulations.tree_splits import MOST_CUTS, TreeSplits
from dovetail.structure.boxes import reached_box
from dovetail.structure.trees import TreeProblem, ensembles_of, in_cells


def may_have_tree_rows(problem: Problem) -> bool:
    """Whether there are trees that other methods know only as functions: beside networks, or chained."""
    trees = [block.description.trees is not None for block in problem.blocks]
    if not all(trees):
        return any(trees)
    return np.intersect1d(problem.inputs, problem.outputs).size > 0


@dataclass(frozen=True)
class TreeRows:
    """All tree ensembles of a problem, if they can be written so."""

    box: Box
    """Holds every point that the check accepts (see `Structure.loose_rows_box`)."""
    name = "trees beside networks as rows"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with its trees as rows, and what bounds are proved of; None where that is too much."""
        problem, ensembles = given.problem, ensembles_of(given.problem)
        if ensembles is None:
            return None
        loose = problem.derived(problem.mip.minimised().loosened(problem.outputs), problem.blocks)
        box = reached_box(loose, self.box)
        trees = _in_cells(loose, ensembles, box)
        if trees is None:
            return None
        # both are cut within the same box, so that they have the same columns
        relaxed = TreeSplits(trees).apply(Reformulated.start(loose, box))
        points = TreeSplits(trees, margin=True).apply(given)
        return None if points is None else replace(points, relaxed=relaxed, known_box=None)


def _in_cells(problem: Problem, ensembles: dict[str, TreeEnsemble], box: Box) -> TreeProblem | None:
    """The trees of a problem in a box; None where an input has no end, or cuts are too many."""
    own = tuple(block for block in problem.blocks if block.name in ensembles)
    alone = problem.derived(problem.mip, own)
    if not np.all(box.finite[alone.inputs]):
        return None
    trees = in_cells(alone, ensembles, box)
    return trees if trees.cells.cuts <= MOST_CUTS else None
