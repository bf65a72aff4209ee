"""The first box of a tree is reduced to points that cost less than a goal before it is divided.

    first the host, with rows by cells in place of networks that read few inputs; then with all neurons:
    repeat, while the bound rises or boxes shrink
        cells   of the inputs of each network that reads few: those go whose outputs rows and bounds exclude
        rows    by these cells: `g x + m y >= least`, which cuts off the LP's point (`network_cells.py`)
        boxes   least and largest value of inputs, then of neurons, over this LP, while that pays; the
                multipliers are kept, and say more whenever boxes have shrunk, without an LP

The LP of a box relaxes a network neuron by neuron, which is weak for wide boxes. For networks with few
inputs, cells give stronger bounds. A row holds in the whole first box, and its right-hand side is higher in
smaller ones, by the cells that these meet. With many networks rows are stronger than a tree over all of them:
the numbers of cells add up in rows and multiply in a tree.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.box import narrow
from dovetail.branching.candidates import widths
from dovetail.branching.host import LocalRow
from dovetail.branching.input_sets import FEW_INPUTS
from dovetail.branching.model import Model
from dovetail.branching.network_cells import NetworkCells, few_inputs
from dovetail.branching.networks import NetworkSamples
from dovetail.branching.relaxation import Multipliers, Solved, TriangleLp
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import TOLERANCE
from dovetail.run import work
from dovetail.run.budget import Budget

LITTLE, PATIENCE = 0.005, 4
"""Fraction of the gap: if this number of LPs with new rows in a row gain less, they are the last. An LP
without a gain may come before one with a gain."""
WORTH = 0.02
"""Fractions of the gap and of widths: smaller gains are not repeated."""


class NothingLeft(Exception):
    """No point costs less than the goal; this is proved."""


@dataclass(eq=False)
class _Sample:
    """One sample of a network that reads few inputs."""

    network: NetworkSamples
    number: int
    cells: NetworkCells | None = None
    widths: FloatArray | None = None
    """Widths of its inputs and outputs when they were divided into cells."""

    @property
    def inputs(self) -> IntArray:
        """Its input columns."""
        columns: IntArray = self.network.inputs[self.number]
        return columns

    @property
    def outputs(self) -> IntArray:
        """The sample's output columns."""
        columns: IntArray = self.network.outputs[self.number]
        return columns

    @property
    def columns(self) -> IntArray:
        """All columns of the sample."""
        return np.append(self.inputs, self.outputs)

    def row(self, entries: FloatArray, values: FloatArray) -> LocalRow:
        """The row of given entries, with its least values by cell."""
        assert self.cells is not None
        return LocalRow(self.inputs, self.outputs, entries, self.cells, values, float(values.min()))


