"""The trust-region subproblem: the host with every network linearised, within bounds, in a live HiGHS.

    min  cost'z + penalty'(up + down) + penalty'miss
    over host rows, lower <= z <= upper,
         (y_o - slope_o'x) / spread_o - up + down  (=, <= or >=)  offset_o / spread_o     for a regression
         the same, one-sided, for each cut                                                (the bundle)
         form'(slopes x) + miss >= margin - form'offset - M (1 - active)                  for a class

Host rows are loaded once; the rows of the networks are swapped in bulk and the basis stays.

Radius and ratio test are in `descent.py`; the region's bounds are `ScaledProblem.trust_region`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import SMALLEST
from dovetail.linearised.networks import Linearisation, Networks
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.mip.loaded_highs import LoadedHighs, SparseRows
from dovetail.mip.program import LinearProgram
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus
from dovetail.run.failures import expendable
from dovetail.run.work import Stopwatch

Rows = tuple[SparseRows, FloatArray, FloatArray]
"""Entries, lower and upper limits."""
PRICED = 1e-12
"""Smaller duals are rounding of the LP."""


LOOSE = 1e-3
"""Added to M, in units of the logits, so that an inactive condition does not bind by rounding."""
ENDLESS = 1e8
"""Larger bounds count as this, because M must be a moderate number."""


@dataclass(frozen=True, eq=False)
class BundleCut:
    """An earlier linearisation, used as a one-sided row for some outputs."""

    linearisation: Linearisation
    outputs: BoolArray
    """(m,) the outputs concerned."""


@dataclass(frozen=True, eq=False)
class LinearStep:
    """The solution of a subproblem."""

    z: FloatArray
    """The columns of the problem."""
    value: float
    """The objective there, penalties included."""
    slack: FloatArray
    """(m,) how far the penalties let the point violate the networks, in units of each output's spread, never
    negative: |y - model| of a regression, and of a class's logit the sum of the shortfalls of its
    conditions."""
    duals: FloatArray
    """(m,) of each regression, the increase of the objective if its model and cuts are raised by one
    spread: > 0 where they bound the output from below and lower values would pay, < 0 where they bound it
    from above. 0 for classes and MILPs."""

    @property
    def senses(self) -> FloatArray:
        """(m,) the side from which each output's model binds: 1 from below, -1 from above, 0 not at all."""
        return np.where(np.abs(self.duals) > PRICED, np.sign(self.duals), 0.0)


