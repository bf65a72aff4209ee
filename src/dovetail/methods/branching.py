"""Branch and bound over boxes of columns, as a method of a solve: goals, solutions and bounds.

The tree itself is `tree.py`. Its first box is reduced before it is divided (`root.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dovetail.branching.model import MOST_ENTRIES, Model
from dovetail.branching.plane_boxes import PlaneBoxes
from dovetail.branching.table_rows import TableRows
from dovetail.branching.tree import Tree
from dovetail.core.arrays import FloatArray
from dovetail.core.words import several
from dovetail.linearised.descent import DescentOptions, MixedIntegerDescent
from dovetail.linearised.scaled_problem import scaled_problem
from dovetail.methods.branching_model import model
from dovetail.methods.cell_descent.method import cell_search
from dovetail.methods.out_of_reach import out_of_reach
from dovetail.run.bound import Bound, Scope
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress
from dovetail.structure.structure import structure_of

SOURCE = "nodes"
HALF = 0.5
"""Fraction of the allowed gap within which boxes are closed, so that the whole proof stays within the gap."""
MOST_BOXES = 4_000_000
"""Open boxes: beyond that memory is short and the end is not near."""
THOROUGH = 8.0
"""Work of boxes before a search begins at a box, after three searches without a gain: each such search
doubles it. With all integers free at once the first search on heat 2 took 8 s, so three cheaper ones come
before it."""
REPORT = 0.5
"""Seconds between two rows of the trace."""
NO_POINT = "proved by branching over {boxes}: no outputs of the predictors satisfy constraints and bounds"


@dataclass(frozen=True)
class Branching:
    """Proves a bound and finds solutions on the way, for any networks and rows."""

    name = "branching"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Run until every box is closed, or a limit is reached."""
        if (ended := out_of_reach(context)) is not None:
            return ended
        with torch.inference_mode(False), torch.no_grad():  # slopes are chosen with gradients
            made = context.once(model)
            if isinstance(made, str):
                return MethodOutcome(StopReason.STALLED, 0, f"branching: {made}")
            return context.once(_run).go_on(context)


def _run(context: SolveContext) -> _Run:
    """The run of a solve: a phase that was interrupted continues where it was (see `SolveContext.once`)."""
    made = context.once(model)
    assert isinstance(made, Model)
    return _Run(context, made)


class _Run:
    """One tree, and the incumbent that determines its goal. When a solution is known its rows become those
    that are written, and the first box is made smaller before it is divided by LPs."""

    def __init__(self, context: SolveContext, made: Model) -> None:
        self._context, self._scope, self._reported = context, Scope.CHECKED, time.perf_counter()
        self._tree = Tree(made, seed=context.seed, threads=context.threads)
        if made.trees.samples:
            self._tree.tables = TableRows()
        self._points = _Points(context.once(structure_of).trees is not None), _Points(trees=False)
        """Solutions of boxes with LPs, and of boxes bounded by planes."""

    def go_on(self, context: SolveContext) -> MethodOutcome:
        """The loop, continued where it was."""
        self._context, tree, progress = context, self._tree, Progress(context)
        self._prepare()
        if tree.planes is None and not tree.model.solvable:
            told = f"the LP of a box would have {tree.model.entries:,} entries, more than {MOST_ENTRIES:,}"
            return MethodOutcome(StopReason.STALLED, 0, f"branching: {told}")
        while len(tree) and not context.over and len(tree) <= MOST_BOXES:
            points = tree.step(self._goal, context.budget)
            context.budget.rest()
            self._offer(points)
            self._raise()
            self._prepare()
            if time.perf_counter() - self._reported > REPORT:
                self._reported = time.perf_counter()
                progress.record(tree.bound)
        self._raise()
        boxes = several(tree.seen, "box", "boxes")
        if tree.empty and context.incumbent.x is None:
            told = NO_POINT.format(boxes=boxes)
            return MethodOutcome(StopReason.PROVED, progress.done, told, infeasible=True)
        message = f"branching: {boxes}, {f'{len(tree):,} open' if len(tree) else 'closed'}"
        if context.incumbent.x is None:  # without a point open boxes are no information
            message = ""
        return MethodOutcome(context.over or StopReason.STALLED, progress.done, message, closed=not len(tree))

    def _raise(self) -> None:
        bound = self._tree.bound
        if math.isfinite(bound):
            self._context.incumbent.raise_bound(Bound(bound, SOURCE, self._scope))

    @property
    def _goal(self) -> float:
        """Boxes of this bound are closed: within half the gap of the best point."""
        mip, incumbent = self._context.problem.mip, self._context.incumbent
        if incumbent.x is None:
            return math.inf
        return mip.sign * incumbent.objective - HALF * incumbent.gap.allowed(incumbent.objective)

    def _offer(self, points: Sequence[FloatArray]) -> None:
        """Solutions of boxes with low bounds, the lowest first, and of boxes that cannot be divided."""
        context, tree, n = self._context, self._tree, self._tree.columns
        some = [point[:n] for point in points]
        if some:
            source = self._points[tree.by_planes]
            source.offer(context, some, tree.effort, better=tree.promise < self._goal)
        for lost in tree.left:
            self._points[0].lost(context, lost[:n], decides=tree.lowest_leaf <= self._goal)
        tree.left.clear()

    def _prepare(self) -> None:
        """Preparation before the first step, repeated after each step."""
        context, tree = self._context, self._tree
        if tree.root is not None and tree.seen == 0:
            self._begin_planes()
            if tree.model.solvable:
                tree.shrink_first()
        if self._scope is Scope.CHECKED and context.incumbent.x is not None:
            self._write()

    def _begin_planes(self) -> None:
        """Begin the proof over all boxes that are still open."""
        context, incumbent, tree = self._context, self._context.incumbent, self._tree

        def allowed(bound: float) -> float:
            reference = incumbent.objective if incumbent.x is not None else bound
            return incumbent.gap.allowed(reference) if math.isfinite(reference) else 0.0

        if tree.planes is None:
            tree.planes = PlaneBoxes.of(tree.model, context.device or "cpu", allowed, tree.aim(self._goal))

    def _write(self) -> None:
        """When a solution is known, bounds hold for the problem as it is written: gains that only use the
        check's tolerance are of no interest."""
        self._scope = Scope.WRITTEN
        context, tree = self._context, self._tree
        tree.use(tree.model.exactly((context.relaxed or context.problem).mip.minimised().as_checked()))
        self._begin_planes()


