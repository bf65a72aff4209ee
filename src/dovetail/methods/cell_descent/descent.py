"""Descent over cells: the move of one input that gains most, until no move gains; then a random kick.

    profile:  what all outputs become after every single move, exactly
    bound:    what each move costs at least, by the multipliers of the cells' LP (which is convex in bounds)
    LPs:      in the order of these bounds, until the next cannot beat the best found

Where no single move gains, several moves of one sample may change its class (`turned`). The scores choose
these moves:

    repeat: of all moves of the sample's inputs the one that brings the score nearest for its way
            until the class turns; the LP then says what that is worth

The length of a move is how far its input moves, in widths of its box, plus its cost at the LP's prices.

The exact profile gives the sample's outputs after every move of a single input, in one pass. A move of one
column changes the leaf of a tree only if the new leaf was excluded by that column alone. So

    leaves with one violated demand add their values on the cells that satisfy the demand active leaves
    subtract their values on the cells that violate a demand

as differences along the cells, summed up once. The effort is the number of demands, whatever the number of
cells: 37,000 moves of 300 trees take 5 ms, where evaluating them takes three seconds.

The LP is the MIP's relaxation with inputs held in cells and outputs as given by the trees; penalties keep the
LP feasible.

Rows, and bounds of outputs, may be missed at a price. The LP's value is convex in all bounds, so that its
multipliers bound the cost of any other choice of cells from below: moves are tried in this order, and most of
them need no LP.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import Mip
from dovetail.linearised.scaled_problem import DECREASE, ROW_PENALTY
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import LinearProgram
from dovetail.run.budget import Budget
from dovetail.structure.trees import InputCells, LeafBoxes, TreeProblem, TreeSample

MOST_LPS = 1000
"""Largest number of LPs for one step: bounds of moves are loose, and an LP takes half a millisecond (`python
-m benchmarks.trees diet:30x5 --seeds 1 --no-peer`)."""
MOST_TURNS = 24
"""Largest number of classes that one point tries to change."""
ENOUGH = 4
"""Number of LPs after the first improvement: a better one is usually among the next few."""
MOST_KEPT_POINTS = 5_000
"""Largest number of points kept, by their cells."""
KICKS = (2, 5)
"""Least and largest number of inputs that a kick moves."""


MOST_MOVES = 6
"""Largest number of moves of one sample that change a class together."""
LEAST_DISTANCE = 1e-3
"""In widths: added to every distance, so that moves of distance 0 are compared by their gain."""
WIDEST = 1e4
"""The largest width that counts for cost times width, because free columns may be unbounded."""
HELD = 1e-7
"""Total violation up to which a point counts as feasible in the search."""


def _limited(sample: TreeSample, host: Mip) -> IntArray:
    """Outputs with bounds to violate; classes are 0 or 1 anyway."""
    lower, upper = host.lower[sample.outputs], host.upper[sample.outputs]
    if sample.block.classifies:
        return sample.outputs[(lower > 0.0) | (upper < 1.0)]
    return sample.outputs[np.isfinite(lower) | np.isfinite(upper)]


@dataclass(frozen=True, eq=False)
class CellPoint:
    """The best point in some cells."""

    cells: IntArray
    outputs: FloatArray
    """(columns,) the trees' outputs; 0 for other columns."""
    value: float
    """Cost and penalties."""
    x: FloatArray
    missed: float
    reduced: FloatArray
    """(columns,) the gain of the value per unit of each column's bound."""


