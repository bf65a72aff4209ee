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
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.errors import EngineError
from dovetail.linearised.networks import Linearisation, Networks
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.mip.highs_model import HighsModel, Lines
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus
from dovetail.run.stopwatch import Stopwatch

Rows = tuple[Lines, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Cut:
    """A remembered view, used as a one-sided row for some outputs."""

    view: Linearisation
    used: BoolArray
    """(m,) for which outputs."""


@dataclass(frozen=True, eq=False)
class Step:
    """Where the linear model would go."""

    z: FloatArray
    value: float
    """The model's objective there, penalties included."""
    slack: FloatArray
    """(m,) how much of |y - model| the penalties let pass, in units of the spread."""
    duals: FloatArray
    """(m,) > 0 where the program wants an output smaller than its model, < 0 where larger."""


class TrustRegionSubproblem:
    """The program of all steps of one problem: LP with the integers held or relaxed, or MILP."""

    def __init__(
        self,
        scaled: ScaledProblem,
        stopwatch: Stopwatch,
        *,
        integer: bool,
        rows: BoolArray | None = None,
        memory: int = 0,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        self._scaled, self._watch = scaled, stopwatch
        host, networks = scaled.host, scaled.networks
        A = host.A if rows is None else host.A[rows]
        row_lower = host.row_lower if rows is None else host.row_lower[rows]
        row_upper = host.row_upper if rows is None else host.row_upper[rows]
        self._regression = np.flatnonzero(~networks.classes)
        self._memory = memory if self._regression.size else 0
        r, c = self._regression.size, networks.conditions.count
        self._up, self._down, self._miss = host.n_columns, host.n_columns + r, host.n_columns + 2 * r
        self._width = host.n_columns + 2 * r + c
        self._host_rows = A.shape[0]
        wide = sp.csr_array((A.data, A.indices, A.indptr), shape=(A.shape[0], self._width))
        empty = r * (1 + self._memory) + c
        open_ends = np.full(empty, np.inf)
        program = (
            sp.csr_array(sp.vstack([wide, sp.csr_array((empty, self._width))], format="csr")),
            np.concatenate([row_lower, -open_ends]),
            np.concatenate([row_upper, open_ends]),
            *self._limits(host.lower, host.upper),
            np.concatenate(
                [host.integer if integer else np.zeros(host.n_columns, bool), np.zeros(2 * r + c, bool)]
            ),
        )
        with stopwatch.measure("engine"):
            self._live = HighsModel(*program, seed=seed, threads=threads)
        self._prepare_patterns()

    def _prepare_patterns(self) -> None:
        """Where the entries of a network's row stand, done once: slopes, then y, up and down."""
        networks, r = self._scaled.networks, self._regression.size
        spread = self._scaled.spread[self._regression]
        place = np.full(networks.count, -1)
        place[self._regression] = np.arange(r)
        entry = np.flatnonzero(place[networks.rows] >= 0)
        rows = np.concatenate([place[networks.rows[entry]], *[np.arange(r)] * 3])
        columns = np.concatenate(
            [
                networks.columns[entry],
                networks.outputs[self._regression],
                self._up + np.arange(r),
                self._down + np.arange(r),
            ]
        )
        order = np.lexsort((columns, rows))
        self._indices = columns[order]
        self._row_of = rows[order]
        ones = np.ones(r)
        self._template = np.concatenate([np.zeros(entry.size), 1.0 / spread, -ones, ones])[order]
        self._slope_at = np.flatnonzero(order < entry.size)
        self._slope_entry = entry[order[self._slope_at]]
        self._slope_spread = spread[self._row_of[self._slope_at]]

    def solve(
        self,
        cost: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        view: Linearisation,
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
            limits, costs = self._limits(lower, upper), self._costs(cost, penalty)
            lifted = None if start is None else self._lift(start, view)
        with self._watch.measure("engine"):
            try:
                self._live.replace_rows(self._host_rows, rows, low, high)
                self._live.set_bounds(*limits)
                self._live.set_objective(costs, 0.0)
                if lifted is not None:
                    self._live.set_start(lifted)
                status, x, _ = self._live.run(budget, gap)
            except EngineError:
                return None  # an engine in trouble costs a step, not the search
            if x is None or status in (MipStatus.INFEASIBLE, MipStatus.UNBOUNDED):
                return None
            duals = None if self._live.is_mip else self._live.row_duals()
        return self._step(x, duals, cost, penalty)

    def _step(self, x: FloatArray, duals: FloatArray | None, cost: FloatArray, penalty: FloatArray) -> Step:
        networks, r = self._scaled.networks, self._regression
        z = x[: self._scaled.host.n_columns]
        missed, pull = np.zeros(networks.count), np.zeros(networks.count)
        missed[r] = x[self._up : self._down] + x[self._down : self._miss]
        conditions = networks.conditions
        if conditions.count:
            miss = x[self._miss :] * self._condition_spread
            missed += np.asarray(conditions.weights.T @ miss) / self._scaled.spread
        if duals is not None:
            first = self._host_rows
            current = duals[first : first + r.size]
            held = duals[first + r.size : first + r.size * (1 + self._memory)].reshape(self._memory, r.size)
            pull[r] = current + held.sum(axis=0)
        return Step(z, float(cost @ z) + float((penalty * self._scaled.spread) @ missed), missed, pull)

    def _limits(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        extra = self._width - self._scaled.host.n_columns
        return np.concatenate([lower, np.zeros(extra)]), np.concatenate([upper, np.full(extra, np.inf)])

    def _costs(self, cost: FloatArray, penalty: FloatArray) -> FloatArray:
        scaled = self._scaled
        slack = (penalty * scaled.spread)[self._regression]
        conditions = scaled.networks.conditions
        miss = (conditions.weights @ penalty) * self._condition_spread if conditions.count else np.empty(0)
        return np.concatenate([cost, slack, slack, miss])

    @cached_property
    def _condition_spread(self) -> FloatArray:
        """The length a condition is measured in: the mean spread of its logits."""
        form = self._scaled.networks.conditions.weights
        return np.asarray((form @ self._scaled.spread) / (form @ np.ones(form.shape[1])))

    def _network_rows(
        self,
        lower: FloatArray,
        upper: FloatArray,
        view: Linearisation,
        senses: FloatArray | None,
        cuts: tuple[Cut, ...],
    ) -> Rows:
        rows, low, high = self._regression_rows(view, senses, cuts)
        if not self._scaled.networks.conditions.count:
            return rows, low, high
        others, side = self._condition_rows(lower, upper, view)
        together = Lines(
            np.concatenate([rows.data, others.data]),
            np.concatenate([rows.indices, others.indices]),
            np.concatenate([rows.indptr, others.indptr[1:] + rows.data.size]),
        )
        return together, np.concatenate([low, side]), np.concatenate([high, np.full(side.size, np.inf)])

    def _regression_rows(self, view: Linearisation, senses: FloatArray | None, cuts: tuple[Cut, ...]) -> Rows:
        """The model of every output, then one-sided rows of each remembered view; empty where not used."""
        r = self._regression
        sense = np.zeros(r.size) if senses is None else senses[r]
        used = np.zeros((1 + self._memory, r.size), dtype=bool)
        used[0] = True
        views = [view]
        for k, cut in enumerate(cuts[: self._memory]):
            used[1 + k] = cut.used[r]
            views.append(cut.view)
        side = np.full(used.shape, np.nan)
        side[: len(views)] = np.array([v.offset for v in views])[:, r] / self._scaled.spread[r]
        low = np.where(used & (sense > 0), side, -np.inf)
        high = np.where(used & (sense < 0), side, np.inf)
        both = sense == 0
        low[0, both] = high[0, both] = side[0, both]

        data = np.tile(self._template, (len(views), 1))
        slopes = np.array([v.entries for v in views])[:, self._slope_entry]
        data[:, self._slope_at] = -slopes / self._slope_spread
        kept = used[: len(views), self._row_of] & (data != 0.0)
        numbers = np.arange(len(views))[:, None] * r.size + self._row_of
        length = np.bincount(numbers[kept], minlength=used.size)
        pointer = np.concatenate([[0], np.cumsum(length)])
        indices = np.broadcast_to(self._indices, data.shape)[kept]
        return Lines(data[kept], indices, pointer), low.ravel(), high.ravel()

    @cached_property
    def _forms(self) -> _Forms:
        return _Forms(self._scaled.networks, self._condition_spread, self._miss)

    def _condition_rows(
        self, lower: FloatArray, upper: FloatArray, view: Linearisation
    ) -> tuple[Lines, FloatArray]:
        """form'(slopes x) + miss - M active >= margin - form'offset - M, tight since M is local."""
        conditions, forms, unit = self._scaled.networks.conditions, self._forms, self._condition_spread
        slopes = forms.slopes(view.entries)
        constant = (conditions.form @ view.offset) / unit
        margin = conditions.margin / unit
        least = forms.least(slopes, _finite(lower), _finite(upper)) + constant
        big = np.maximum(margin - least, 0.0) + 1e-3
        # active is y, or 1 - y
        switch = np.where(conditions.when, -big, big)
        side = margin - constant - np.where(conditions.when, big, 0.0)
        return forms.lines(slopes, switch), side

    def _lift(self, z: FloatArray, view: Linearisation) -> FloatArray:
        """A host point with the slacks that make it a point of the program."""
        networks, r = self._scaled.networks, self._regression
        apart = (z[networks.outputs] - view.offset - networks.jacobian(view.entries) @ z)[
            r
        ] / self._scaled.spread[r]
        parts = [z, np.maximum(apart, 0.0), np.maximum(-apart, 0.0)]
        conditions = networks.conditions
        if conditions.count:
            level = conditions.form @ (view.offset + networks.jacobian(view.entries) @ z)
            short = np.maximum(conditions.margin - level, 0.0) * conditions.active(z)
            parts.append(short / self._condition_spread)
        return np.concatenate(parts)


class _Forms:
    """Where the entries of the conditions' rows stand, found once: slopes, the class column, the miss."""

    def __init__(self, networks: Networks, unit: FloatArray, miss: int) -> None:
        conditions, width = networks.conditions, networks.shape[1]
        form, self._count = conditions.form.tocoo(), conditions.count
        length = np.diff(networks.first_entry)[form.col]
        product = np.repeat(np.arange(form.nnz), length)  # of one entry of the form and one slope
        first = np.repeat(networks.first_entry[form.col] - np.cumsum(length) + length, length)
        entry = first + np.arange(product.size)
        places, slot = np.unique(form.row[product] * width + networks.columns[entry], return_inverse=True)
        coefficient = ((1.0 / unit)[form.row] * form.data)[product]
        self._combine = sp.csr_array((coefficient, (slot, entry)), shape=(places.size, networks.columns.size))
        row, column = np.divmod(places, width)
        pointer = np.searchsorted(row, np.arange(self._count + 1))
        self._sides = sp.csr_array((np.zeros(row.size), column, pointer), shape=(self._count, width))
        own = np.arange(self._count)
        rows = np.concatenate([row, own, own])
        columns = np.concatenate([column, conditions.column, miss + own])
        self._order = np.lexsort((columns, rows))
        self._indices, self._row_of = columns[self._order], rows[self._order]

    def slopes(self, entries: FloatArray) -> FloatArray:
        """The slopes of the conditions."""
        return np.asarray(self._combine @ entries)

    def least(self, slopes: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(c,) the least that the slopes make of points between these limits."""
        self._sides.data[:] = np.maximum(slopes, 0.0)
        least = self._sides @ lower
        self._sides.data[:] = np.minimum(slopes, 0.0)
        return np.asarray(least + self._sides @ upper)

    def lines(self, slopes: FloatArray, switch: FloatArray) -> Lines:
        """The rows; entries of next to nothing are left out."""
        data = np.concatenate([slopes, switch, np.ones(self._count)])[self._order]
        kept = np.abs(data) >= 1e-9
        length = np.bincount(self._row_of[kept], minlength=self._count)
        return Lines(data[kept], self._indices[kept], np.concatenate([[0], np.cumsum(length)]))


def _finite(limits: FloatArray) -> FloatArray:
    return np.clip(limits, -1e8, 1e8)
