"""Local search over the cells of tree ensembles, from many starts.

    repeat from a start, or from the best cells so far
        descend: the single input whose move to another cell pays most, by the host's LP
        kick:    a few inputs in other cells, and descend again

Idea: trees are constant in cells, so that slopes are useless; the exact profile gives the values of all
neighbours for the price of one. Advice: for hundreds of trees, for which no MIP can be solved. Weakness: one
input at a time; integers outside the trees are chosen by a MIP in the cells, or by the MIP without predictors
while no solution is known; nothing is proved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import HAIR, TOLERANCE, Mip
from dovetail.core.options import require_count
from dovetail.methods.cell_descent.descent import HELD, CellPoint, MoveDescent
from dovetail.methods.portfolio import Move, Turn, moves_of, take_turns
from dovetail.mip.answers import answer_of, answers_in_turns
from dovetail.run.budget import Budget, StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.engine import MipAnswer, Quadratic
from dovetail.structure.structure import structure_of
from dovetail.structure.trees import TreeProblem

KICKS_PER_START = 20
"""Number of kicks of one local optimum without progress before another start."""
MIP_SECONDS, MIP_SHARE = 1.0, 0.1
"""Time limit of a MIP that chooses integers in the cells of one point, and its share of the time left."""
HOST_SHARE = 0.8
"""Share of the time left for the MIP without predictors while no point is known, because cells of integers
that are hard to choose are useless (PySCIPOpt-ML's city manager)."""
NONE = "a predictor is not a readable tree ensemble, or has inputs without bounds"


@dataclass(frozen=True)
class CellDescent:
    """Local search over the cells of tree ensembles, from many starts.

    >>> import dovetail as dt, numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.arange(8.0)[:, None]
    >>> tree = DecisionTreeRegressor().fit(X, [5.0, 4.0, 6.0, 3.0, 7.0, 2.0, 8.0, 9.0])
    >>> problem = dt.Problem(dt.Mip(cost=[-0.1, 1.0], upper=[7.0, 99.0], sense="max"))
    >>> block = problem.add_predictor(tree, inputs=[0], outputs=[1])
    >>> from dovetail.methods.cell_descent import CellDescent
    >>> round(dt.solve(problem, CellDescent(rounds=1), log=False).objective, 6)
    8.35
    """

    rounds: int | None = None
    """Number of starts; None: until the time is over or `patience` starts in a row gained nothing."""
    patience: int = 20
    kicks: int = KICKS_PER_START

    name = "cell-descent"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("CellDescent: rounds", self.rounds, at_least=1)
        require_count("CellDescent: patience", self.patience, at_least=1)
        require_count("CellDescent: kicks", self.kicks, at_least=0)

    def solve(self, context: SolveContext) -> MethodOutcome:
        """One start after the other, with kicks of the best local optimum."""
        if context.once(structure_of).trees is None:
            return MethodOutcome(StopReason.STALLED, 0, f"cell descent: {NONE}")
        return take_turns(context, moves_of(context, self), self.rounds)

    def moves(self, context: SolveContext) -> list[Move]:
        """One move: the next start with its kicks."""
        return [CellMoves(context, self)]


class CellMoves(Move):
    """The cell search of a solve, whose best cells other parts use too."""

    def __init__(self, context: SolveContext, options: CellDescent) -> None:
        super().__init__(options.patience)
        self._search, self._kicks = context.once(cell_search), options.kicks

    def turn(self, context: SolveContext) -> Turn | None:
        """One start, and kicks of its local optimum."""
        value = self._search.round(self._kicks, context)
        return Turn(value, context.incumbent.objective) if np.isfinite(value) else None


def cell_search(context: SolveContext) -> CellSearch:
    """The search of a solve, which continues where it was (see `SolveContext.once`)."""
    trees = context.once(structure_of).trees
    assert trees is not None
    return CellSearch(context, trees)


class CellSearch:
    """Starts, kicks, and the best cells so far."""

    def __init__(self, context: SolveContext, trees: TreeProblem) -> None:
        self.trees = trees
        self._descent = MoveDescent(trees, seed=context.seed, threads=context.threads)
        self._rng = np.random.default_rng(context.seed + 7)
        self._settings = context.seed, context.threads
        self._best: CellPoint | None = None
        self._rounds = 0
        self._asked_for_whole = False
        """The longest time that the MIP without predictors was given."""

    def round(self, kicks: int, context: SolveContext) -> float:
        """One start, and kicks until this number in a row gain nothing; returns the best value found."""
        with context.stopwatch.measure("engine"):
            at = self._descent.descend(self._start(context), context.budget)
        if at is None:
            return float("inf")
        self.offer(at, context)
        idle = 0
        while idle < kicks and not context.over:
            with context.stopwatch.measure("engine"):
                other = self._descent.descend(self._descent.kicked(at.cells, self._rng), context.budget)
            idle += 1
            if other is not None and other.value < at.value - HAIR * (1.0 + abs(at.value)):
                at, idle = other, 0
                self.offer(at, context)
        if self._best is None or at.value < self._best.value:
            self._best = at
        return at.value

    def look_at(self, cells: IntArray, context: SolveContext, *, descend: bool) -> None:
        """The best point in cells found by other methods, or of a descent from there."""
        look = self._descent.descend if descend else self._descent.point
        with context.stopwatch.measure("engine"):
            at = look(cells, context.budget)
        if at is not None:
            self.offer(at, context)

    def _start(self, context: SolveContext) -> IntArray:
        """The user's start, the cheapest point of the LP relaxation, the best so far with kicks, then random
        cells."""
        trees, number = self.trees, self._rounds
        self._rounds += 1
        known = context.incumbent.x
        if number >= 1 and known is None and np.any(trees.host.integer):
            x = self._cheapest_whole(context)
            if x is not None:
                context.incumbent.offer(x, "host")
                return trees.cells.of_point(x)
        if number == 0 and (context.start.x is not None or known is not None):
            return trees.cells.of_point(known if known is not None else np.asarray(context.start.x))
        if number <= 1:
            x = self._cheapest(context)
            if x is not None:
                return trees.cells.of_point(x)
        if number % 2 and self._best is not None:
            cells = self._best.cells
            for _ in range(3):
                cells = self._descent.kicked(cells, self._rng)
            return cells
        return self._rng.integers(trees.cells.counts)

    def _cheapest(self, context: SolveContext) -> FloatArray | None:
        """The best point of the LP relaxation, without the cost of outputs."""
        host, (seed, threads) = self.trees.host.relaxed(), self._settings
        goal = self._without_outputs(host)
        answer = answer_of("LP of the host", host, context.budget, seed=seed, threads=threads, objective=goal)
        return None if answer is None else answer.x

    def _cheapest_whole(self, context: SolveContext) -> FloatArray | None:
        """The cells with integers, computed once."""
        if self._asked_for_whole:
            return None
        self._asked_for_whole = True
        host, (seed, threads) = self.trees.host, self._settings
        goal, budget = self._without_outputs(host), context.budget.part(HOST_SHARE * context.budget.left)
        with context.stopwatch.measure("engine"):
            answers = answers_in_turns(host, goal, budget, _has_point, seed=seed, threads=threads)
            return next((answer.x for answer in answers if answer.x is not None), None)

    def _without_outputs(self, host: Mip) -> Quadratic:
        cost = host.cost.copy()
        cost[self.trees.problem.outputs] = 0.0
        return Quadratic.linear(cost)

    def offer(self, at: CellPoint, context: SolveContext) -> None:
        """Offer a point that may improve the incumbent; fractional integers are chosen within the cells."""
        incumbent, sign = context.incumbent, context.problem.mip.sign
        known = np.inf if incumbent.x is None else sign * incumbent.objective
        if self.trees.host.objective(at.x) >= known - HAIR * (1.0 + abs(known)):
            return
        integer = self.trees.host.integer
        whole = np.abs(at.x - np.round(at.x))[integer] <= TOLERANCE
        x = at.x if np.all(whole) or at.missed > HELD else self._mip_within_cells(at, context)
        if x is not None:
            incumbent.offer(x, "cells")

    def _mip_within_cells(self, at: CellPoint, context: SolveContext) -> FloatArray | None:
        """The MIP without predictors within the cells, with fixed outputs."""
        seed, threads = self._settings
        budget: Budget = context.budget.part(min(MIP_SECONDS, MIP_SHARE * context.budget.left))
        bounds = self.trees.bounds_in(at.cells, at.outputs)
        answer = answer_of(
            "MIP within cells", self.trees.host, budget, seed=seed, threads=threads, bounds=bounds
        )
        return None if answer is None else answer.x


def _has_point(answer: MipAnswer) -> bool:
    return answer.x is not None
