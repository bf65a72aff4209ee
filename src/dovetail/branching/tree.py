"""Branch and bound over boxes of columns: the host's, the logits', and every neuron's.

    repeat: take the open boxes of lowest bound
            the LP of each: its multipliers prove a bound, its reduced costs shrink the box
            candidates: divisions at integers, inputs, neurons; both parts of all of them are tightened and
            bounded with the same multipliers, in one batch
            a part that is empty, or not better than the goal: the other part is the box, for all candidates
            at once; else the best candidate divides the box

An integer branch, a cut of an input's range and the sign of a neuron are the same act: one bound of one
column. A box leaves the loop empty, with a bound that reaches the goal, or as a leaf that keeps its bound.

If planes give bounds (`plane_boxes.py`), the first box is also divided by planes alone: many boxes at a time,
each at a fraction of an LP's time, with weaker bounds. Both frontiers have the same goal, and the tree's
bound is the better of their bounds. The frontier that was closer to the goal after the same work gets more
work (`pace.py`). Shrinking the first box takes as much work as both frontiers together.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from dovetail.bounds.box import UNIT
from dovetail.branching.candidates import anywhere, candidates, points, remaining, widest
from dovetail.branching.divisions import Divisions
from dovetail.branching.model import Model
from dovetail.branching.pace import Pace, next_of, share
from dovetail.branching.plane_boxes import PlaneBoxes
from dovetail.branching.record import LpMultipliers, Place, Record
from dovetail.branching.relaxation import Multipliers, Solved, TriangleLp
from dovetail.branching.root import Root
from dovetail.core.arrays import FloatArray
from dovetail.core.deadline import require_time
from dovetail.core.mip import TOLERANCE
from dovetail.run import work
from dovetail.run.budget import Budget
from dovetail.run.failures import expendable

TOGETHER = 16
"""Boxes at a time: a batch of them takes little longer than one (chain 2 after 3 s by counts: 0.169, 0.166,
and 0.197 % with 8, 16 and 32; four others take as long)."""
FEW = 2
"""The same where each has rows of its own."""
AREA = 2.0
"""Weight of the second term of the score: a gain in the bound alone cuts thin slices off (weights of 0, 0.1,
1, 2 and 4 took 603, 595, 441, 363 and 313 nodes on an ensemble)."""
MOST_CUTS = 4
"""Number of cuts of trees that are tried for a box (1, 2 and 8 took 4,051, 2,488 and 1,146 boxes on thirty
trees over 20 inputs, 4 took 1,244 and the least time)."""
TINY = 1e-6
"""Smallest gain that counts: a division with gains in both parts is useful all the same."""


class Tables(Protocol):
    """Rows that hold in some boxes (`table_rows.py`)."""

    def add(self, tree: Tree, node: Node, goal: float, budget: Budget) -> None:
        """Rows for a tightened box, as long as they raise its bound; the box may become smaller."""
        ...


@dataclass(order=True)
class Node:
    """An open box; it may hold points that cost at least `bound`."""

    bound: float
    number: int
    lower: FloatArray = field(compare=False)
    upper: FloatArray = field(compare=False)
    tightened: tuple[Model, float] | None = field(default=None, compare=False)
    """The rows and the goal for which the box was tightened as a part of its parent."""
    place: Place | None = field(default=None, compare=False)
    """The box's place in the tree's record, if there is one."""
    shown: LpMultipliers | None = field(default=None, compare=False)
    """The multipliers that prove its bound."""


@dataclass(frozen=True, eq=False)
class _Solved:
    """An open box, its LP, and its candidates for division."""

    node: Node
    lp: Solved
    divisions: Divisions


class Tree:
    """The open boxes of one model, and the bounds of closed ones.

    The caller has a goal: only points that cost less are of interest.
    """

    def __init__(
        self, made: Model, *, seed: int, threads: int, counted: bool = True, record: Record | None = None
    ) -> None:
        """`counted`: its boxes are nodes of the solve; a `record` keeps its proof."""
        self._seed, self._threads, self._counted, self._record = seed, threads, counted, record
        self._heap = [Node(-math.inf, 0, made.lower.copy(), made.upper.copy())]
        self._heap[0].place = None if record is None else record.root
        self._lowest = math.inf
        """The lowest goal so far, for which boxes were closed or reduced."""
        self.leaves = math.inf
        """The lowest bound of boxes that cannot be divided."""
        self.left: list[FloatArray] = []
        """Points of these boxes that were not checked yet."""
        self.promise = math.inf
        """The approximate cost of the first point of the last step."""
        self._numbers, self.boxes = 1, 0
        self.tables: Tables | None = None
        """Local rows of open boxes, if there are any."""
        self.planes: PlaneBoxes | None = None
        """The second frontier, by planes, if there is one."""
        self.first: Root | None = None
        """Shrinks the first box on request."""
        self.by_planes, self.pace = False, Pace()
        """Whether the last step was one of planes; the effort of LPs."""
        self.use(made)

    def shrink_first(self) -> None:
        """Also shrink the first box, with as much work as both frontiers, and more while its bound has the
        smaller gap (control 2 after 1 s: 18 %, 103 % where it waited for boxes to take as long; with as
        much work at most, recourse 2 29 % instead of 19). Less work where its bound is behind: portfolio 2
        after 1 s 4.9 % instead of 0.001, because boxes shrink all the same."""
        self.first = Root(self.model, seed=self._seed, threads=self._threads)

    def use(self, made: Model, bound: float = -math.inf) -> None:
        """Continue with other rows, in a smaller box: open boxes stay; no point costs less than this, unless
        it costs as much as the goal."""
        self.model = made
        for node in self._heap:
            node.bound = max(node.bound, bound)
        if self.first is not None and self.first.model is not made:
            self.first.use(made)
        if self.planes is not None:
            self.planes.use(made, bound, self._lowest)
        if made.solvable:
            self.lp = TriangleLp(
                made.host, made.networks, made.lower, made.upper, seed=self._seed, threads=self._threads
            )

    @property
    def columns(self) -> int:
        """Number of the problem's own columns, which come first."""
        return self.model.columns

    def __len__(self) -> int:
        """Number of open boxes of the frontier with the better bound; if that has only leaves left, of the
        other one."""
        planes, mine = self.planes, len(self._heap) if self.model.solvable else 0
        if planes is None:
            return len(self._heap)
        done = (mine == 0 and self._by_lps >= self._lowest) or (
            not len(planes) and planes.bound >= self._lowest
        )
        if done or not mine or not len(planes):
            return 0 if done else mine + len(planes)
        return mine if self._by_lps > planes.bound else len(planes)

    @property
    def seen(self) -> int:
        """Number of boxes so far, of both frontiers."""
        return self.boxes + (0 if self.planes is None else self.planes.boxes)

    @property
    def empty(self) -> bool:
        """Whether it is proved that there is no point better than the goals."""
        return (not self._heap and self.leaves == math.inf) or (
            self.planes is not None and not len(self.planes) and self.planes.leaves == math.inf
        )

    @property
    def root(self) -> Node | None:
        """The first box."""
        return self._heap[0] if self._numbers == 1 and self._heap else None

    @property
    def bound(self) -> float:
        """A lower bound; infinity: there is no point."""
        of_first = -math.inf if self.first is None else self.first.bound
        return min(max(self._by_frontiers, of_first), self._lowest)

    @property
    def _by_frontiers(self) -> float:
        return max(self._by_lps, -math.inf if self.planes is None else self.planes.bound)

    @property
    def _by_lps(self) -> float:
        return min(self._heap[0].bound if self._heap else math.inf, self.leaves)

    @property
    def lowest_leaf(self) -> float:
        """The lowest bound of boxes that cannot be divided, in either frontier."""
        return min(self.leaves, math.inf if self.planes is None else self.planes.leaves)

    def aim(self, goal: float) -> float:
        """The lowest goal so far, including this one. A goal that rises again (a steadier point may be
        slightly worse) reopens no box."""
        self._lowest = min(self._lowest, goal)
        return self._lowest

    def step(self, goal: float, budget: Budget) -> list[FloatArray]:
        """Process the lowest boxes of one frontier, or shrink the first box; returns the points of LPs, the
        most promising first. Interrupted boxes stay open."""
        goal, self.promise = self.aim(goal), math.inf
        planes, first = self.planes, self.first
        if first is not None and self._first_goes_on(first, goal):
            self._shrink(first, goal, budget)
            return []
        mine = len(self._heap) > 0 and self.model.solvable
        self.by_planes = planes is not None and len(planes) > 0 and (not mine or self._planes_lead(goal))
        if planes is not None and self.by_planes:
            points = planes.step(goal)
            self.left += planes.left
            planes.left.clear()
            return points
        before = budget.effort
        points = self._step_by_lps(min(goal, self.leaves), budget)
        self.pace.add(1e-6 * (budget.effort - before), self._by_lps)
        return points

    def _first_goes_on(self, first: Root, goal: float) -> bool:
        """Whether the first box is shrunk next."""
        part = share(goal - self._by_frontiers, goal - first.bound)
        return self.seen > 0 and part * first.effort <= self.effort and first.again(goal)

    def _planes_lead(self, goal: float) -> bool:
        """Whether the other frontier continues instead of this one."""
        return self.planes is not None and next_of((self.pace, self.planes.pace), goal) is self.planes.pace

    @property
    def effort(self) -> float:
        """Effort of both frontiers, in seconds by counts."""
        return self.pace.effort + (0.0 if self.planes is None else self.planes.pace.effort)

    def _shrink(self, first: Root, goal: float, budget: Budget) -> None:
        """Shrink the first box; a failure is not repeated."""
        with expendable("first box"):
            first.step(goal, budget)
            if first.done:
                self.use(first.model, first.bound)
            return
        self.first = None

    @property
    def _together(self) -> int:
        return TOGETHER if self.tables is None else FEW

    def _step_by_lps(self, goal: float, budget: Budget) -> list[FloatArray]:
        """A step of this frontier."""
        nodes = list[Node]()
        while self._heap and len(nodes) < self._together:
            node = heapq.heappop(self._heap)
            if node.bound < goal:
                nodes.append(node)
            else:
                self._close(node)
        try:
            points = self._process(nodes, goal, budget) if nodes else []
        except BaseException:
            waiting = {id(node) for node in self._heap}
            for node in nodes:
                if id(node) not in waiting and not (node.place and node.place.done):
                    heapq.heappush(self._heap, node)
            raise
        if self._record is not None:
            for place, shown in self._record.looked_at():
                self._ask_again(place, shown)
        self.boxes += len(nodes)
        if self._counted:
            work.count(nodes=len(nodes))
        return points

    def _process(self, nodes: list[Node], goal: float, budget: Budget) -> list[FloatArray]:
        nodes = self._tightened(nodes, goal)
        if self.tables is not None:
            for node in nodes:
                self.tables.add(self, node, goal, budget)
            nodes = [node for node in nodes if node.bound < goal]
        solved = self._relaxed(nodes, goal, budget)
        if not solved:
            return []
        solved.sort(key=lambda one: one.node.bound)
        for one, own in zip(solved, self._parts(solved, goal), strict=True):
            self._divide(one, *own, goal)
        solved.sort(key=lambda one: one.lp.worth)
        self.promise = solved[0].lp.worth
        return [one.lp.x for one in solved if one.lp.x is not None]

    def _tightened(self, nodes: list[Node], goal: float) -> list[Node]:
        """The boxes that are not empty; a part that was tightened for this goal stays."""
        moved = [node for node in nodes if node.tightened != (self.model, goal)]
        if not moved:
            return nodes
        lower, upper = np.stack([node.lower for node in moved]), np.stack([node.upper for node in moved])
        alive = self.model.tighten(lower, upper, goal)
        empty = {id(node) for node, kept in zip(moved, alive, strict=True) if not kept}
        for k, node in enumerate(moved):
            node.lower, node.upper = lower[k], upper[k]
            if not alive[k]:
                self._close(node)
        return [node for node in nodes if id(node) not in empty]

    def _relaxed(self, nodes: list[Node], goal: float, budget: Budget) -> list[_Solved]:
        """The boxes that stay open after their LPs."""
        made, left = self.model, []
        if not nodes:
            return []
        require_time()
        ends = np.stack([node.lower for node in nodes]), np.stack([node.upper for node in nodes])
        for node, lp in zip(nodes, self.lp.solve(*ends, budget), strict=True):
            if lp.multipliers is not None:
                left.append((node, lp, lp.multipliers))
            elif budget.over:
                heapq.heappush(self._heap, node)
            else:
                self._divide_anywhere(node, lp)
        if not left:
            return []
        multipliers = Multipliers.joined([m for *_, m in left])
        lower, upper = np.stack([n.lower for n, *_ in left]), np.stack([n.upper for n, *_ in left])
        bounds, reduced = multipliers.bound(made.host, made.networks, lower, upper, goal)
        if not made.networks:
            for k in np.flatnonzero(np.isneginf(bounds)).tolist():
                bounds[k] = multipliers.in_fractions(made.host, lower[k], upper[k], goal, k)
        kept = []
        for (node, lp, own), bound, prices in zip(left, bounds, reduced, strict=True):
            if self._record is not None:
                node.shown = LpMultipliers(own, prices, 0.0 if lp.infeasible else 1.0)
            if lp.infeasible:
                if bound > 0.0:
                    self._close(node)
                else:
                    self._divide_anywhere(node, lp)
            elif self._shrunk(node, float(bound), prices, own, goal):
                kept.append((node, lp, prices))
        return self._divisible(kept, goal)

    def _divisible(self, nodes: list[tuple[Node, Solved, FloatArray]], goal: float) -> list[_Solved]:
        """Boxes with their LPs, reduced costs and candidates; others are leaves."""
        made, n, solved = self.model, self.model.host.columns, list[_Solved]()
        if not nodes:
            return solved
        lower, upper = np.stack([node.lower for node, *_ in nodes]), np.stack([n.upper for n, *_ in nodes])
        self.model.host.tighten(lower, upper, goal)
        kept = []
        for k, one in enumerate(nodes):
            one[0].lower, one[0].upper = lower[k], upper[k]
            if np.any(lower[k] > upper[k]):
                self._close(one[0])
            else:
                kept.append(k)
        if not kept:
            return solved
        nodes, lower, upper = [nodes[k] for k in kept], lower[kept], upper[kept]
        lps, prices = [lp for _, lp, _ in nodes], np.stack([prices for *_, prices in nodes])
        x = points(lps, lower, upper)[:, :n]
        cuts = made.trees.cuts(lower[:, :n], upper[:, :n], x, prices, MOST_CUTS)
        found = candidates(made, lower, upper, lps, cuts)
        for (node, lp, _), own, divisions in zip(nodes, cuts, found, strict=True):
            if not divisions.columns.size:
                divisions = anywhere(made, node.lower, node.upper, lp.x)
            if divisions.columns.size:
                solved.append(_Solved(node, lp, divisions))
            elif not np.any(own.wrong):
                self._leave(node, lp)
            else:
                self._look_again(node, lp, goal)
        return solved

    def _look_again(self, node: Node, lp: Solved, goal: float) -> None:
        """Tighten a box with a single cell again after reduced costs made it smaller."""
        lower, upper = node.lower[None].copy(), node.upper[None].copy()
        if self.model.tighten(lower, upper, goal)[0]:
            if np.array_equal(lower[0], node.lower) and np.array_equal(upper[0], node.upper):
                self._leave(node, lp)
            else:
                self._push(node, node.bound, lower[0], upper[0])
        else:
            self._close(node)

    def _shrunk(
        self, node: Node, bound: float, prices: FloatArray, multipliers: Multipliers, goal: float
    ) -> bool:
        """Whether a box stays open with this bound; its reduced costs make it smaller."""
        node.bound = max(node.bound, bound)
        if self._record is None and node.bound < goal and math.isfinite(goal) and math.isfinite(bound):
            room = goal - bound + 4.0 * UNIT * (abs(goal) + abs(bound))
            node.lower, node.upper = node.lower.copy(), node.upper.copy()
            by_prices(self.model, node.lower, node.upper, room, self._prices(prices, multipliers))
        if node.bound >= goal:
            self._close(node)
        return node.bound < goal and not np.any(node.lower > node.upper)

    def _leave(self, node: Node, lp: Solved) -> None:
        """Keep a box that cannot be divided, with its bound."""
        self.leaves = min(self.leaves, node.bound)
        self._close(node, node.bound)
        if lp.x is not None:
            self.left.append(lp.x)

    def _divide_anywhere(self, node: Node, lp: Solved) -> None:
        """Divide a box whose LP gives no bound."""
        divisions = anywhere(self.model, node.lower, node.upper)
        if not divisions.columns.size:
            self._leave(node, lp)
            return
        self._push_halves(node, divisions, node.bound)

    def _push_halves(self, node: Node, divisions: Divisions, bound: float) -> None:
        """Divide a box by the first of some divisions, without evaluating its parts."""
        lower, upper = divisions.sides(node.lower, node.upper)
        for side, part in zip((0, divisions.columns.size), self._halves(node, divisions, 0), strict=True):
            self._push(part, bound, lower[side], upper[side])

    def _close(self, node: Node, bound: float = math.inf) -> None:
        """Close a box in the record, at the goal or at this bound."""
        if self._record is not None and node.place is not None:
            self._record.close(node.place, node.shown, bound)

    def _halves(self, node: Node, divisions: Divisions, which: int) -> tuple[Node, Node]:
        """Divide a box in the record."""
        if self._record is None or node.place is None:
            return node, node
        below, above = float(divisions.below[which]), float(divisions.above[which])
        places = self._record.divided(node.place, int(divisions.columns[which]), below, above)
        one, other = (replace(node, place=place) for place in places)
        return one, other

    def _ask_again(self, place: Place, shown: LpMultipliers | None) -> None:
        """A box that the checker does not see closed: first multipliers of its own, then a division."""
        node = Node(-math.inf, 0, place.lower, place.upper, None, place, shown)
        divisions = widest(self.model, place.lower, place.upper)
        if not place.asked:
            place.asked = True
            self._push(node, -math.inf, place.lower, place.upper)
        elif divisions.columns.size:
            self._push_halves(node, divisions, math.inf)
        else:
            self._close(node, -math.inf)

    def finish(self) -> None:
        """End the record; open boxes stay as they are."""
        for node in self._heap:
            self._close(node, -math.inf)
        self._heap.clear()
        if self._record is not None:
            self._record.looked_at()

    def _prices(self, reduced: FloatArray, multipliers: Multipliers) -> FloatArray:
        """The least cost per unit of each column: of variables, and of neurons at a bound."""
        prices = np.zeros(self.model.lower.size)
        prices[: reduced.size] = reduced
        for one, weights in zip(self.model.networks, multipliers.networks, strict=True):
            for place, held in weights.held.items():
                prices[one.inner[place]] = held[0].numpy()
        return prices

    def _parts(
        self, solved: list[_Solved], goal: float
    ) -> list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
        """The parts of each box, tightened, with their bounds (infinite if empty) and the remaining fraction
        of the LP's errors."""
        made, lps = self.model, [one.lp for one in solved]
        boxes = np.stack([one.node.lower for one in solved]), np.stack([one.node.upper for one in solved])
        sides = [one.divisions.sides(*box) for one, *box in zip(solved, *boxes, strict=True)]
        lower, upper = (np.concatenate(ends) for ends in zip(*sides, strict=True))
        owner = np.repeat(np.arange(len(solved)), [len(low) for low, _ in sides])
        moved = np.concatenate([np.tile(one.divisions.columns < made.host.columns, 2) for one in solved])
        alive = np.flatnonzero(made.tighten(lower, upper, goal, moved))
        multipliers = Multipliers.joined([lp.multipliers for lp in lps if lp.multipliers is not None])
        bound = np.full(len(lower), np.inf)
        if alive.size:
            low, high = lower[alive], upper[alive]
            found, _ = multipliers.take(owner[alive]).bound(made.host, made.networks, low, high, goal)
            bound[alive] = found
        left = remaining(made, boxes, lps, [one.divisions for one in solved], (lower, upper), owner)
        ends = np.cumsum([len(low) for low, _ in sides])[:-1]
        return list(zip(*(np.split(part, ends) for part in (lower, upper, bound, left)), strict=True))

    def _divide(
        self,
        one: _Solved,
        lower: FloatArray,
        upper: FloatArray,
        bound: FloatArray,
        still: FloatArray,
        goal: float,
    ) -> None:
        """Replace a box by its open parts: none, one smaller box, or two."""
        node, count = one.node, one.divisions.columns.size
        bound = np.maximum(bound, node.bound)
        dead = (bound >= goal).reshape(2, count)
        if np.any(dead.all(0)):
            for half in self._halves(node, one.divisions, int(np.argmax(dead.all(0)))):
                self._close(half)
            return
        if np.any(dead):
            left = np.concatenate([np.flatnonzero(dead[1]), count + np.flatnonzero(dead[0])])
            for k in np.flatnonzero(dead.any(0)).tolist():
                pair = self._halves(node, one.divisions, k)
                self._close(pair[0 if dead[0, k] else 1])
                node = pair[1 if dead[0, k] else 0]
            ends = lower[left].max(0), upper[left].min(0)
            self._push(node, float(bound[left].max()), *ends)
            return
        gain = AREA * (1.0 - still)
        if math.isfinite(node.bound):
            rise = bound - node.bound
            gain += np.minimum(
                1.0, rise / (goal - node.bound if math.isfinite(goal) else max(rise.max(), TINY))
            )
        gain = np.maximum(gain, TINY).reshape(2, count)
        best = int(np.argmax(gain[0] * gain[1]))
        # a sign leaves the inputs as they are: networks are evaluated when its parts are taken
        tightened = (self.model, goal) if one.divisions.columns[best] < self.model.host.columns else None
        halves = self._halves(node, one.divisions, best)
        for k, half in zip((best, count + best), halves, strict=True):
            self._push(half, float(bound[k]), lower[k], upper[k], tightened)

    def _push(
        self,
        of: Node,
        bound: float,
        lower: FloatArray,
        upper: FloatArray,
        tightened: tuple[Model, float] | None = None,
    ) -> None:
        """Add a part of a node."""
        if np.any(lower > upper):
            self._close(of)
            return
        box = lower.copy(), upper.copy()
        node = Node(bound, self._numbers, *box, tightened, of.place, of.shown)
        heapq.heappush(self._heap, node)
        self._numbers += 1


HAIR = 1e-9
"""Relative: a multiple of the rounding of a quotient and a sum."""


def by_prices(model: Model, lower: FloatArray, upper: FloatArray, room: float, prices: FloatArray) -> None:
    """In place: a column whose move from its cheaper bound costs more than the gap stays near that bound."""
    up = np.flatnonzero((prices > 0.0) & np.isfinite(lower))
    down = np.flatnonzero((prices < 0.0) & np.isfinite(upper))
    high = lower[up] + (room / prices[up] * (1.0 + HAIR) + HAIR * np.maximum(1.0, np.abs(lower[up])))
    low = upper[down] + (room / prices[down] * (1.0 + HAIR) - HAIR * np.maximum(1.0, np.abs(upper[down])))
    upper[up], lower[down] = np.minimum(upper[up], high), np.maximum(lower[down], low)
    whole = np.flatnonzero(model.host.integer)
    lower[whole], upper[whole] = np.ceil(lower[whole] - TOLERANCE), np.floor(upper[whole] + TOLERANCE)
