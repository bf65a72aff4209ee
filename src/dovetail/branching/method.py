"""Branch and bound over boxes of columns: the host's, the logits', and every neuron's.

    repeat: take the open boxes of lowest bound
            the LP of each: its multipliers prove a bound, its reduced costs shrink the box
            candidates: divisions at integers, inputs, neurons; both parts of all of them are tightened and
            bounded with the same multipliers, in one batch
            a part that is empty, or not better than the goal: the other part is the box, for all candidates
            at once; else the best candidate divides the box

An integer branch, a cut of an input's range and the sign of a neuron are the same act: one bound of one
column. A box leaves the loop empty, with a bound that reaches the goal, or as a leaf that keeps its bound.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

import numpy as np
import torch

from dovetail.branching.candidates import Candidates, candidates
from dovetail.branching.model import Model, model
from dovetail.branching.points import SOURCE, Points
from dovetail.branching.relaxation import Multipliers, Solved, TriangleLp
from dovetail.branching.shrinking import by_lps, by_prices
from dovetail.core.amounts import several
from dovetail.core.arrays import FloatArray
from dovetail.core.deadline import require_time
from dovetail.methods.out_of_reach import out_of_reach
from dovetail.run import work
from dovetail.run.bound import Bound, Scope
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress

TOGETHER = 16
"""Boxes at a time: a batch of them takes little longer than one."""
AREA = 2.0
"""Weight of the second term of the score: a gain in the bound alone cuts thin slices off (weights of 0, 0.1,
1, 2 and 4 took 603, 595, 441, 363 and 313 nodes on an ensemble)."""
HALF = 0.5
"""Of the gap that counts as closed: boxes are closed within it, so that the proof is within the whole."""
NO_POINT = "proved by branching over {boxes}: nowhere do the predictors give what rows and bounds ask for"


@dataclass(frozen=True)
class Branching:
    """Proves a bound, and meets points on the way, whatever the networks and rows."""

    name = "branching"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Until every box is closed, or a limit is met."""
        if (ended := out_of_reach(context)) is not None:
            return ended
        with torch.inference_mode(False), torch.no_grad():
            made = context.once(model)
            if isinstance(made, str):
                return MethodOutcome(StopReason.STALLED, 0, f"branching: {made}")
            return context.once(_tree).run(context)


def _tree(context: SolveContext) -> _Tree:
    """That of a solve: a phase that was cut short goes on where it was (see `SolveContext.once`)."""
    made = context.once(model)
    assert isinstance(made, Model)
    return _Tree(context, made)


@dataclass(order=True)
class _Node:
    """An open box; it may hold points that cost at least `bound`."""

    bound: float
    number: int
    lower: FloatArray = field(compare=False)
    upper: FloatArray = field(compare=False)


@dataclass(frozen=True, eq=False)
class _Solved:
    """An open box, its LP, and where it may be divided."""

    node: _Node
    lp: Solved
    divisions: Candidates


