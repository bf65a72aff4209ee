"""Components of few kinds, each as a problem of its own: lower bounds of its cost at prices, by branch and
bound.

Everything in a component counts: its rows, its integers, its networks. One tree serves all similar
components, since they have the same cost at any prices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from dovetail.bounds.box import Box, propagate
from dovetail.branching.model import Model
from dovetail.branching.root import Root
from dovetail.branching.tree import Tree
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.mip import TOLERANCE
from dovetail.core.problem import Problem
from dovetail.methods.branching_model import model_of
from dovetail.methods.component_prices.shared_rows import SharedRows, total
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.structure.boxes import tightened_box
from dovetail.structure.components import component_problem
from dovetail.structure.relu_layers import relu_layers
from dovetail.structure.structure import structure_of

MORE = "more nodes"
"""The result of a proof that may continue."""
MOST_KINDS, MOST_NEURONS = 8, 120
"""Limits on the number of different components, and of neurons that may change sign in one: larger problems
make no progress in a minute."""
BOX_SECONDS = 2.0
"""For LPs for the box of a component's inputs."""


@dataclass(frozen=True, eq=False)
class ComponentKind:
    """Similar components."""

    problem: Problem
    """The problem of the first component of this kind, without relaxation."""
    columns: IntArray
    """(members, columns) of the whole problem, in the order that they have here."""
    owners: IntArray
    """(members,) their numbers."""
    box: Box
    unstable: int
    """Neurons that may change sign."""

    @property
    def members(self) -> int:
        """The number of components of this kind."""
        return len(self.columns)

    def model(self, cost: FloatArray) -> Model:
        """The model at (columns,) costs, relaxed by the check's tolerances."""
        written = self.problem.derived(replace(self.problem.mip, cost=cost), self.problem.blocks)
        loose = written.derived(written.mip.loosened(), written.blocks)
        return model_of(loose, self.box.lower, self.box.upper, written=written)

    def tree(self, cost: FloatArray, goal: float, context: SolveContext, budget: Budget) -> Tree:
        """A tree at (columns,) costs, whose first box is reduced to points that cost less than `goal`."""
        made = self.model(cost)
        tree = Tree(made, seed=context.seed, threads=context.threads)
        root = Root(made, seed=context.seed, threads=context.threads)
        root.shrink(tree.aim(goal), budget)
        tree.use(root.model, root.bound)
        return tree


def component_kinds(context: SolveContext) -> list[ComponentKind]:
    """The kinds of a solve's components; none if they are too many or too large. Made once (see
    `SolveContext.once`)."""
    structure = context.once(structure_of)
    parts = structure.parts
    if not parts.coupled or not np.all(structure.tight_box.finite[parts.shared]):
        return []
    kinds = structure.kinds(MOST_KINDS)
    found = list[ComponentKind]()
    for columns, rows in kinds or ():
        alone = component_problem(structure.proved, columns[0], rows)
        loose = alone.derived(alone.mip.loosened(), alone.blocks)
        part = context.budget.part(BOX_SECONDS)
        box = tightened_box(loose, part, seed=context.seed, threads=context.threads)
        layers = relu_layers(loose, box)
        if layers is None or not layers.proves or layers.unstable > MOST_NEURONS:
            return []
        inside = propagate(loose.mip)
        box = Box(np.maximum(box.lower, inside.lower), np.minimum(box.upper, inside.upper))
        kind = ComponentKind(alone, columns, parts.owner[columns].max(axis=1), box, layers.unstable)
        try:
            kind.model(alone.mip.cost)
        except UnsupportedError:
            return []
        found.append(kind)
    return found


class KindProof:
    """All kinds at prices."""

    violated = ""

    def __init__(
        self,
        context: SolveContext,
        rows: SharedRows,
        kinds: list[ComponentKind],
        prices: FloatArray,
        known: FloatArray,
    ) -> None:
        self._context, self._kinds, self._known = context, kinds, known.copy()
        for kind in kinds:  # a point of one component is a point of all similar ones
            self._known[kind.owners] = known[kind.owners].min()
        self._constant, self._cost = rows.constant(prices), rows.cost_at(prices)
        self._least = np.full(known.size, -np.inf)
        self._trees: list[Tree | None] = [None] * len(kinds)
        self.nodes, self.left_out, mip, best = 0, 0, rows.mip, context.incumbent.x
        self._point = np.clip(0.0, mip.lower, mip.upper) if best is None else best.copy()

    @property
    def lower(self) -> float:
        """The proved lower bound."""
        return total(self._constant, self._least)

    @property
    def reachable(self) -> float:
        """The largest bound that can be proved, according to the points found so far."""
        return total(self._constant, self._known)

    current = reachable

    def run(self, tolerance: float, budget: Budget, enough: Callable[[], bool], most: int) -> str:
        """One tree after the other, each with its part of the time, with at most this number of further
        boxes; returns the reason for the end. It may be called again to continue."""
        more = False
        for turn, kind in enumerate(self._kinds):
            left = len(self._kinds) - turn
            part = budget.part(budget.left / left)
            with torch.inference_mode(False), torch.no_grad():
                more |= self._prove(turn, kind, tolerance, part, enough, most // left)
        return "time" if budget.over else MORE if more and not enough() else "closed"

    def _prove(
        self,
        turn: int,
        kind: ComponentKind,
        tolerance: float,
        budget: Budget,
        enough: Callable[[], bool],
        most: int,
    ) -> bool:
        """Whether any box is open."""
        tree, first = self._trees[turn], kind.owners[0]
        if tree is None:
            goal, cost = float(self._known[first]) - tolerance, self._cost[kind.columns[0]]
            tree = self._trees[turn] = kind.tree(cost, goal, self._context, budget)
        last, done = tree.boxes + most, False
        while len(tree) and not budget.over and not done:
            points = tree.step(min(float(self._known[first]) - tolerance, tree.leaves), budget)
            self._meet(kind, (*points[:1], *tree.left))
            tree.left.clear()
            self._least[kind.owners] = tree.bound
            done = tree.boxes >= last or enough()
        self._least[kind.owners] = tree.bound
        self.nodes = sum(tree.boxes for tree in self._trees if tree is not None)
        return len(tree) > 0

    def _meet(self, kind: ComponentKind, points: Sequence[FloatArray]) -> None:
        """Points of boxes: with the networks' answers there they may cost less than all before, and boxes
        that are no better are closed."""
        cost, loose = self._cost[kind.columns[0]], kind.problem.mip.loosened()
        for point in points:
            self._point[kind.columns] = point[: cost.size]
            x = kind.problem.predict(point[: cost.size])
            apart = np.abs(x - np.round(x))[loose.integer]
            missed = np.concatenate([loose.row_violation(x), loose.bound_violation(x), apart])
            if missed.max() <= TOLERANCE and float(cost @ x) < self._known[kind.owners[0]]:
                self._known[kind.owners] = float(cost @ x)

    def point(self) -> FloatArray:
        """The last point that the trees have found, of all components at once."""
        mip = self._context.problem.mip
        z = np.clip(self._point, mip.lower, mip.upper)
        return np.where(mip.integer, np.round(z), z)
