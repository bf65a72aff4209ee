"""The first box of a tree, made smaller before it is divided: of points that cost less than a goal.

    first the host, with rows by cells in place of networks that read few inputs; then with all neurons:
    repeat, while the bound rises or boxes shrink
        cells   of the inputs of each network that reads few: those go whose outputs rows and bounds exclude
        rows    by these cells: `g x + m y >= least`, which cuts off the LP's point (`network_cells.py`)
        boxes   least and largest value of inputs, then of neurons, over this LP, while that pays; the
                multipliers are kept, and say more whenever boxes have shrunk, without an LP

The LP of a box takes a network neuron by neuron, and is far from it where the box is wide. Over a network's
few inputs alone cells know more. A row holds in the whole first box, and its right-hand side is higher in
smaller ones, by the cells that these meet. With many networks rows do what no tree over all of them could:
their cells add up here, and multiply there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import narrow
from dovetail.branching.candidates import widths
from dovetail.branching.host import HostRows
from dovetail.branching.input_sets import FEW_INPUTS
from dovetail.branching.model import Model
from dovetail.branching.network_cells import NetworkCells, few_inputs
from dovetail.branching.networks import NetworkSamples
from dovetail.branching.relaxation import Multipliers, Solved, TriangleLp
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.deadline import require_time
from dovetail.core.mip import TOLERANCE
from dovetail.run.budget import Budget

LITTLE, PATIENCE = 0.005, 4
"""Of the gap: so many LPs with new rows, one after the other, that gain less are the last. One that moves
nothing may come before one that does."""
WORTH = 0.02
"""Of the gap, and of widths: what gains less is not done again."""

LPS_SHARE = 0.2
"""Of the time left, for LPs for single columns in each round: on wine they took all of it."""


class NothingLeft(Exception):
    """No point costs less than the goal: that is proved."""


@dataclass(eq=False)
class _Sample:
    """One sample of a network that reads few inputs."""

    network: NetworkSamples
    number: int
    cells: NetworkCells | None = None
    widths: FloatArray | None = None
    """Of its inputs and outputs, when they were cut."""

    @property
    def inputs(self) -> IntArray:
        """Its columns."""
        columns: IntArray = self.network.inputs[self.number]
        return columns

    @property
    def outputs(self) -> IntArray:
        """Its columns."""
        columns: IntArray = self.network.outputs[self.number]
        return columns

    @property
    def columns(self) -> IntArray:
        """All of them."""
        return np.append(self.inputs, self.outputs)


class _CellRow(NamedTuple):
    """entries x >= least, over the inputs and then the outputs of a sample."""

    sample: _Sample
    entries: FloatArray
    values: FloatArray
    """(cells,) what it is at least on each."""


class _Sides:
    """Lower sides of rows, box by box."""

    def __init__(self, rows: Sequence[_CellRow]) -> None:
        self._count, self._parts = len(rows), []
        for sample in {id(row.sample): row.sample for row in rows}.values():
            mine = np.array([k for k, row in enumerate(rows) if row.sample is sample])
            self._parts.append((sample.inputs, sample.cells, mine, np.stack([rows[k].values for k in mine])))

    def of(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, rows) over N boxes; what a box without cells is, others have to say."""
        sides = np.empty((len(lower), self._count))
        for inputs, cells, rows, values in self._parts:
            assert cells is not None
            met = cells.met(lower[:, inputs], upper[:, inputs])
            met[~met.any(1)] = True
            for row, value in zip(rows, values, strict=True):
                sides[:, row] = np.where(met, value, np.inf).min(1)
        return sides