class _Points:
    """Points of boxes, for the incumbent. Searches from boxes take as much work as the tree, and half as much
    after each search without a gain: a MIP that completes integers may take as long as ten boxes (dispatch:
    half of the time went to refused points)."""

    def __init__(self, trees: bool) -> None:
        """`trees`: all predictors are tree ensembles; points are looked for in the cells of a box's own."""
        self._trees = trees
        self._descent: MixedIntegerDescent | None = None
        self._due, self._share = 0.0, 1.0

    def offer(
        self, context: SolveContext, points: Sequence[FloatArray], effort: float, *, better: bool
    ) -> None:
        """Offer one of several points over the problem's columns, after a certain amount of work of the tree;
        or if the first point seems `better` than all before, and the last search gained.

        The lowest boxes of trees are similar from step to step, and descents from them end at known points
        (five forests: 7.16 after 4,000 boxes; from the last box of a step 8.01, which is the optimum).
        """
        if effort < self._due and not (better and self._share == 1.0):
            return
        before, began = context.incumbent.x, context.budget.effort
        point = points[-1 if self._trees else 0]
        context.incumbent.offer(point.copy(), SOURCE)
        if context.incumbent.x is before:
            context.budget.rest()
            began = context.budget.effort
            self._descend(context, point)
        self._share = 1.0 if context.incumbent.x is not before else 2.0 * self._share
        self._due = effort + self._share * 1e-6 * (context.budget.effort - began)

    def lost(self, context: SolveContext, point: FloatArray, *, decides: bool) -> None:
        """The solution of a box that cannot be divided; the bound may depend on it. For trees the best point
        in its cells and, if it is better than all before, a descent from it: slightly better points would
        have to be checked one after the other (five forests: 213 boxes, 57 with descents)."""
        before = context.incumbent.x
        if self._trees:
            self._in_cells(context, point, descend=False)
            decides = context.incumbent.x is not before
        else:
            context.incumbent.offer(point.copy(), SOURCE)
        if decides:
            self._descend(context, point)

    def _descend(self, context: SolveContext, point: FloatArray) -> None:
        """A descent with fixed integers; if no solution is known and three such descents found none, a full
        descent: beside searches a solution is known by then (heat 2: the first one took 8 s)."""
        if self._trees:
            self._in_cells(context, point, descend=True)
            return
        with torch.enable_grad():  # boxes are bounded without gradients
            scaled = context.once(scaled_problem)
            if self._descent is None:
                self._descent = MixedIntegerDescent(context, scaled, DescentOptions())
            thorough = context.incumbent.x is None and self._share >= THOROUGH
            self._descent.from_box(point, context.budget, SOURCE, thorough=thorough)

    @staticmethod
    def _in_cells(context: SolveContext, point: FloatArray, *, descend: bool) -> None:
        search = context.once(cell_search)
        search.look_at(search.trees.cells.of_point(point), context, descend=descend)
