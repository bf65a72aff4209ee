"""One step: the host with every network replaced by a linear model, within a trust region, in a live HiGHS.

    min  cost'z + penalty'(up + down) + penalty'miss
    over host rows, lower <= z <= upper,
         (y_o - slope_o'x) / spread_o - up + down  (=, <= or >=)  offset_o / spread_o     for a regression
         the same, one-sided, for each remembered view                                    (the bundle)
         form'(slopes x) + miss >= margin - form'offset - M (1 - active)                  for a class

Host rows are loaded once; the rows of the networks are swapped in bulk and the basis stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.budget import Budget
from dovetail.core.engine import MipStatus
from dovetail.core.errors import EngineError
from dovetail.core.stopwatch import Stopwatch
from dovetail.local.networks import View
from dovetail.local.scene import Scene
from dovetail.mip.live_highs import LiveHighs

Rows = tuple[sp.csr_array, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Cut:
    """A remembered view, used as a one-sided row for some outputs."""

    view: View
    used: BoolArray
    """(m,) for which outputs."""


@dataclass(frozen=True, eq=False)
class Step:
    """Where the linear model would go."""

    z: FloatArray
    value: float
    """The model's objective there, penalties included."""
    missed: FloatArray
    """(m,) how much of |y - model| the penalties let pass, in units of the spread."""
    pull: FloatArray
    """(m,) > 0 where the program wants an output smaller than its model, < 0 where larger."""