class CellProgram:
    """One LP that is solved repeatedly with other bounds."""

    def __init__(self, trees: TreeProblem, *, seed: int, threads: int) -> None:
        self._trees, host = trees, trees.host
        limited = np.array([j for sample in trees.samples for j in _limited(sample, host)], dtype=np.int64)
        rows = sp.csr_array((np.ones(limited.size), (np.arange(limited.size), limited)),
                            shape=(limited.size, host.n_columns))  # fmt: skip
        A = sp.vstack([host.A, rows], format="csr")
        row_lower = np.concatenate([host.row_lower, host.lower[limited]])
        row_upper = np.concatenate([host.row_upper, host.upper[limited]])
        size = abs(A).max(axis=1).toarray().ravel() if A.shape[0] else np.empty(0)
        self._size = np.where(size > 0.0, size, 1.0)
        self._rows, self._missing = sp.csr_array(A.T), np.zeros(2 * A.shape[0])
        eye = sp.eye_array(A.shape[0])
        program = LinearProgram(
            sp.csr_array(sp.hstack([A, eye, -eye], format="csr")),
            row_lower,
            row_upper,
            *self._bounds(host.lower, host.upper),
            np.zeros(host.n_columns + self._missing.size, dtype=bool),
        )
        self._live = LoadedHighs(program, seed=seed, threads=threads)
        self.set_cost(host.cost)

    def set_cost(self, cost: FloatArray) -> None:
        """Set the costs of columns and the penalties of violated rows."""
        host = self._trees.host
        width = np.minimum(host.upper - host.lower, WIDEST)
        at_stake = float(np.sqrt(np.sum((cost * width) ** 2))) or 1.0
        price = ROW_PENALTY * at_stake / self._size
        self._host_cost, self._cost = cost, np.concatenate([cost, price, price])
        self._live.set_objective(self._cost, host.offset)

    def solve(self, cells: IntArray, outputs: FloatArray, budget: Budget) -> CellPoint | None:
        """The best point, or None if the engine has none."""
        host = self._trees.host
        lower, upper = self._trees.bounds_in(cells, outputs)
        self._live.set_bounds(*self._bounds(lower, upper))
        _, found, _ = self._live.run(budget, 0.0)
        if found is None:
            return None
        x = np.clip(found[: host.n_columns], lower, upper)
        reduced = self._host_cost - self._rows @ self._live.row_duals()
        missed = float(found[host.n_columns :].sum())
        return CellPoint(cells, outputs, float(self._cost @ found) + host.offset, x, missed, reduced)

    def _bounds(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (
            np.concatenate([lower, self._missing]),
            np.concatenate([upper, self._missing + np.inf]),
        )


class MoveProfile:
    """The moves of one sample, evaluated at many points."""

    def __init__(self, boxes: LeafBoxes, cells: InputCells) -> None:
        self._boxes = boxes
        self.columns = np.unique(boxes.column)
        """The moves that change anything, by their place among the cells' columns."""
        counts = cells.counts[self.columns]
        self._first = np.concatenate([[0], np.cumsum(counts + 1)])
        """An additional slot after a column's last cell ends contributions that last to this cell."""
        place = np.searchsorted(self.columns, boxes.column)
        self._place, self._begin = place, self._first[place] + boxes.low
        self._end = self._first[place] + boxes.high + 1
        slots = np.arange(self._first[-1])
        self._kept = np.setdiff1d(slots, self._first[1:] - 1)
        self._owner = np.repeat(np.arange(self.columns.size), counts)
        self.flat = np.concatenate(
            [
                np.empty(0, dtype=np.int64),
                *(np.arange(cells.first[j], cells.first[j + 1]) for j in self.columns),
            ]
        )
        """(moves,) the cell that each move leads to, among all cells."""

    def scores(self, cells: IntArray) -> FloatArray:
        """(moves, scores) after each move from a point in these cells (J,)."""
        boxes = self._boxes
        out = boxes.missed(cells)
        misses = np.bincount(boxes.leaf[out], minlength=boxes.leaves)
        gained = np.flatnonzero(out & (misses[boxes.leaf] == 1))
        held = np.flatnonzero(misses[boxes.leaf] == 0)
        total = boxes.ensemble.base + boxes.value[misses == 0].sum(axis=0)
        both = np.concatenate([gained, held])
        found = np.empty((self.flat.size, total.size))
        for o in range(total.size):
            weight = boxes.value[boxes.leaf[both], o]
            steps = np.bincount(self._begin[both], weight, self._first[-1])
            steps -= np.bincount(self._end[both], weight, self._first[-1])
            lost = np.bincount(self._place[held], boxes.value[boxes.leaf[held], o], self.columns.size)
            found[:, o] = total[o] + np.cumsum(steps)[self._kept] - lost[self._owner]
        return found


class MoveDescent:
    """One problem in cells, with its LP and its profiles."""

    def __init__(self, trees: TreeProblem, *, seed: int, threads: int) -> None:
        self.trees = trees
        self._program = CellProgram(trees, seed=seed, threads=threads)
        self._profiles = [MoveProfile(sample.boxes, trees.cells) for sample in trees.samples]
        self._moves: list[tuple[bytes, FloatArray] | None] = [None] * len(self._profiles)
        """For each sample: the cells of its last evaluation, and its outputs after every move from there."""
        self._known: dict[bytes, CellPoint] = {}
        self._column = np.repeat(np.arange(trees.cells.columns.size), trees.cells.counts)
        self._free = np.flatnonzero(trees.cells.counts > 1)

    def set_cost(self, cost: FloatArray) -> None:
        """Set the costs of columns."""
        self._program.set_cost(cost)
        self._known.clear()

    def point(self, cells: IntArray, budget: Budget) -> CellPoint | None:
        """The best point in these cells, cached."""
        key = cells.tobytes()
        if key not in self._known:
            found = self._program.solve(cells, self.trees.outputs_at(cells), budget)
            if found is None:
                return None
            if len(self._known) >= MOST_KEPT_POINTS:
                self._known.clear()
            self._known[key] = found
        return self._known[key]

    def descend(self, cells: IntArray, budget: Budget) -> CellPoint | None:
        """Descend to cells from which no move of a single input improves."""
        best = self.point(cells, budget)
        while best is not None and not budget.over:
            better = self._step(best, budget) or self._turn(best, budget)
            if better is None:
                break
            best = better
        return best

    def kicked(self, cells: IntArray, rng: np.random.Generator) -> IntArray:
        """A few inputs moved to other cells, near ones more often than far ones."""
        cells = cells.copy()
        if self._free.size == 0:
            return cells
        count = min(self._free.size, int(rng.integers(*KICKS, endpoint=True)))
        for place in rng.choice(self._free, count, replace=False):
            most = int(self.trees.cells.counts[place]) - 1
            step = int(np.ceil(rng.exponential(max(1.0, 0.1 * most))))
            cells[place] = np.clip(cells[place] + (step if rng.random() < 0.5 else -step), 0, most)
        return cells

    def _step(self, at: CellPoint, budget: Budget) -> CellPoint | None:
        bounds = self._bounds(at)
        limit = at.value - DECREASE * (1.0 + abs(at.value))
        best, since = None, 0
        order = np.argsort(bounds)[:MOST_LPS]
        for move in order[bounds[order] < limit]:
            if bounds[move] >= limit or since > ENOUGH or budget.over:
                break
            cells = at.cells.copy()
            j = self._column[move]
            cells[j] = move - self.trees.cells.first[j]
            found = self.point(cells, budget)
            since += best is not None
            if found is not None and found.value < limit:
                best, limit, since = found, found.value, 0
        return best

    def _turn(self, at: CellPoint, budget: Budget) -> CellPoint | None:
        """Change a class by several moves, if that improves; the shortest combinations first."""
        ways = []
        for number, sample in enumerate(self.trees.samples):
            if sample.block.classifies and not budget.over:
                found = turned(self.trees, sample, self._profiles[number], at)
                ways += [] if found is None else [found]
        limit = at.value - DECREASE * (1.0 + abs(at.value))
        for _, cells in sorted(ways, key=lambda way: way[0])[:MOST_TURNS]:
            other = None if budget.over else self.point(cells, budget)
            if other is not None and other.value < limit:
                return other
        return None

    def _bounds(self, at: CellPoint) -> FloatArray:
        """(cells,) a lower bound of the point's value after the move to each; infinite for impossible
        ones."""
        trees, cells = self.trees, self.trees.cells
        flat = cells.flat(at.cells)
        owner = self._column
        reduced = at.reduced[cells.columns]
        rise = np.maximum(reduced, 0.0)[owner] * (cells.inner - cells.inner[flat][owner])
        fall = np.minimum(reduced, 0.0)[owner] * (cells.high - cells.high[flat][owner])
        bounds = at.value + rise + fall
        for number, sample in enumerate(trees.samples):
            outputs = self._after_moves(number, at.cells)
            change = outputs - at.outputs[sample.outputs]
            np.add.at(bounds, self._profiles[number].flat, change @ at.reduced[sample.outputs])
        bounds[flat] = np.inf
        return bounds

    def _after_moves(self, number: int, cells: IntArray) -> FloatArray:
        """(moves, outputs) of one sample, cached while its inputs stay."""
        profile = self._profiles[number]
        key = cells[profile.columns].tobytes()
        known = self._moves[number]
        if known is None or known[0] != key:
            known = key, self.trees.samples[number].decoded(profile.scores(cells))
            self._moves[number] = known
        return known[1]


def turned(
    trees: TreeProblem, sample: TreeSample, profile: MoveProfile, at: CellPoint
) -> tuple[float, IntArray] | None:
    """The distance and the cells in which a sample has the class that is cheaper at the prices; None if the
    sample has that class already, or if none was found."""
    wanted = _output_to_raise(sample, at)
    if wanted is None:
        return None
    ways, cells, way = _move_lengths(trees, profile, at), at.cells.copy(), 0.0
    lead = -np.inf
    for _ in range(MOST_MOVES):
        leads = _class_lead(sample, sample.boxes.ensemble.linked(profile.scores(cells)), wanted)
        if lead == -np.inf:
            lead = float(
                _class_lead(sample, sample.boxes.ensemble.linked(sample.boxes.scores(cells)), wanted)
            )
        gain = leads - lead
        worth = np.where(leads >= 0.0, 1.0 / ways, -np.inf)
        if not np.any(leads >= 0.0):
            worth = np.where(gain > 0.0, gain / ways, -np.inf)
        if worth.size == 0 or not np.isfinite(worth.max()):
            return None
        k = int(np.argmax(worth))
        place = int(np.searchsorted(trees.cells.first, profile.flat[k], side="right")) - 1
        cells[place] = profile.flat[k] - trees.cells.first[place]
        way, lead = way + float(ways[k]), float(leads[k])
        if lead >= 0.0:
            return way, cells
    return None


def _output_to_raise(sample: TreeSample, at: CellPoint) -> int | None:
    """The output that should be 1 (-1: the only output should be 0); None if the class is already the wanted
    one."""
    price, now = at.reduced[sample.outputs], at.outputs[sample.outputs]
    if now.size == 1:
        gains = price[0] * (1.0 - 2.0 * now[0]) < 0.0
        return (0 if now[0] < 0.5 else -1) if gains else None
    best = int(np.argmin(price))
    return best if price[best] < price[int(np.argmax(now))] else None


def _class_lead(sample: TreeSample, values: FloatArray, wanted: int) -> FloatArray:
    """(...,) by how much values (..., outputs) favour the wanted class; negative if they give another one."""
    if values.shape[-1] == 1:
        ahead = values[..., 0] - sample.block.threshold
        return np.asarray(ahead if wanted == 0 else -ahead - np.finfo(float).tiny)
    others = np.delete(values, wanted, axis=-1).max(axis=-1)
    return np.asarray(values[..., wanted] - others)


def _move_lengths(trees: TreeProblem, profile: MoveProfile, at: CellPoint) -> FloatArray:
    """(moves,) the distance of each from the point, and its cost at the prices."""
    cells, host = trees.cells, trees.host
    column = cells.columns[np.searchsorted(cells.first, profile.flat, side="right") - 1]
    x, reduced = at.x[column], at.reduced[column]
    up = np.maximum(cells.inner[profile.flat] - x, 0.0)
    down = np.maximum(x - cells.high[profile.flat], 0.0)
    width = np.maximum(host.upper[column] - host.lower[column], np.finfo(float).tiny)
    scale = max(1.0, float(np.max(np.abs(at.reduced), initial=0.0)))
    charged = np.maximum(reduced, 0.0) * up + np.maximum(-reduced, 0.0) * down
    return np.asarray(LEAST_DISTANCE + (up + down) / width + charged / scale)