class Root:
    """Shrinks the first box of one tree."""

    def __init__(self, model: Model, *, seed: int, threads: int) -> None:
        self._seed, self._threads, self._host = seed, threads, model.host
        self.model = model
        """The model with the rows found, and the box."""
        self.lower, self.upper = model.lower.copy(), model.upper.copy()
        self.bound = -math.inf
        """A lower bound of all points that cost less than the goal."""
        self.done, self.effort = False, 0.0
        """Effort so far, in seconds by counts."""
        self._goal, self._budget = math.inf, Budget()
        self._samples: list[_Sample] = []
        self._rows: list[LocalRow] = []
        self._kept: dict[tuple[int, float], Multipliers] = {}
        self._networks: tuple[NetworkSamples, ...] | None = None
        self._rounds = self._all_rounds()

    def shrink(self, goal: float, budget: Budget) -> None:
        """Run until nothing improves any more; continues where it was interrupted. If the box is empty,
        the bound is the goal."""
        while not self.done and not budget.over:
            self.step(goal, budget)
        self.use(self.model)

    def step(self, goal: float, budget: Budget) -> None:
        """Run a part of a round, without a rest."""
        self._goal, self._budget, before = goal, budget, work.total().effort
        try:
            with budget.undivided():
                self.done = next(self._rounds, True)
        except NothingLeft:
            self.done, self.bound = True, goal
        self.effort += 1e-6 * (work.total().effort - before)
        if self.done:
            self.use(self.model)

    def use(self, model: Model) -> None:
        """Continue with other limits of the rows, in a smaller box."""
        np.maximum(self.lower, model.lower, out=self.lower)
        np.minimum(self.upper, model.upper, out=self.upper)
        self._host = model.host
        self.model = replace(model, lower=self.lower.copy(), upper=self.upper.copy())
        self._write()

    def again(self, goal: float) -> bool:
        """Whether to run again, because the goal is lower."""
        first, far = math.isinf(self._goal), WORTH * (self._goal - self.bound)
        if self.done and math.isfinite(goal) and (first or self._goal - goal > far):
            self.done, self._rounds = False, self._all_rounds() if first else self._once_more()
        return not self.done

    def _once_more(self) -> Iterator[bool]:
        """Further rounds, if known multipliers prove a much better bound under this goal."""
        before = self._width()
        self._tighten(self._goal)
        self._apply(self._kept, self._goal)
        if self._width() < (1.0 - WORTH) * before:
            yield from self._all_rounds()

    def _all_rounds(self) -> Iterator[bool]:
        """Rounds one after the other, part by part; returns whether all are done."""
        if self._networks is None:
            self._begin(self._goal)
        while True:
            bound, width = self.bound, self._width()
            yield from self._round()
            if not _gains(bound, self.bound, self._goal, WORTH) and self._width() >= (1.0 - WORTH) * width:
                if self._networks == self.model.networks:
                    return
                self._networks, self._kept = self.model.networks, {}

    def _begin(self, goal: float) -> None:
        """Select the networks with few inputs; the others have neurons in every LP."""
        self._tighten(goal)
        some = []
        for one in self.model.networks:
            few = np.flatnonzero(few_inputs(self.lower[one.inputs], self.upper[one.inputs]))
            self._samples += [_Sample(one, k) for k in few.tolist()]
            some += [one] if few.size < one.samples else []
        self._networks = tuple(some)

    def _round(self) -> Iterator[bool]:
        """A round of cells, rows and, if there is a goal, boxes: columns of one kind, then of the next if the
        first gained."""
        yield from self._cut()
        lp = yield from self._cut_off()
        for columns in self._layers() if math.isfinite(self._goal) else ():
            if columns.size and (yield from self._asked(lp, columns)) < WORTH:
                return
            self._tighten(self._goal)

    def _width(self) -> float:
        """Mean remaining width of the columns."""
        return float(np.mean(widths(self.model, self.lower, self.upper)))

    def _tighten(self, goal: float) -> None:
        """Tighten by rows, networks and trees."""
        if not self.model.tighten(self.lower[None], self.upper[None], goal)[0]:
            raise NothingLeft

    def _cut(self) -> Iterator[bool]:
        """Divide inputs into cells as long as boxes shrink, and apply earlier multipliers."""
        before = math.inf
        while self._width() < (1.0 - WORTH) * before:
            before = self._width()
            for sample in self._samples:
                self._cells(sample)
                yield False
            self._tighten(self._goal)
            self._write()
            self._apply(self._kept, self._goal)
            yield False

    def _cells(self, sample: _Sample) -> None:
        """The cells of a sample, if its box has shrunk; boxes are reduced to them."""
        inputs, outputs, columns = sample.inputs, sample.outputs, sample.columns
        wide = self.upper[columns] - self.lower[columns]
        if sample.widths is not None and np.all(wide >= (1.0 - WORTH) * sample.widths):
            return
        box, limits = ((self.lower[j], self.upper[j]) for j in (inputs, outputs))
        own = sample.network
        whole = self.model.host.integer[inputs]
        cells = NetworkCells(own.planes, own.slack[sample.number], box, whole, limits)
        if not len(cells):
            raise NothingLeft
        before, sample.cells, sample.widths = sample.cells, cells, wide
        if cells.finite:
            for columns, bottom, top in (
                (inputs, cells.low.min(0), cells.high.max(0)),
                (outputs, cells.below.min(0), cells.above.max(0)),
            ):
                if narrow(self.lower, self.upper, columns, bottom, top) is not None:
                    raise NothingLeft
        mine = [k for k, row in enumerate(self._rows) if row.cells is before]
        if mine:
            entries = np.stack([self._rows[k].entries for k in mine])
            values = cells.least(entries[:, : inputs.size], entries[:, inputs.size :])
            for k, entry, value in zip(mine, entries, values, strict=True):
                self._rows[k] = sample.row(entry, value)

    def _add(self, found: list[LocalRow]) -> None:
        """Add rows. No row is removed: rows that are inactive in the first box become active in smaller ones
        (control, size 2: 16.63 of 17.39 after 15 s, 16.22 without them)."""
        first, none = self.model.host.A.shape[0] - 1, np.zeros((1, len(found)))
        for key, one in self._kept.items():
            self._kept[key] = replace(one, rows=np.hstack([one.rows[:, :first], none, one.rows[:, first:]]))
        self._rows += found
        self._write()

    def _write(self) -> None:
        """Write the rows into the model."""
        self.model = replace(self.model, host=self._host.with_local(self._rows))

    def _cut_off(self) -> Generator[bool, None, TriangleLp]:
        """Solve the LP with rows that cut off its points, as long as they raise its value."""
        slow, reached = 0, -math.inf
        while True:
            lp = TriangleLp(
                self.model.host, self._lined, self.lower, self.upper, seed=self._seed, threads=self._threads
            )
            goal, solved = self._goal, lp.solve(self.lower[None], self.upper[None], self._budget)[0]
            if solved.infeasible:
                self._refuted(solved, goal)
            if solved.infeasible or solved.multipliers is None or solved.x is None:
                return lp
            bound = float(self._proved(solved.multipliers, goal)[0])
            if bound >= goal:
                raise NothingLeft
            self.bound = max(self.bound, bound)
            slow = 0 if _gains(reached, bound, goal, LITTLE) else slow + 1
            reached = max(reached, bound)
            found = [] if slow == PATIENCE else self._violated(solved.x)
            if not found:
                return lp
            self._add(found)
            yield False

    @property
    def _lined(self) -> tuple[NetworkSamples, ...]:
        """Networks whose neurons are in the LP."""
        assert self._networks is not None
        return self._networks

    def _proved(self, multipliers: Multipliers, goal: float) -> FloatArray:
        """The bound of multipliers of one LP or of several in the current box."""
        many = len(multipliers.rows)
        boxes = np.tile(self.lower, (many, 1)), np.tile(self.upper, (many, 1))
        return multipliers.bound(self.model.host, self._lined, *boxes, goal)[0]

    def _violated(self, x: FloatArray) -> list[LocalRow]:
        """Rows that a point violates, at most one of each sample."""
        found = []
        for sample in self._samples:
            if sample.cells is not None:
                row = sample.cells.cut_off(x[sample.inputs], x[sample.outputs], self._budget)
                found += [] if row is None else [sample.row(*row)]
        return found

    def _layers(self) -> Iterator[IntArray]:
        """Columns by kind: inputs of networks with few inputs, then open neurons by their place."""
        some = widths(self.model, self.lower, self.upper) > 0.0
        few = [one.inputs[some[one.inputs].sum(1) <= FEW_INPUTS].ravel() for one in self.model.networks]
        inputs = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *few]))
        yield inputs[some[inputs]]
        for place in sorted({place for one in self._lined for place in one.inner}):
            columns = np.unique(
                np.concatenate([one.inner[place].ravel() for one in self._lined if place in one.inner])
            )
            yield columns[self.model.open_neurons(self.lower, self.upper)[columns]]

    def _asked(self, lp: TriangleLp, columns: IntArray) -> Generator[bool, None, float]:
        """Minimise and maximise some columns; their mean relative reduction."""
        lp.load(self.lower, self.upper)
        before, goal = self.upper[columns] - self.lower[columns], self._goal
        asked: dict[tuple[int, float], Multipliers] = {}
        wide = self.upper - self.lower
        part = WORTH * np.where(np.isfinite(wide), wide, 0.0)  # outputs of unknown functions have no bounds
        low, high = self.lower + part, self.upper - part
        needless = {1.0: np.zeros(low.size, dtype=bool), -1.0: np.zeros(low.size, dtype=bool)}
        for column, sign in ((j, sign) for j in columns.tolist() for sign in (1.0, -1.0)):
            if needless[sign][column]:
                continue
            cost = np.zeros(self.lower.size)
            cost[column] = sign
            solved = lp.again(cost, goal, self._budget)
            if solved.infeasible:
                self._refuted(solved, goal)
                continue
            if solved.multipliers is not None:
                asked[column, sign] = solved.multipliers
            if solved.x is not None:
                x = solved.x[: low.size]
                needless[1.0] |= x <= low
                needless[-1.0] |= x >= high
            yield False
        self._apply(asked, goal)
        self._kept |= asked
        return float(np.mean(1.0 - (self.upper[columns] - self.lower[columns]) / np.maximum(before, 1e-300)))

    def _refuted(self, solved: Solved, goal: float) -> None:
        """Whether the multipliers of an infeasible LP prove that the box is empty."""
        if solved.multipliers is not None and self._proved(solved.multipliers, goal)[0] > 0.0:
            raise NothingLeft

    def _apply(self, known: dict[tuple[int, float], Multipliers], goal: float) -> None:
        """Apply multipliers to their columns in the current box."""
        if not known:
            return
        for (column, sign), value in zip(
            known, self._proved(Multipliers.joined([*known.values()]), goal), strict=True
        ):
            if sign > 0.0:
                self.lower[column] = max(self.lower[column], value)
            else:
                self.upper[column] = min(self.upper[column], -value)
        self._tidy()

    def _tidy(self) -> None:
        whole = np.flatnonzero(self.model.host.integer)
        self.lower[whole] = np.ceil(self.lower[whole] - TOLERANCE)
        self.upper[whole] = np.floor(self.upper[whole] + TOLERANCE)
        if np.any(self.lower > self.upper):
            raise NothingLeft


def _gains(before: float, after: float, goal: float, part: float) -> bool:
    """Whether a bound rose by this fraction of its gap; without a goal, of its size."""
    if not math.isfinite(before):
        return math.isfinite(after)
    return after - before > part * (goal - before if math.isfinite(goal) else 1.0 + abs(before))