class StepProgram:
    """The program of all steps of one problem: LP with the integers held or relaxed, or MILP."""

    def __init__(
        self,
        scene: Scene,
        stopwatch: Stopwatch,
        *,
        integer: bool,
        rows: BoolArray | None = None,
        memory: int = 0,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        self._scene, self._watch = scene, stopwatch
        host, networks = scene.host, scene.networks
        A = host.A if rows is None else host.A[rows]
        row_lower = host.row_lower if rows is None else host.row_lower[rows]
        row_upper = host.row_upper if rows is None else host.row_upper[rows]
        self._regression = np.flatnonzero(~networks.classes)
        self._memory = memory if self._regression.size else 0
        r, c = self._regression.size, networks.conditions.count
        self._up, self._down, self._miss = host.columns, host.columns + r, host.columns + 2 * r
        self._width = host.columns + 2 * r + c
        self._host_rows = A.shape[0]
        wide = sp.csr_array((A.data, A.indices, A.indptr), shape=(A.shape[0], self._width))
        empty = r * (1 + self._memory) + c
        open_ends = np.full(empty, np.inf)
        self._live = LiveHighs(
            sp.csr_array(sp.vstack([wide, sp.csr_array((empty, self._width))], format="csr")),
            np.concatenate([row_lower, -open_ends]),
            np.concatenate([row_upper, open_ends]),
            *self._limits(host.lower, host.upper),
            np.concatenate(
                [host.integer if integer else np.zeros(host.columns, bool), np.zeros(2 * r + c, bool)]
            ),
            seed=seed,
            threads=threads,
        )
        self._prepare_patterns()

    def _prepare_patterns(self) -> None:
        """Where the entries of a network's row stand, done once: slopes, then y, up and down."""
        networks, r = self._scene.networks, self._regression.size
        place = np.full(networks.count, -1)
        place[self._regression] = np.arange(r)
        mine = place[networks.rows] >= 0
        self._entry = np.flatnonzero(mine)
        self._entry_row = place[networks.rows[mine]]
        rows = np.concatenate([self._entry_row, *[np.arange(r)] * 3])
        columns = np.concatenate(
            [
                networks.columns[mine],
                networks.outputs[self._regression],
                self._up + np.arange(r),
                self._down + np.arange(r),
            ]
        )
        self._order = np.lexsort((columns, rows))
        self._indices = columns[self._order]
        self._row_of = rows[self._order]

    def solve(
        self,
        cost: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        view: View,
        penalty: FloatArray,
        *,
        budget: Budget,
        senses: FloatArray | None = None,
        cuts: tuple[Cut, ...] = (),
        gap: float = 1e-4,
        start: FloatArray | None = None,
    ) -> Step | None:
        """The best point of the linear model between `lower` and `upper`, or None if there is none in time.

        `senses` (m,): < 0 bounds an output from above by its model, > 0 from below, 0 both ways.
        """
        with self._watch.measure("assembly"):
            rows, low, high = self._network_rows(lower, upper, view, senses, cuts)
            self._live.replace_rows(self._host_rows, rows, low, high)
            self._live.set_bounds(*self._limits(lower, upper))
            self._live.set_objective(self._costs(cost, penalty), 0.0)
            if start is not None:
                self._live.set_start(self._lift(start, view))
        with self._watch.measure("engine"):
            try:
                status, x, _ = self._live.run(budget, gap)
            except EngineError:
                return None  # an engine in trouble costs a step, not the search
        if x is None or status in (MipStatus.INFEASIBLE, MipStatus.UNBOUNDED):
            return None
        return self._step(x, cost, penalty)

    def _step(self, x: FloatArray, cost: FloatArray, penalty: FloatArray) -> Step:
        networks, r = self._scene.networks, self._regression
        z = x[: self._scene.host.columns]
        missed, pull = np.zeros(networks.count), np.zeros(networks.count)
        missed[r] = x[self._up : self._down] + x[self._down : self._miss]
        conditions = networks.conditions
        if conditions.count:
            miss = x[self._miss :] * self._condition_spread
            missed += np.asarray(abs(conditions.form).T @ miss) / self._scene.spread
        if not self._live.is_mip:
            first = self._host_rows
            duals = self._live.row_duals()
            current = duals[first : first + r.size]
            held = duals[first + r.size : first + r.size * (1 + self._memory)].reshape(self._memory, r.size)
            pull[r] = current + held.sum(axis=0)
        return Step(z, float(cost @ z) + float((penalty * self._scene.spread) @ missed), missed, pull)

    def _limits(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        extra = self._width - self._scene.host.columns
        return np.concatenate([lower, np.zeros(extra)]), np.concatenate([upper, np.full(extra, np.inf)])

    def _costs(self, cost: FloatArray, penalty: FloatArray) -> FloatArray:
        scene = self._scene
        slack = (penalty * scene.spread)[self._regression]
        conditions = scene.networks.conditions
        miss = (abs(conditions.form) @ penalty) * self._condition_spread if conditions.count else np.empty(0)
        return np.concatenate([cost, slack, slack, miss])

    @property
    def _condition_spread(self) -> FloatArray:
        """The length a condition is measured in: the mean spread of its logits."""
        form = abs(self._scene.networks.conditions.form)
        return np.asarray((form @ self._scene.spread) / (form @ np.ones(form.shape[1])))

    def _network_rows(
        self,
        lower: FloatArray,
        upper: FloatArray,
        view: View,
        senses: FloatArray | None,
        cuts: tuple[Cut, ...],
    ) -> Rows:
        r = self._regression
        spread = self._scene.spread[r]
        sense = np.zeros(r.size) if senses is None else senses[r]
        low = np.where(sense < 0, -np.inf, view.offset[r] / spread)
        high = np.where(sense > 0, np.inf, view.offset[r] / spread)
        parts: list[Rows] = [(self._regression_rows(view, np.ones(r.size, bool)), low, high)]
        for k in range(self._memory):
            used = cuts[k].used[r] if k < len(cuts) else np.zeros(r.size, bool)
            if not np.any(used):
                open_ends = np.full(r.size, np.inf)
                parts.append((sp.csr_array((r.size, self._width)), -open_ends, open_ends))
                continue
            side = cuts[k].view.offset[r] / spread
            parts.append(
                (
                    self._regression_rows(cuts[k].view, used),
                    np.where(used & (sense > 0), side, -np.inf),
                    np.where(used & (sense < 0), side, np.inf),
                )
            )
        if self._scene.networks.conditions.count:
            parts.append(self._condition_rows(lower, upper, view))
        return (
            _stacked([part[0] for part in parts], self._width),
            np.concatenate([p[1] for p in parts]),
            np.concatenate([p[2] for p in parts]),
        )

    def _regression_rows(self, view: View, used: BoolArray) -> sp.csr_array:
        ones = np.ones(self._regression.size)
        spread = self._scene.spread[self._regression]
        data = np.concatenate(
            [-view.entries[self._entry] / spread[self._entry_row], 1.0 / spread, -ones, ones]
        )
        data = data[self._order]
        kept = used[self._row_of] & (data != 0.0)
        length = np.bincount(self._row_of[kept], minlength=used.size)
        pointer = np.concatenate([[0], np.cumsum(length)])
        return sp.csr_array((data[kept], self._indices[kept], pointer), shape=(used.size, self._width))

    def _condition_rows(self, lower: FloatArray, upper: FloatArray, view: View) -> Rows:
        """form'(slopes x) + miss - M active >= margin - form'offset - M, tight since M is local."""
        networks, conditions = self._scene.networks, self._scene.networks.conditions
        unit = self._condition_spread
        slopes = sp.csr_array(sp.diags_array(1.0 / unit) @ conditions.form @ networks.jacobian(view.entries))
        constant = (conditions.form @ view.offset) / unit
        margin = conditions.margin / unit
        positive, negative = slopes.maximum(0), slopes.minimum(0)
        least = positive @ _finite(lower) + negative @ _finite(upper) + constant
        big = np.maximum(margin - least, 0.0) + 1e-3
        count = conditions.count
        rows = np.arange(count)
        # active is y, or 1 - y
        switch = np.where(conditions.when, -big, big)
        extra = sp.csr_array(
            (
                np.concatenate([switch, np.ones(count)]),
                (np.concatenate([rows, rows]), np.concatenate([conditions.column, self._miss + rows])),
            ),
            shape=(count, self._width),
        )
        wide = sp.csr_array((slopes.data, slopes.indices, slopes.indptr), shape=(count, self._width))
        matrix = sp.csr_array(wide + extra)
        matrix.data[np.abs(matrix.data) < 1e-9] = 0.0
        matrix.eliminate_zeros()
        side = margin - constant - np.where(conditions.when, big, 0.0)
        return matrix, side, np.full(count, np.inf)

    def _lift(self, z: FloatArray, view: View) -> FloatArray:
        """A host point with the slacks that make it a point of the program."""
        networks, r = self._scene.networks, self._regression
        apart = (z[networks.outputs] - view.offset - networks.jacobian(view.entries) @ z)[
            r
        ] / self._scene.spread[r]
        parts = [z, np.maximum(apart, 0.0), np.maximum(-apart, 0.0)]
        conditions = networks.conditions
        if conditions.count:
            level = conditions.form @ (view.offset + networks.jacobian(view.entries) @ z)
            short = np.maximum(conditions.margin - level, 0.0) * conditions.active(z)
            parts.append(short / self._condition_spread)
        return np.concatenate(parts)


def _finite(limits: FloatArray) -> FloatArray:
    return np.clip(limits, -1e8, 1e8)


def _stacked(parts: list[sp.csr_array], width: int) -> sp.csr_array:
    """Matrices one above the other; scipy's own vstack costs more than the LP of a small problem."""
    data = np.concatenate([part.data for part in parts])
    indices = np.concatenate([part.indices for part in parts])
    ends = np.cumsum([0, *(part.nnz for part in parts)])
    pointer = np.concatenate(
        [[0], *(part.indptr[1:] + end for part, end in zip(parts, ends[:-1], strict=True))]
    )
    return sp.csr_array((data, indices, pointer), shape=(pointer.size - 1, width))
