"""Best-first branch and bound over boxes of cells: a proof for tree ensembles without a single binary.

    repeat: take the boxes of lowest bound; cut each in two between the point of its LP and the best leaves
            of each tree the least and the largest leaf that a half can reach: a range of every output
            the host's plain LP, inputs in the half, outputs in their ranges: a bound, by its multipliers
            where the LP's outputs are what the trees say at its point, the half is closed
            cells that its reduced costs put beyond the best point are left out of it

Idea: a box of cells is a bound on every tree at once, for the price of a look at its leaves (Veritas), and
the host's LP says what that is worth. Weakness: boxes are many where many inputs matter, or many samples.
Bounds are of closed cells and of rows as far out as the check accepts, by multipliers (`dual_value`).
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass

import numpy as np

from dovetail.bounds.dual_value import usable
from dovetail.bounds.safe_lp import LpAnswer, SafeLp
from dovetail.core.amounts import several
from dovetail.core.arrays import FloatArray
from dovetail.methods.cell_branching.node import Node, Prices, split_of, tighten, widest
from dovetail.methods.cell_branching.ranges import OutputRanges
from dovetail.methods.cell_descent.method import NONE, CellSearch, cell_search
from dovetail.run import work
from dovetail.run.bound import Bound
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.engine import MipStatus
from dovetail.run.progress import Progress
from dovetail.structure.structure import structure_of
from dovetail.structure.trees import TreeProblem

BATCH = 32
"""Boxes that are cut together: larger batches waste boxes that the first ones would have made needless."""
HALF = 0.5
"""Of the gap that counts as closed: boxes are closed within it, so that what is proved in the end is."""
DESCENTS = 256
"""Boxes between two descents from a box's point, at least, and twice as many after one that found nothing:
one takes about as long as so many boxes, or twice."""
MOST_BOXES = 500_000
"""Open boxes: beyond that memory is short and the end is not near."""
NO_POINT = "no cell holds a point of the problem: every box of them is proved to be empty"
REPORT = 0.5
"""Seconds between two rows of the trace."""


@dataclass(frozen=True)
class CellBranching:
    """Proves a bound, and finds what the search has missed.

    >>> import dovetail as dt, numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.arange(8.0)[:, None]
    >>> tree = DecisionTreeRegressor().fit(X, [5.0, 4.0, 6.0, 3.0, 7.0, 2.0, 8.0, 9.0])
    >>> problem = dt.Problem(dt.Mip(cost=[0.1, 1.0], upper=[7.0, 99.0]))
    >>> block = problem.add_predictor(tree, inputs=[0], outputs=[1])
    >>> from dovetail.methods.cell_branching import CellBranching
    >>> dt.solve(problem, CellBranching(), log=False).status.value
    'optimal'
    """

    name = "cell-branching"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Until every box is closed, or a limit is met."""
        if context.once(structure_of).trees is None or context.once(structure_of).loose_trees is None:
            return MethodOutcome(StopReason.STALLED, 0, f"cell branching: {NONE}")
        return context.once(_tree).run(context)


def _tree(context: SolveContext) -> _Tree:
    """That of a solve: a phase that was cut short goes on where it was (see `SolveContext.once`)."""
    trees = context.once(structure_of).loose_trees
    assert trees is not None
    return _Tree(context, trees, context.once(cell_search))


