"""Large neighbourhoods of cells: most inputs near where they are, a few anywhere, as a small exact MIP.

    repeat: free a few inputs; hold the others within a few cells of the best point
            leaves outside vanish, and trees with one leaf are constants: what is left is a small split MIP
            its best point, moved into its cells, and a descent from there
    more inputs are freed where such a MIP is solved, fewer where its time is over

Idea: a descent moves one input at a time, and a kick forgets; optima often differ in several inputs that only
pay together (diet). Weakness: it takes a point to begin with, and outputs that are sums of leaves or classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.bounds.box import Box
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.options import require_count
from dovetail.methods.cell_descent.method import NONE, cell_search
from dovetail.mip.turns import answer_of
from dovetail.reformulations.reformulated import Reformulated
from dovetail.reformulations.tree_outputs import writable
from dovetail.reformulations.tree_splits import TreeSplits
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.engine import MipAnswer, MipStatus
from dovetail.run.progress import Progress
from dovetail.structure.structure import structure_of
from dovetail.structure.trees import TreeProblem, in_cells

NEAR = 6
"""Cells to each side that inputs may move which are not free: with fewer, what is free has nobody to move
with it (`python -m benchmarks.trees diet:30x5 --seeds 1 --solve-seeds 0 1 2 --no-peer`)."""
FIRST_FREE, MORE = 6, 1.5
"""Inputs that are free at first, and by how much that number grows or shrinks."""
SECONDS, SHARE = 8.0, 0.6
"""The longest of one window, and the part of the time left: small windows are solved in a fraction of a
second and hold nothing new, the first that takes long is the one that pays (diet, as above)."""


@dataclass(frozen=True)
class CellWindows:
    """Options of the method."""

    rounds: int | None = None
    """Windows; None: until the time is over or `patience` of them brought nothing."""
    patience: int = 12

    name = "cell-windows"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("CellWindows: rounds", self.rounds, at_least=1)
        require_count("CellWindows: patience", self.patience, at_least=1)

    def solve(self, context: SolveContext) -> MethodOutcome:
        """One window after the other around the best point."""
        trees = context.once(structure_of).trees
        if trees is None or not all(map(writable, trees.samples)):
            return MethodOutcome(StopReason.STALLED, 0, f"cell windows: {NONE}")
        run, progress = context.once(_run), Progress(context, self.rounds, self.patience)
        while context.incumbent.x is not None:
            value = run.window(context.incumbent.x, context)
            outcome = progress.record(value, context.incumbent.objective)
            if outcome is not None:
                return outcome
        return MethodOutcome(StopReason.STALLED, 0, "cell windows: there is no point to begin with")


def _run(context: SolveContext) -> _Windows:
    """That of a solve: a phase that was cut short goes on with windows of the size it had come to."""
    trees = context.once(structure_of).trees
    assert trees is not None
    return _Windows(context, trees)


class _Windows:
    """Windows of one problem."""

    def __init__(self, context: SolveContext, trees: TreeProblem) -> None:
        self._context, self._trees = context, trees
        self._rng = np.random.default_rng(context.seed + 11)
        self._movable = np.flatnonzero(trees.cells.counts > 1)
        self._free = float(FIRST_FREE)

    def window(self, x: FloatArray, context: SolveContext) -> float:
        """The best point in one window, in minimisation form; infinity where none is better."""
        self._context, problem = context, context.problem
        count = min(self._movable.size, round(self._free))
        box = self._box(x, self._rng.choice(self._movable, count, replace=False))
        ensembles = context.once(structure_of).ensembles
        assert ensembles is not None
        trees = in_cells(problem, ensembles, box)
        written = TreeSplits(trees, margin=True).apply(Reformulated.start(problem, box))
        answer = None if written is None else self._solved(written)
        closed = answer is not None and answer.status in (MipStatus.OPTIMAL, MipStatus.INFEASIBLE)
        self._free = self._free * MORE if closed else max(1.0, self._free / MORE)
        if written is None or answer is None or answer.x is None:
            return float("inf")
        search = context.once(cell_search)
        search.look_at(search.trees.cells.of_point(written.restrict(answer.x)), context, descend=True)
        return answer.value

    def _box(self, x: FloatArray, free: IntArray) -> Box:
        """The host's, but for inputs that are held near a point."""
        cells, host = self._trees.cells, self._trees.host
        at = cells.of_point(x)
        low, high = np.maximum(at - NEAR, 0), np.minimum(at + NEAR, cells.counts - 1)
        low[free], high[free] = 0, cells.counts[free] - 1
        lower, upper = host.lower.copy(), host.upper.copy()
        lower[cells.columns] = np.minimum(cells.inner[cells.flat(low)], x[cells.columns])
        upper[cells.columns] = cells.high[cells.flat(high)]
        return Box(lower, upper)

    def _solved(self, written: Reformulated) -> MipAnswer | None:
        """Points that are better than the best one."""
        context, mip = self._context, written.problem.mip.minimised().as_checked()
        incumbent = context.incumbent
        better = context.problem.mip.sign * incumbent.objective - incumbent.allowed_gap
        budget = context.budget.part(min(SECONDS, SHARE * context.budget.left))
        with context.stopwatch.measure("engine"):
            return answer_of(
                "MIP of a window", mip, budget, seed=context.seed, threads=context.threads, gap=1e-4,
                cutoff=better,
            )  # fmt: skip