class Root:
    """That of one tree; it goes on where its time was over."""

    def __init__(self, model: Model, *, seed: int, threads: int) -> None:
        self._seed, self._threads, self._host = seed, threads, model.host
        self.model = model
        """With the rows that were found, and the box."""
        self.lower, self.upper = model.lower.copy(), model.upper.copy()
        self.bound = -math.inf
        """What no point is below, unless it costs as much as the goal."""
        self.done = False
        self._samples: list[_Sample] = []
        self._rows: list[_CellRow] = []
        self._kept: dict[tuple[int, float], Multipliers] = {}
        self._networks: tuple[NetworkSamples, ...] | None = None

    @property
    def lps(self) -> int:
        """About how many a round has at most: two for each column."""
        some = widths(self.model, self.lower, self.upper) > 0.0
        read = [one.inputs.ravel() for one in self.model.networks]
        columns = self.model.open_neurons(self.lower, self.upper)
        columns[np.concatenate([np.empty(0, dtype=np.int64), *read])] = True
        return 2 * int(np.count_nonzero(columns & some))

    def shrink(self, goal: float, budget: Budget) -> None:
        """Until nothing helps any more. Where nothing is left, the bound is the goal."""
        try:
            if self._networks is None:
                self._begin(goal)
            while not self.done and not budget.over:
                if not self._round(goal, budget) and not budget.over:
                    self.done = self._networks == self.model.networks
                    self._networks, self._kept = self.model.networks, {}
        except NothingLeft:
            self.done, self.bound = True, goal
        self.model = replace(self.model, lower=self.lower.copy(), upper=self.upper.copy())

    def _begin(self, goal: float) -> None:
        """Which networks read few inputs; the others have neurons in every LP."""
        self._tighten(goal)
        some = []
        for one in self.model.networks:
            few = np.flatnonzero(few_inputs(self.lower[one.inputs], self.upper[one.inputs]))
            self._samples += [_Sample(one, k) for k in few.tolist()]
            some += [one] if few.size < one.samples else []
        self._networks = tuple(some)

    def _round(self, goal: float, budget: Budget) -> bool:
        """Cells, rows, boxes; whether another round may help."""
        bound, width = self.bound, self._width()
        self._cut(goal, budget)
        lp = self._cut_off(goal, budget)
        self._ask(lp, goal, budget.part(LPS_SHARE * budget.left))
        return _gains(bound, self.bound, goal, WORTH) or self._width() < (1.0 - WORTH) * width

    def _width(self) -> float:
        """The mean of what is left of the widths of columns."""
        return float(np.mean(widths(self.model, self.lower, self.upper)))

    def _tighten(self, goal: float) -> None:
        """By rows, networks and trees."""
        if not self.model.tighten(self.lower[None], self.upper[None], goal)[0]:
            raise NothingLeft

    def _cut(self, goal: float, budget: Budget) -> None:
        """Inputs into cells, as long as boxes shrink by what was dropped, and by earlier multipliers."""
        while not budget.over:
            before = self._width()
            for sample in self._samples:
                require_time()
                self._cells(sample)
            self._tighten(goal)
            self._write()
            self._apply(self._kept, goal)
            if self._width() >= (1.0 - WORTH) * before:
                return

    def _cells(self, sample: _Sample) -> None:
        """Those of a sample, where its box has shrunk since; boxes become what they leave."""
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
        sample.cells, sample.widths = cells, wide
        if cells.finite:
            for columns, bottom, top in (
                (inputs, cells.low.min(0), cells.high.max(0)),
                (outputs, cells.below.min(0), cells.above.max(0)),
            ):
                if narrow(self.lower, self.upper, columns, bottom, top) is not None:
                    raise NothingLeft
        mine = [k for k, row in enumerate(self._rows) if row.sample is sample]
        if mine:
            entries = np.stack([self._rows[k].entries for k in mine])
            values = cells.least(entries[:, : inputs.size], entries[:, inputs.size :])
            for k, value in zip(mine, values, strict=True):
                self._rows[k] = self._rows[k]._replace(values=value)

    def _add(self, found: list[_CellRow]) -> None:
        """More rows. None goes: what says nothing in the first box does so in smaller ones (control, size 2:
        16.63 of 17.39 after 15 s, 16.22 without those that the last LP had no use for)."""
        first, none = self.model.host.A.shape[0] - 1, np.zeros((1, len(found)))
        for key, one in self._kept.items():
            self._kept[key] = replace(one, rows=np.hstack([one.rows[:, :first], none, one.rows[:, first:]]))
        self._rows += found
        self._write()

    def _write(self) -> None:
        """The rows into the model."""
        self.model = replace(self.model, host=_with_rows(self._host, self._rows))

    def _cut_off(self, goal: float, budget: Budget) -> TriangleLp:
        """The LP, with rows that cut off its points as long as they raise its value."""
        slow, reached = 0, -math.inf
        while True:
            lp = TriangleLp(
                self.model.host, self._lined, self.lower, self.upper, seed=self._seed, threads=self._threads
            )
            solved = lp.solve(self.lower[None], self.upper[None], budget)[0]
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
            found = [] if slow == PATIENCE or budget.over else self._violated(solved.x, budget)
            if not found:
                return lp
            self._add(found)

    @property
    def _lined(self) -> tuple[NetworkSamples, ...]:
        """Networks whose neurons are in the LP."""
        assert self._networks is not None
        return self._networks

    def _proved(self, multipliers: Multipliers, goal: float) -> FloatArray:
        """What multipliers, of one LP or of several, bound in the box as it is."""
        many = len(multipliers.rows)
        boxes = np.tile(self.lower, (many, 1)), np.tile(self.upper, (many, 1))
        return multipliers.bound(self.model.host, self._lined, *boxes, goal)[0]

    def _violated(self, x: FloatArray, budget: Budget) -> list[_CellRow]:
        """Rows that a point does not meet, one of each sample at most."""
        found = []
        for sample in self._samples:
            if sample.cells is not None and not budget.over:
                row = sample.cells.cut_off(x[sample.inputs], x[sample.outputs], budget)
                found += [] if row is None else [_CellRow(sample, *row)]
        return found

    def _ask(self, lp: TriangleLp, goal: float, budget: Budget) -> None:
        """The least and the most of single columns: of a kind all, of the next kind if that paid."""
        for columns in self._layers():
            if columns.size and self._asked(lp, columns, goal, budget) < WORTH:
                return
            self._tighten(goal)

    def _layers(self) -> Iterator[IntArray]:
        """Columns of one kind: inputs of networks that read few, then open neurons by their place."""
        some = widths(self.model, self.lower, self.upper) > 0.0
        few = [one.inputs[some[one.inputs].sum(1) <= FEW_INPUTS].ravel() for one in self.model.networks]
        inputs = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *few]))
        yield inputs[some[inputs]]
        for place in sorted({place for one in self._lined for place in one.inner}):
            columns = np.unique(
                np.concatenate([one.inner[place].ravel() for one in self._lined if place in one.inner])
            )
            yield columns[self.model.open_neurons(self.lower, self.upper)[columns]]

    def _asked(self, lp: TriangleLp, columns: IntArray, goal: float, budget: Budget) -> float:
        """By what part some columns narrowed, on average."""
        lp.load(self.lower, self.upper)
        before = self.upper[columns] - self.lower[columns]
        asked: dict[tuple[int, float], Multipliers] = {}
        low, high = (
            self.lower + WORTH * (self.upper - self.lower),
            self.upper - WORTH * (self.upper - self.lower),
        )
        needless = {1.0: np.zeros(low.size, dtype=bool), -1.0: np.zeros(low.size, dtype=bool)}
        for column, sign in ((j, sign) for j in columns.tolist() for sign in (1.0, -1.0)):
            if budget.over:
                break
            if needless[sign][column]:
                continue
            require_time()
            cost = np.zeros(self.lower.size)
            cost[column] = sign
            solved = lp.again(cost, goal, budget)
            if solved.infeasible:
                self._refuted(solved, goal)
                continue
            if solved.multipliers is not None:
                asked[column, sign] = solved.multipliers
            if solved.x is not None:
                x = solved.x[: low.size]
                needless[1.0] |= x <= low
                needless[-1.0] |= x >= high
        self._apply(asked, goal)
        self._kept |= asked
        return float(np.mean(1.0 - (self.upper[columns] - self.lower[columns]) / np.maximum(before, 1e-300)))

    def _refuted(self, solved: Solved, goal: float) -> None:
        """Whether the multipliers of an infeasible LP prove that nothing is left."""
        if solved.multipliers is not None and self._proved(solved.multipliers, goal)[0] > 0.0:
            raise NothingLeft

    def _apply(self, known: dict[tuple[int, float], Multipliers], goal: float) -> None:
        """What multipliers say of their columns in the box as it is."""
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
    """Whether a bound rose by this part of its gap; without a goal, of its size."""
    if not math.isfinite(before):
        return math.isfinite(after)
    return after - before > part * (goal - before if math.isfinite(goal) else 1.0 + abs(before))


def _with_rows(host: HostRows, rows: Sequence[_CellRow]) -> HostRows:
    """With rows before its own last one, the cost's."""
    if not rows:
        return host
    columns = [row.sample.columns for row in rows]
    more = sp.csr_array(
        (
            np.concatenate([row.entries for row in rows]),
            (np.repeat(np.arange(len(rows)), [c.size for c in columns]), np.concatenate(columns)),
        ),
        shape=(len(rows), host.columns),
    )
    more.eliminate_zeros()
    least = [row.values.min() for row in rows]
    return replace(
        host,
        A=sp.vstack([host.A[:-1], more, host.A[-1:]], format="csr"),
        row_lower=np.concatenate([host.row_lower[:-1], least, host.row_lower[-1:]]),
        row_upper=np.concatenate([host.row_upper[:-1], np.full(len(rows), np.inf), host.row_upper[-1:]]),
        entries=host.entries + np.bincount(more.indices, minlength=host.columns),
        local=(host.A.shape[0] - 1, _Sides(rows)),
    )