class _Tree:
    """The open boxes of one problem, and what was proved of the others."""

    def __init__(self, context: SolveContext, trees: TreeProblem, search: CellSearch) -> None:
        self._context, self._trees, self._search = context, trees, search
        self._lp = SafeLp(trees.host, seed=context.seed, threads=context.threads)
        self._columns, self._sizes = trees.host.turned
        self._ranges = OutputRanges(trees)
        self._closed = math.inf
        """The least bound of boxes that were closed on their own bound."""
        self._open: list[Node] = []
        self._number = 0
        self.boxes = 0
        self._reported = time.perf_counter()
        self._next_descent, self._wait = 1, DESCENTS
        host, counts = trees.host, trees.cells.counts
        nothing = np.zeros(counts.size, dtype=np.int64)
        root = Node(-math.inf, 0, nothing, counts - 1, host.lower.copy(), host.upper.copy())
        self._ranges.tighten([root], [None])
        self._look_at([root])

    def run(self, context: SolveContext) -> MethodOutcome:
        """The loop, from where it was."""
        self._context, progress = context, Progress(context)
        while self._open and not context.over and len(self._open) <= MOST_BOXES:
            batch: list[Node] = []
            while self._open and len(batch) < BATCH:
                node = heapq.heappop(self._open)
                if node.bound < self._target:
                    batch.append(node)
            self._branch(batch)
            self._raise()
            if time.perf_counter() - self._reported > REPORT:
                self._reported = time.perf_counter()
                progress.record(self._open[0].bound if self._open else self._closed)
        self._raise()
        if not self._open and self._closed == math.inf and context.incumbent.x is None:
            return MethodOutcome(StopReason.PROVED, progress.done, NO_POINT, infeasible=True)
        left = f"{len(self._open):,} open" if self._open else "closed"
        message = f"cell branching: {several(self.boxes, 'box', 'boxes')}, {left}"
        reason = context.over or StopReason.STALLED
        return MethodOutcome(reason, progress.done, message, closed=not self._open)

    @property
    def _cutoff(self) -> float:
        """The best objective, in minimisation form."""
        mip, incumbent = self._context.problem.mip, self._context.incumbent
        return mip.sign * incumbent.objective if incumbent.x is not None else math.inf

    @property
    def _target(self) -> float:
        """Boxes of this bound are done with: of the best point, or as high as the bound can get."""
        cutoff = self._cutoff
        if math.isfinite(cutoff):
            cutoff -= HALF * self._context.incumbent.allowed_gap
        return min(cutoff, self._closed)

    def _branch(self, batch: list[Node]) -> None:
        """Both halves of each box; where an integer was cut, outputs are as they were."""
        halves, changed, places = list[Node](), list[Node](), list[int]()
        for node in batch:
            assert node.split is not None
            new = [half for half in node.halves() if not half.empty]
            halves += new
            changed += new if node.split.by_cells else []
            places += [node.split.place] * len(new) if node.split.by_cells else []
        self._ranges.tighten(changed, places)
        self._look_at(halves)

    def _look_at(self, nodes: list[Node]) -> None:
        """New boxes, whose outputs are known: what is left to do is kept."""
        for node in nodes:
            if self._context.budget.over:  # nothing is known of it beyond its parent's bound
                node.split = node.split or widest(self._trees, node)
                self._keep(node)
            elif not node.empty:
                self._look(node)

    def _look(self, node: Node) -> None:
        """Its LP: a bound, a point, a split."""
        self.boxes += 1
        work.count(nodes=1)
        with self._context.stopwatch.measure("engine"):
            answer = self._solved(node)
        node.bound = max(node.bound, answer.bound)
        if node.bound >= self._target:
            return
        if answer.x is None or answer.multipliers is None:
            node.split = widest(self._trees, node)
        else:
            prices = self._prices(node, answer.bound, answer.multipliers)
            smaller = tighten(self._trees.cells, self._ranges.sums, node, prices)
            node.split = split_of(self._trees, node, answer.x, prices.reduced)
            if node.split is None and (self._outputs_change(node) or smaller):
                self._look_at([node])  # what it is closed on has to be what its last cells say
                return
            self._points(node, answer.x)
        if node.bound < self._target:
            self._keep(node)

    def _outputs_change(self, node: Node) -> bool:
        """Take the outputs of all samples from the cells that are left: prices left out cells of samples that
        do not read the column that was split."""
        lower, upper = node.lower.copy(), node.upper.copy()
        self._ranges.tighten([node], [None])
        return bool(np.any(node.lower > lower) or np.any(node.upper < upper))

    def _prices(self, node: Node, bound: float, multipliers: FloatArray) -> Prices:
        """Of a box's LP. Where a column has no end, others may have proved the bound: nothing is cut."""
        y = usable(self._trees.host, multipliers)
        cost = self._trees.host.cost
        ends = np.all(np.isfinite(node.lower) & np.isfinite(node.upper))
        room = self._target - bound if ends else math.inf
        return Prices(cost - self._columns @ y, np.abs(cost) + self._sizes @ np.abs(y), room)

    def _keep(self, node: Node) -> None:
        node.reach.clear()
        if node.split is None:
            self._closed = min(self._closed, node.bound)
            return
        self._number += 1
        node.number = self._number
        heapq.heappush(self._open, node)

    def _solved(self, node: Node) -> LpAnswer:
        trees, cells = self._trees, self._trees.cells
        lower, upper = node.lower.copy(), node.upper.copy()
        own = cells.columns
        lower[own] = np.maximum(lower[own], cells.low[cells.flat(node.low)])
        upper[own] = np.minimum(upper[own], cells.high[cells.flat(node.high)])
        if np.any(lower > upper):  # whole numbers that were cut off, and cells that hold no others
            return LpAnswer(MipStatus.INFEASIBLE, None, math.inf)
        return self._lp.minimise(trees.host.cost, trees.host.offset, self._context.budget, (lower, upper))

    def _points(self, node: Node, x: FloatArray) -> None:
        """What an exact LP found; now and then a descent from where the others are."""
        if node.split is not None and self.boxes < self._next_descent:
            return
        cells = self._trees.cells
        moved = cells.moved_into(x, np.clip(cells.of_point(x), node.low, node.high))
        near, before = self._search.trees.cells.of_point(moved), self._context.incumbent.x
        self._search.look_at(near, self._context, descend=node.split is not None)
        if node.split is not None:
            self._wait = DESCENTS if self._context.incumbent.x is not before else 2 * self._wait
            self._next_descent = self.boxes + self._wait

    def _raise(self) -> None:
        bound = min([self._closed, self._target, *(node.bound for node in self._open[:1])])
        if math.isfinite(bound):
            self._context.incumbent.raise_bound(Bound(bound, "cells"))