class TrustRegionSubproblem:
    """The program of all steps of one problem: an LP with the integers fixed or relaxed, or a MILP.
    `bundle_size` is the largest number of cuts in a step."""

    def __init__(
        self,
        scaled: ScaledProblem,
        stopwatch: Stopwatch,
        *,
        integer: bool,
        bundle_size: int = 0,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        self._scaled, self._stopwatch = scaled, stopwatch
        host, networks = scaled.host, scaled.networks
        A, row_lower, row_upper = host.A, host.row_lower, host.row_upper
        self._regression = np.flatnonzero(~networks.classes)
        self._bundle_size = bundle_size if self._regression.size else 0
        r, c = self._regression.size, networks.conditions.count
        self._up, self._down, self._miss = host.n_columns, host.n_columns + r, host.n_columns + 2 * r
        self._width = host.n_columns + 2 * r + c
        self._host_rows = A.shape[0]
        wide = sp.csr_array((A.data, A.indices, A.indptr), shape=(A.shape[0], self._width))
        empty = r * (1 + self._bundle_size) + c
        open_ends = np.full(empty, np.inf)
        program = LinearProgram(
            sp.csr_array(sp.vstack([wide, sp.csr_array((empty, self._width))], format="csr")),
            np.concatenate([row_lower, -open_ends]),
            np.concatenate([row_upper, open_ends]),
            *self._limits(host.lower, host.upper),
            np.concatenate(
                [host.integer if integer else np.zeros(host.n_columns, bool), np.zeros(2 * r + c, bool)]
            ),
        )
        with stopwatch.measure("engine"):
            self._live = LoadedHighs(program, seed=seed, threads=threads)
        self._find_sparsity()
        self._conditions = ConditionRows(networks, scaled.spread, self._miss) if c else None

    def _find_sparsity(self) -> None:
        """The places of the entries of a regression's row, found once: slopes, then y, up and down."""
        networks, r = self._scaled.networks, self._regression.size
        spread = self._scaled.spread[self._regression]
        number = np.full(networks.count, -1)
        number[self._regression] = np.arange(r)
        entry = np.flatnonzero(number[networks.rows] >= 0)
        rows = np.concatenate([number[networks.rows[entry]], *[np.arange(r)] * 3])
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
        linearisation: Linearisation,
        penalty: FloatArray,
        *,
        budget: Budget,
        senses: FloatArray | None = None,
        cuts: tuple[BundleCut, ...] = (),
        gap: float = 1e-4,
        start: FloatArray | None = None,
    ) -> LinearStep | None:
        """The best point of the linear model between `lower` and `upper`, or None without one in time.
        `senses` (m,): < 0 bounds an output from above by its model, > 0 from below, 0 both ways."""
        with self._stopwatch.measure("assembly"):
            rows, low, high = self._network_rows(lower, upper, linearisation, senses, cuts)
            limits, costs = self._limits(lower, upper), self._costs(cost, penalty)
            lifted = None if start is None else self._lift(start, linearisation)
        with self._stopwatch.measure("engine"):
            status, x = MipStatus.LIMIT, None
            with expendable("LP of a step", EngineError):
                self._live.replace_rows(self._host_rows, rows, low, high)
                self._live.set_bounds(*limits)
                self._live.set_objective(costs, 0.0)
                if lifted is not None:
                    self._live.set_start(lifted)
                status, x, _ = self._live.run(budget, gap)
            if x is None or status in (MipStatus.INFEASIBLE, MipStatus.UNBOUNDED):
                return None
            duals = None if self._live.is_mip else self._live.row_duals()
        return self._step(x, duals, cost, penalty)

    def _step(
        self, x: FloatArray, duals: FloatArray | None, cost: FloatArray, penalty: FloatArray
    ) -> LinearStep:
        networks, r = self._scaled.networks, self._regression
        z = x[: self._scaled.host.n_columns]
        slack, prices = np.zeros(networks.count), np.zeros(networks.count)
        slack[r] = x[self._up : self._down] + x[self._down : self._miss]
        if self._conditions is not None:
            miss = x[self._miss :] * self._conditions.unit
            slack += np.asarray(networks.conditions.weights.T @ miss) / self._scaled.spread
        if duals is not None:
            first = self._host_rows
            own = duals[first : first + r.size]
            cuts = duals[first + r.size : first + r.size * (1 + self._bundle_size)].reshape(
                self._bundle_size, r.size
            )
            prices[r] = own + cuts.sum(axis=0)
        return LinearStep(z, float(cost @ z) + float((penalty * self._scaled.spread) @ slack), slack, prices)

    def _limits(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        extra = self._width - self._scaled.host.n_columns
        return np.concatenate([lower, np.zeros(extra)]), np.concatenate([upper, np.full(extra, np.inf)])

    def _costs(self, cost: FloatArray, penalty: FloatArray) -> FloatArray:
        slack, miss = (penalty * self._scaled.spread)[self._regression], np.empty(0)
        if self._conditions is not None:
            miss = (self._scaled.networks.conditions.weights @ penalty) * self._conditions.unit
        return np.concatenate([cost, slack, slack, miss])

    def _network_rows(
        self,
        lower: FloatArray,
        upper: FloatArray,
        linearisation: Linearisation,
        senses: FloatArray | None,
        cuts: tuple[BundleCut, ...],
    ) -> Rows:
        rows, low, high = self._regression_rows(linearisation, senses, cuts)
        if self._conditions is None:
            return rows, low, high
        others, limit = self._conditions.rows(lower, upper, linearisation)
        together = SparseRows(
            np.concatenate([rows.data, others.data]),
            np.concatenate([rows.indices, others.indices]),
            np.concatenate([rows.indptr, others.indptr[1:] + rows.data.size]),
        )
        return together, np.concatenate([low, limit]), np.concatenate([high, np.full(limit.size, np.inf)])

    def _regression_rows(
        self, linearisation: Linearisation, senses: FloatArray | None, cuts: tuple[BundleCut, ...]
    ) -> Rows:
        """The model of every output, then the one-sided rows of each cut; empty if not used."""
        r = self._regression
        sense = np.zeros(r.size) if senses is None else senses[r]
        used = np.zeros((1 + self._bundle_size, r.size), dtype=bool)
        used[0] = True
        models = [linearisation]
        for k, cut in enumerate(cuts[: self._bundle_size]):
            used[1 + k] = cut.outputs[r]
            models.append(cut.linearisation)
        side = np.full(used.shape, np.nan)
        side[: len(models)] = np.array([model.offset for model in models])[:, r] / self._scaled.spread[r]
        low = np.where(used & (sense > 0), side, -np.inf)
        high = np.where(used & (sense < 0), side, np.inf)
        both = sense == 0
        low[0, both] = high[0, both] = side[0, both]

        data = np.tile(self._template, (len(models), 1))
        slopes = np.array([model.slopes for model in models])[:, self._slope_entry]
        data[:, self._slope_at] = -slopes / self._slope_spread
        kept = used[: len(models), self._row_of] & (data != 0.0)
        numbers = np.arange(len(models))[:, None] * r.size + self._row_of
        length = np.bincount(numbers[kept], minlength=used.size)
        pointer = np.concatenate([[0], np.cumsum(length)])
        indices = np.broadcast_to(self._indices, data.shape)[kept]
        return SparseRows(data[kept], indices, pointer), low.ravel(), high.ravel()

    def _lift(self, z: FloatArray, linearisation: Linearisation) -> FloatArray:
        """A point with the slacks that make it a point of the program."""
        networks, r = self._scaled.networks, self._regression
        linear = networks.jacobian(linearisation) @ z
        apart = (z[networks.outputs] - linearisation.offset - linear)[r] / self._scaled.spread[r]
        parts = [z, np.maximum(apart, 0.0), np.maximum(-apart, 0.0)]
        if self._conditions is not None:
            short = networks.conditions.shortfall(z, linearisation.offset + linear)
            parts.append(short / self._conditions.unit)
        return np.concatenate(parts)


class ConditionRows:
    """The rows of class conditions, each divided by its unit, with the smallest M for the region.

    The sparsity is found once; slopes, offsets and M change. `first_miss` is the column of the first
    condition's slack.
    """

    def __init__(self, networks: Networks, spread: FloatArray, first_miss: int) -> None:
        self._conditions = conditions = networks.conditions
        self.unit: FloatArray = np.asarray(
            (conditions.weights @ spread) / (conditions.weights @ np.ones(networks.count))
        )
        """(c,) the unit of a condition: the mean spread of its logits."""
        self._find_sparsity(networks, first_miss)

    def _find_sparsity(self, networks: Networks, first_miss: int) -> None:
        """The places of the entries: slopes, the class column, the slack."""
        conditions, width = self._conditions, networks.shape[1]
        form, self._count = conditions.form.tocoo(), conditions.count
        length = np.diff(networks.first_entry)[form.col]
        product = np.repeat(np.arange(form.nnz), length)  # of an entry of the form and a slope
        first = np.repeat(networks.first_entry[form.col] - np.cumsum(length) + length, length)
        entry = first + np.arange(product.size)
        keys, key_of = np.unique(form.row[product] * width + networks.columns[entry], return_inverse=True)
        coefficient = ((1.0 / self.unit)[form.row] * form.data)[product]
        self._combine = sp.csr_array((coefficient, (key_of, entry)), shape=(keys.size, networks.columns.size))
        row, column = np.divmod(keys, width)
        pointer = np.searchsorted(row, np.arange(self._count + 1))
        self._one_sided = sp.csr_array((np.zeros(row.size), column, pointer), shape=(self._count, width))
        own = np.arange(self._count)
        rows = np.concatenate([row, own, own])
        columns = np.concatenate([column, conditions.column, first_miss + own])
        self._order = np.lexsort((columns, rows))
        self._indices, self._row_of = columns[self._order], rows[self._order]

    def rows(
        self, lower: FloatArray, upper: FloatArray, linearisation: Linearisation
    ) -> tuple[SparseRows, FloatArray]:
        """The rows and their lower limits; they have no upper limits."""
        conditions = self._conditions
        slopes = np.asarray(self._combine @ linearisation.slopes)
        constant = (conditions.form @ linearisation.offset) / self.unit
        margin = conditions.margin / self.unit
        least = self._least(slopes, np.clip(lower, -ENDLESS, ENDLESS), np.clip(upper, -ENDLESS, ENDLESS))
        big_m = np.maximum(margin - (least + constant), 0.0) + LOOSE
        # active is y, or 1 - y
        on_class = np.where(conditions.when, -big_m, big_m)
        limit = margin - constant - np.where(conditions.when, big_m, 0.0)
        return self._sparse_entries(slopes, on_class), limit

    def _least(self, slopes: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(c,) the smallest value of the slopes between these bounds."""
        self._one_sided.data[:] = np.maximum(slopes, 0.0)
        least = self._one_sided @ lower
        self._one_sided.data[:] = np.minimum(slopes, 0.0)
        return np.asarray(least + self._one_sided @ upper)

    def _sparse_entries(self, slopes: FloatArray, on_class: FloatArray) -> SparseRows:
        """The entries in the order of rows and columns, without those that HiGHS would drop."""
        data = np.concatenate([slopes, on_class, np.ones(self._count)])[self._order]
        kept = np.abs(data) >= SMALLEST
        length = np.bincount(self._row_of[kept], minlength=self._count)
        return SparseRows(data[kept], self._indices[kept], np.concatenate([[0], np.cumsum(length)]))
