"""Tree ensembles beside networks, or behind each other, written as rows; the networks stay blocks.

What is left is a problem of networks alone, with a binary for each cut, for all methods that know networks.
Points are looked for a margin inside the cells, where engines' tolerances do not matter. Bounds are proved of
closed cells, and of rows as far out as the check accepts: trees jump (`tree_splits`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.analysis.boxes import input_box
from dovetail.analysis.reached_box import reached_box
from dovetail.analysis.tree_problem import MOST_LEAVES, TreeProblem, in_cells, loosened
from dovetail.bounds.box import Box
from dovetail.core.problem import Problem
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.reformulations.reformulated import Reformulated
from dovetail.reformulations.tree_splits import MOST_CUTS, TreeSplits
from dovetail.run.context import SolveContext


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
    """Holds every point that the check accepts (see `loose_box`)."""
    name = "trees beside networks as rows"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with its trees as rows, and what bounds are proved of; None where that is too much."""
        problem, ensembles = given.problem, _ensembles(given.problem)
        if ensembles is None:
            return None
        loose = problem.derived(loosened(problem), problem.blocks)
        box = reached_box(loose, self.box)
        trees = _in_cells(loose, ensembles, box)
        if trees is None:
            return None
        # both are cut within the same box, so that they have the same columns
        relaxed = TreeSplits(trees).apply(Reformulated.start(loose, box))
        points = TreeSplits(trees, margin=True).apply(given)
        return None if points is None else replace(points, relaxed=relaxed, known_box=None)


def loose_box(context: SolveContext) -> Box:
    """Of rows as far out as the check accepts, finite on inputs wherever the host makes it so."""
    problem = context.relaxed or context.problem
    loose = problem.derived(loosened(problem), problem.blocks)
    return input_box(loose, context.budget, seed=context.seed, threads=context.threads)


def _ensembles(problem: Problem) -> dict[str, TreeEnsemble] | None:
    """Of each block that is trees; None where some cannot be read, or they are too many."""
    found, leaves = dict[str, TreeEnsemble](), 0
    for block in problem.blocks:
        if block.description.trees is not None:
            ensemble = block.description.trees_if_known()
            if ensemble is None:
                return None
            found[block.name] = ensemble
            leaves += int(ensemble.is_leaf.sum()) * block.samples
    return found if found and leaves <= MOST_LEAVES else None


def _in_cells(problem: Problem, ensembles: dict[str, TreeEnsemble], box: Box) -> TreeProblem | None:
    """The trees of a problem in a box; None where an input has no end, or cuts are too many."""
    own = tuple(block for block in problem.blocks if block.name in ensembles)
    alone = problem.derived(problem.mip, own)
    if not np.all(box.finite[alone.inputs]):
        return None
    trees = in_cells(alone, [ensembles[block.name] for block in own], box)
    return trees if trees.cells.cuts <= MOST_CUTS else None