class _Tree:
    """The open boxes of one problem, and what was proved of the others."""

    def __init__(self, context: SolveContext, made: Model) -> None:
        self._context, self._scope = context, Scope.CHECKED
        self._use(made)
        self._heap = [_Node(-math.inf, 0, made.lower.copy(), made.upper.copy())]
        self._leaves = math.inf
        """The lowest bound of boxes that nothing can divide."""
        self._goal_met = math.inf
        """The lowest goal that boxes were closed at."""
        self._numbers, self.boxes = 1, 0
        self._points = Points()
        self._asked = False

    def _use(self, made: Model) -> None:
        self._model = made
        self._lp = TriangleLp(
            made.host,
            made.networks,
            made.lower,
            made.upper,
            seed=self._context.seed,
            threads=self._context.threads,
        )

    def run(self, context: SolveContext) -> MethodOutcome:
        """The loop, from where it was."""
        self._context, self._progress = context, Progress(context)
        while self._heap and not context.over:
            self._step()
            self._raise()
        boxes = several(self.boxes, "box", "boxes")
        if not self._heap and min(self._leaves, self._goal_met) == math.inf and context.incumbent.x is None:
            return MethodOutcome(
                StopReason.PROVED, self._progress.done, NO_POINT.format(boxes=boxes), infeasible=True
            )
        message = f"branching: {boxes}, {f'{len(self._heap):,} open' if self._heap else 'closed'}"
        reason = context.over or StopReason.STALLED
        return MethodOutcome(reason, self._progress.done, message, closed=not self._heap)

    def _step(self) -> None:
        """The lowest boxes; a box that is interrupted stays open."""
        if self._scope is Scope.CHECKED and self._context.incumbent.x is not None:
            self._write()
        goal = self._goal
        nodes: list[_Node] = []
        while self._heap and len(nodes) < TOGETHER:
            node = heapq.heappop(self._heap)
            if node.bound < goal:
                nodes.append(node)
            else:
                self._goal_met = min(self._goal_met, goal)
        if not nodes:
            return
        try:
            self._process(nodes)
        except BaseException:
            for node in nodes:
                heapq.heappush(self._heap, node)
            raise

    def _write(self) -> None:
        """A point is known, and what follows bounds the problem as it is written: points that use up the
        check's tolerance are no better than others by anything that anybody wants."""
        self._scope = Scope.WRITTEN
        mip = (self._context.relaxed or self._context.problem).mip.minimised()
        self._use(self._model.exactly(mip))
        heap, self._heap = self._heap, []
        for node in heap:  # the first one alone, mostly
            self._push(
                node.bound,
                np.maximum(node.lower, self._model.lower),
                np.minimum(node.upper, self._model.upper),
            )

    @property
    def _cutoff(self) -> float:
        """The best objective, in minimisation form."""
        mip, incumbent = self._context.problem.mip, self._context.incumbent
        return mip.sign * incumbent.objective if incumbent.x is not None else math.inf

    @property
    def _goal(self) -> float:
        """Boxes of this bound are closed: within half the gap of the best point, or a leaf is lower."""
        incumbent, cutoff = self._context.incumbent, self._cutoff
        if not math.isfinite(cutoff):
            return self._leaves
        return min(cutoff - HALF * incumbent.gap.allowed(incumbent.objective), self._leaves)

    def _raise(self) -> None:
        bound = min(self._heap[0].bound if self._heap else math.inf, self._leaves, self._goal_met)
        if math.isfinite(bound):
            self._context.incumbent.raise_bound(Bound(bound, SOURCE, self._scope))

    # ---- boxes

    def _process(self, nodes: list[_Node]) -> None:
        self.boxes += len(nodes)
        work.count(nodes=len(nodes))
        goal = self._goal
        lower, upper = np.stack([node.lower for node in nodes]), np.stack([node.upper for node in nodes])
        alive = self._model.tighten(lower, upper, goal)
        if not np.all(alive) and math.isfinite(goal):
            self._goal_met = min(self._goal_met, goal)
        for k, node in enumerate(nodes):
            node.lower, node.upper = lower[k], upper[k]
            if alive[k] and not self._asked and math.isfinite(goal):
                self._asked = True
                alive[k] = by_lps(self._model, self._lp, node.lower, node.upper, goal, self._context.budget)
                if not alive[k]:
                    self._goal_met = min(self._goal_met, goal)
        solved = self._relaxed([node for node, kept in zip(nodes, alive, strict=True) if kept], goal)
        if not solved:
            return
        lowest = min(solved, key=lambda one: one.node.bound)
        assert lowest.lp.x is not None
        self._points.offer(self._context, lowest.lp.x[: self._model.columns], self.boxes)
        goal = min(goal, self._goal)
        for one, parts in zip(solved, self._parts(solved, goal), strict=True):
            self._divide(one, *parts, goal)

    def _relaxed(self, nodes: list[_Node], goal: float) -> list[_Solved]:
        """What is left of boxes when their LPs are solved: those that are not closed."""
        made, left = self._model, []
        if not nodes:
            return []
        require_time()
        ends = np.stack([node.lower for node in nodes]), np.stack([node.upper for node in nodes])
        for node, lp in zip(nodes, self._lp.solve(*ends, self._context.budget), strict=True):
            if lp.multipliers is None:
                self._leave(node, lp)
            else:
                left.append((node, lp, lp.multipliers))
        if not left:
            return []
        multipliers = Multipliers.joined([m for *_, m in left])
        lower, upper = np.stack([n.lower for n, *_ in left]), np.stack([n.upper for n, *_ in left])
        bounds, reduced = multipliers.bound(made.host, made.networks, lower, upper, goal)
        solved = []
        for (node, lp, own), bound, prices in zip(left, bounds, reduced, strict=True):
            if lp.infeasible:
                if not bound > 0.0:
                    self._leave(node, lp)
            elif self._shrunk(node, float(bound) + made.host.offset, prices, own, goal):
                divisions = candidates(made, node.lower, node.upper, lp)
                if divisions.columns.size:
                    solved.append(_Solved(node, lp, divisions))
                else:
                    self._leave(node, lp)
        return solved

    def _shrunk(
        self, node: _Node, bound: float, prices: FloatArray, multipliers: Multipliers, goal: float
    ) -> bool:
        """Whether a box stays open with this bound; its reduced costs leave a part of it."""
        node.bound = max(node.bound, bound)
        if node.bound < goal and math.isfinite(goal) and math.isfinite(bound):
            all_prices = self._prices(prices, multipliers)
            by_prices(self._model, node.lower, node.upper, goal - bound, all_prices)
        if node.bound < goal and not np.any(node.lower > node.upper):
            return True
        self._goal_met = min(self._goal_met, goal)
        return False

    def _leave(self, node: _Node, lp: Solved) -> None:
        """A box that nothing can divide, or whose LP failed: its point is offered, and it keeps its bound."""
        if lp.x is not None:
            point = lp.x[: self._model.columns]
            self._context.incumbent.offer(point.copy(), SOURCE)
            if node.bound < self._goal:
                self._points.descend(self._context, point)
        if node.bound < self._goal:
            self._leaves = min(self._leaves, node.bound)
        else:
            self._goal_met = min(self._goal_met, self._goal)

    def _prices(self, reduced: FloatArray, multipliers: Multipliers) -> FloatArray:
        """What a unit of each column costs at least: of the host's, and of neurons held at a bound."""
        prices = np.zeros(self._model.lower.size)
        prices[: reduced.size] = reduced
        for one, weights in zip(self._model.networks, multipliers.networks, strict=True):
            for place, held in weights.held.items():
                prices[one.inner[place]] = held[0].numpy()
        return prices

    def _parts(
        self, solved: list[_Solved], goal: float
    ) -> list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
        """Of each box: its parts, tightened, their bounds (infinite where they are empty) and areas."""
        sides = [one.divisions.sides(one.node.lower, one.node.upper) for one in solved]
        lower, upper = (np.concatenate(ends) for ends in zip(*sides, strict=True))
        alive = np.flatnonzero(self._model.tighten(lower, upper, goal))
        owner = np.repeat(np.arange(len(solved)), [len(low) for low, _ in sides])
        multipliers = Multipliers.joined([m for one in solved if (m := one.lp.multipliers) is not None])
        bound, area = np.full(len(lower), np.inf), np.zeros(len(lower))
        if alive.size:
            low, high = lower[alive], upper[alive]
            found, _ = multipliers.take(owner[alive]).bound(
                self._model.host, self._model.networks, low, high, goal
            )
            bound[alive] = found + self._model.host.offset
            area[alive] = self._model.open_area(low, high)
        ends = np.cumsum([len(low) for low, _ in sides])[:-1]
        return list(zip(*(np.split(part, ends) for part in (lower, upper, bound, area)), strict=True))

    def _divide(
        self,
        one: _Solved,
        lower: FloatArray,
        upper: FloatArray,
        bound: FloatArray,
        area: FloatArray,
        goal: float,
    ) -> None:
        """A box into what its parts show of it: nothing, a smaller box, or two."""
        node, count = one.node, one.divisions.columns.size
        bound = np.maximum(bound, node.bound)
        dead = (bound >= goal).reshape(2, count)
        if np.any(np.isfinite(bound) & (bound >= goal)):
            self._goal_met = min(self._goal_met, goal)
        if np.any(dead.all(0)):
            if math.isfinite(goal):
                self._goal_met = min(self._goal_met, goal)
            return
        if np.any(dead):
            left = np.concatenate([np.flatnonzero(dead[1]), count + np.flatnonzero(dead[0])])
            self._push(float(bound[left].max()), lower[left].max(0), upper[left].min(0))
            return
        now = float(self._model.open_area(node.lower[None], node.upper[None])[0])
        gain = AREA * (1.0 - area / now) if now > 0.0 else np.zeros(2 * count)
        known = math.isfinite(goal) and math.isfinite(node.bound)
        if known:
            gain = gain + np.minimum(1.0, (bound - node.bound) / (goal - node.bound))
        else:
            rise = (
                np.where(np.isfinite(bound), bound - node.bound, 0.0)
                if math.isfinite(node.bound)
                else 0.0 * bound
            )
            gain = gain + rise / max(float(rise.max()), 1e-300)
        gain = np.maximum(gain, 1e-6).reshape(2, count)
        best = int(np.argmax(gain[0] * gain[1]))
        for side in (best, count + best):
            self._push(float(bound[side]), lower[side], upper[side])

    def _push(self, bound: float, lower: FloatArray, upper: FloatArray) -> None:
        if np.any(lower > upper):
            return
        heapq.heappush(self._heap, _Node(bound, self._numbers, lower.copy(), upper.copy()))
        self._numbers += 1
