"""The boxes into which one component has been divided; together they contain all solutions of the component.

The rest of the problem sees only the *use* of a component: its cost, and its contribution to each coupling
constraint, all written as G z <= h. Interval arithmetic gives the least use of a box of cells, entry by
entry.

A box represents its solutions by its least use. A box whose cheapest corner is a true solution is *closed*:
it is not divided further, and any other box that uses no less of anything is dropped. Other boxes are
examined at the solution with nearly the least use. If the outputs there equal those assumed by the least
use, no division is needed. Otherwise some trees have better leaves elsewhere, and the box is divided as in
branching over trees, where most of the difference arises (`branching/tree_ensembles.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import PAD, UNIT, Box, RowEntries
from dovetail.branching.divisions import Divisions
from dovetail.branching.model import Model
from dovetail.branching.tree_ensembles import TreeSamples
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import EngineError
from dovetail.methods.branching_model import model_of
from dovetail.methods.cell_descent.descent import MoveDescent
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import LinearProgram
from dovetail.run import work
from dovetail.run.budget import Budget
from dovetail.run.failures import expendable
from dovetail.structure.components import Components, component_problem
from dovetail.structure.trees import TreeProblem, in_cells


@dataclass(frozen=True, eq=False)
class TreeComponent:
    """One component by itself."""

    trees: TreeProblem
    columns: IntArray
    """Its columns in the whole problem."""
    terms: sp.csr_array
    """(1 + R, columns) its cost, and its entries in all coupling rows."""

    @cached_property
    def prices_of(self) -> sp.csr_array:
        """(columns, 1 + R) the transposed terms: times prices, the cost of each column."""
        return sp.csr_array(self.terms.T)

    @cached_property
    def model(self) -> Model:
        """Its model for branching, for propagation of rows and trees."""
        problem, host = self.trees.problem, self.trees.host
        ensembles = {sample.block.name: sample.boxes.ensemble for sample in self.trees.samples}
        return model_of(problem.derived(host, problem.blocks), host.lower, host.upper, ensembles)

    @cached_property
    def _uses(self) -> RowEntries:
        return RowEntries.filled(self.terms)

    def bounded(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, BoolArray]:
        """(N, 1 + R) the least use of boxes (N, columns), which are tightened in place, and which are
        empty."""
        left = self.model.tighten(lower, upper, np.inf)
        use = np.zeros((len(lower), self.terms.shape[0]))
        use[:, self._uses.number] = self._uses.least(lower, np.maximum(lower, upper))
        return use, ~left


def tree_components(trees: TreeProblem, parts: Components) -> Iterator[TreeComponent]:
    """The components of a problem, in order."""
    host, problem = trees.host, trees.problem
    terms = sp.csr_array(sp.vstack([sp.csr_array(host.cost[None]), parts.coupling(host)[0]], format="csr"))
    ensembles = {sample.block.name: sample.boxes.ensemble for sample in trees.samples}
    for c, columns in enumerate(parts.columns(problem)):
        alone = component_problem(problem, columns, parts.rows[c])
        mine = sp.diags_array((parts.owner[columns] == c).astype(float))
        own = sp.csr_array(terms[:, columns] @ mine)
        own.eliminate_zeros()
        box = Box(host.lower[columns], host.upper[columns])
        yield TreeComponent(in_cells(alone, ensembles, box), columns, own)


CLOSE = 1e-5
"""Relative to 1 + |use|: a point that uses no more than this beyond a box's least use represents the box.
Bounds do not depend on it."""
STEP_EFFORT, SAMPLE_EFFORT = 2.6e-3, 6e-4
"""Seconds of a step, which divides about ten boxes, and for each sample of the component (see
`Work.effort`)."""
ROW = 10.0 * PAD
"""The violation of a row by a point that is allowed, because bounds are propagated with `PAD`. Bounds do not
depend on it."""


class Frontier:
    """The boxes of one component; entry k of all lists is one box."""

    def __init__(self, component: TreeComponent, *, seed: int, threads: int) -> None:
        self._component, self._settings = component, (seed, threads)
        self._descent: MoveDescent | None = None
        host = component.trees.host
        self._samples = TreeSamples(component.trees.cells, component.trees.samples)
        self._live = LoadedHighs(LinearProgram.of(host.relaxed()), seed=seed, threads=threads)
        self.lower, self.upper = host.lower[None].copy(), host.upper[None].copy()
        self.use, empty = component.bounded(self.lower, self.upper)
        self.closed: BoolArray = np.zeros(1, dtype=bool)
        self.ever_closed = False
        self.points: list[FloatArray] = []
        """Points (columns of the component) that were found, integers relaxed."""
        self.used: FloatArray = np.empty((0, self.use.shape[1]))
        """(points, 1 + R) the use of each."""
        if empty[0]:
            self.keep(np.zeros(1, dtype=bool))

    @property
    def size(self) -> int:
        """Number of boxes."""
        return len(self.use)

    def keep(self, which: BoolArray) -> None:
        """Drop all other boxes."""
        if np.all(which):
            return
        self.lower, self.upper = self.lower[which], self.upper[which]
        self.use, self.closed = self.use[which], self.closed[which]

    def keys(self, prices: FloatArray) -> FloatArray:
        """(boxes,) the least cost of each at (1 + R,) prices of cost and coupling rows, rounded down."""
        size = np.abs(self.use) @ prices
        return np.asarray(self.use @ prices - 2.0 * UNIT * (self.use.shape[1] + 1) * size)

    def least_active(self, prices: FloatArray, budget: Budget) -> FloatArray:
        """The component's point of least use at (1 + R,) prices, without integers and trees."""
        host, price = self._component.trees.host, self._component.prices_of @ prices
        x = self._solved((host.lower, host.upper), price, budget)
        x = np.clip(0.0 if x is None else x, host.lower, host.upper)
        self.met(self._component.trees.cells.of_point(x), price, budget)
        return np.asarray(x)

    def refine(self, count: int, prices: FloatArray, rest: FloatArray, budget: Budget) -> None:
        """Close or divide the open boxes of least cost at (1 + R,) prices. `rest` is a point of the
        component with little use, near which boxes are examined."""
        key = np.where(self.closed, np.inf, self.keys(prices))
        boxes = np.argsort(key, kind="stable")[:count]
        self.look_into(boxes[np.isfinite(key[boxes])], prices, rest, budget)

    def look_into(self, boxes: IntArray, prices: FloatArray, rest: FloatArray, budget: Budget) -> None:
        """Close or divide these open boxes (see `refine`)."""
        if boxes.size == 0:
            return
        price = self._component.prices_of @ prices
        trees = self._component.trees
        work.count(effort=STEP_EFFORT + SAMPLE_EFFORT * len(trees.samples))
        lower, upper, outputs = self.lower[boxes], self.upper[boxes], trees.problem.outputs
        x = np.clip(rest, lower, upper)
        x[:, outputs] = np.where(price[outputs] > 0.0, lower[:, outputs], upper[:, outputs])
        cells = self._samples.cells_of(x)
        cuts = self._samples.cuts(lower, upper, x, np.tile(price, (boxes.size, 1)), 1)
        right = np.array([k for k, one in enumerate(cuts) if not one.columns.size], dtype=np.int64)
        if right.size:
            right = right[~self._met_corners(boxes[right], x[right], cells[right])]
        for k in right:
            if not self._close(int(boxes[k]), cells[k], price, budget):
                cuts[k] = self._widest(int(boxes[k]))
        gone = self._stood_for(boxes[self.closed[boxes]])
        self._cut([(int(k), one) for k, one in zip(boxes, cuts, strict=True) if one.columns.size], gone)

    def _widest(self, k: int) -> Divisions:
        """The division in the middle of the column with most cells."""
        cells = self._component.trees.cells
        low, high = self._samples.cells_of(np.stack([self.lower[k], self.upper[k]]))
        place = int(np.argmax(high - low))
        at = cells.first[place] + (low[place] + high[place] - 1) // 2
        above = np.maximum(cells.low[at + 1], np.nextafter(cells.high[at], np.inf))
        return Divisions(cells.columns[[place]], cells.high[[at]], np.array([above]), np.zeros(0))

    def _met_corners(self, boxes: IntArray, x: FloatArray, cells: IntArray) -> BoolArray:
        """(N,) boxes closed by points (N, columns) in these cells, without an LP."""
        host, use = self._component.trees.host, self.use[boxes]
        rows, used = (host.A @ x.T).T, (self._component.terms @ x.T).T
        fits = np.all((rows >= host.row_lower - ROW) & (rows <= host.row_upper + ROW), axis=1)
        fits &= np.all(used <= use + CLOSE * (1.0 + np.abs(use)), axis=1)
        for k in np.flatnonzero(fits):
            self._know(self._component.trees.cells.moved_into(x[k], cells[k]), used[k])
        self.closed[boxes[fits]] = True
        self.ever_closed |= bool(np.any(fits))
        return np.asarray(fits)

    def _close(self, k: int, cells: IntArray, price: FloatArray, budget: Budget) -> bool:
        """Whether a point in these cells uses hardly more than the box, or there are no others."""
        used = self.met(cells, price, budget)
        ends = self._samples.cells_of(np.stack([self.lower[k], self.upper[k]]))
        close = np.all(ends[0] == ends[1])
        if used is not None:
            close |= np.all(used <= self.use[k] + CLOSE * (1.0 + np.abs(self.use[k])))
        self.closed[k] = close
        self.ever_closed |= bool(close)
        return bool(close)

    def met(self, cells: IntArray, price: FloatArray, budget: Budget) -> FloatArray | None:
        """The use of the component's cheapest point in some cells, which is kept; None without one."""
        trees = self._component.trees
        point = self._solved(trees.bounds_in(cells, trees.outputs_at(cells)), price, budget)
        if point is None:
            return None
        used = np.asarray(self._component.terms @ point)
        self._know(point, used)
        return used

    def _know(self, point: FloatArray, used: FloatArray) -> None:
        """Keep a point, unless another uses no more of anything."""
        if not np.any(np.all(self.used <= used, axis=1)):
            self.points.append(point)
            self.used = np.concatenate([self.used, used[None]])

    def met_at(self, x: FloatArray, prices: FloatArray, budget: Budget) -> None:
        """The cheapest point in the cells of another one."""
        price = self._component.prices_of @ prices
        self.met(self._component.trees.cells.of_point(x), price, budget)

    def descend(self, prices: FloatArray, budget: Budget) -> None:
        """A descent over cells at these prices, from the cheapest known point."""
        if not self.points:
            return
        trees, price = self._component.trees, self._component.prices_of @ prices
        if self._descent is None:
            self._descent = MoveDescent(trees, seed=self._settings[0], threads=self._settings[1])
        self._descent.set_cost(price)
        best = int(np.argmin(self.used @ prices))
        found = self._descent.descend(trees.cells.of_point(self.points[best]), budget)
        if found is not None:
            self.met(found.cells, price, budget)

    def _solved(
        self, bounds: tuple[FloatArray, FloatArray], price: FloatArray, budget: Budget
    ) -> FloatArray | None:
        """The cheapest point within bounds; None without one, or if HiGHS fails."""
        with expendable("LP of a component", EngineError):
            self._live.set_bounds(*bounds)
            self._live.set_objective(price, 0.0)
            return self._live.run(budget, 0.0)[1]
        return None

    def _cut(self, cuts: list[tuple[int, Divisions]], gone: BoolArray) -> None:
        """Replace boxes by their halves; boxes that are `gone` (boxes,) are dropped."""
        cuts = [(k, one) for k, one in cuts if not gone[k]]
        if not cuts:
            self.keep(~gone)
            return
        halves = [one.sides(self.lower[k], self.upper[k]) for k, one in cuts]
        lower, upper = (np.concatenate(ends) for ends in zip(*halves, strict=True))
        parents = np.array([k for k, _ in cuts])
        use, empty = self._component.bounded(lower, upper)
        use = np.maximum(use, self.use[np.repeat(parents, 2)])
        new = ~empty & ~self._dominated(use)
        old = ~gone
        old[parents] = False
        self.keep(old)
        self.lower = np.concatenate([self.lower, lower[new]])
        self.upper = np.concatenate([self.upper, upper[new]])
        self.use = np.concatenate([self.use, use[new]])
        self.closed = np.concatenate([self.closed, np.zeros(int(new.sum()), dtype=bool)])

    def _dominated(self, use: FloatArray) -> BoolArray:
        """(N,) whether each uses at least as much of everything as some closed box."""
        known = self.use[self.closed]
        return np.asarray(np.any(np.all(known[None] <= use[:, None], axis=2), axis=1))

    def _stood_for(self, closed: IntArray) -> BoolArray:
        """(boxes,) whether each uses at least as much of everything as a box that was closed just now. Among
        equal closed ones the first stays."""
        gone, number = np.zeros(self.size, dtype=bool), np.arange(self.size)
        for k in closed:
            below = np.all(self.use[k] <= self.use, axis=1)
            same = self.closed & np.all(self.use[k] == self.use, axis=1)
            gone |= below & np.where(same, k < number, True)
        return gone
