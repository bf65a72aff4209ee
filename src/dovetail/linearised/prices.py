"""Prices of constraints: by how much the objective changes per unit of a limit, at a local optimum.

    min  cost'd    over displacements d of the solution within |d| <= a small radius,
                   constraints and bounds that such a d may reach, integers fixed,
                   d_y = J d_x  for each predictor, J its Jacobian at the solution

The multipliers of this LP are the prices if the solution is a local optimum. A search ends a little before
it, so the LP first takes steps (sequential linear programming) until they gain nothing. A price is given if
the LP gains as much by a wider limit as it loses by a tighter one: where these differ (a degenerate point,
slopes that still change), no single number is the price.

Around a kink a predictor consists of several linear pieces. If it is their maximum (or minimum) there, d_y is
at least (at most) each of them, which is exact as long as the objective pushes d_y against them; this is
checked. At a jump (a threshold of a tree) the inputs may not move across it.

Weakness: integers and leaves of trees are fixed, so a price is that of a small change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.problem import Problem
from dovetail.linearised.networks import Networks
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import LinearProgram
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus
from dovetail.run.work import Stopwatch

FIRST_RADIUS, LAST_RADIUS, STEPS = 1e-3, 1e-7, 60
"""Relative to 1 + |input|: how far the first step may go, and where steps end; and their largest number."""
WORTH_A_STEP = 1e-6
"""Relative to 1 + |objective|, per unit of the radius: the smallest predicted gain of a step."""
GOOD_STEP, POOR_STEP, GROW, SHRINK = 0.5, 0.1, 2.0, 0.3
"""The part of the predicted gain from which on a radius grows, and up to which a step is refused; and by how
much the radius changes."""
AGREED = 0.02
"""Relative: by how much the gain from a wider limit and the loss from a tighter one may differ."""
SHIFT = 0.05
"""Part of the radius by which a limit is moved to measure its price, so that the inputs can follow."""
PROBES, PROBE_RADIUS = 12, 1e-5
"""Number of points around the solution that show kinks and jumps, and their distance relative to 1 +
|input|."""
SMOOTH = 1e-3
"""Relative to the largest change of an output at the probes: smaller differences from the linear pieces are
curvature."""
JUMP = 3.0
"""An output jumps if it changes by more than this multiple of what its slopes say."""
OFFSET = 1e-9
"""Distances of pieces from the point that are rounding."""
MOST_EVALUATIONS = 1_000_000
"""Largest number of outputs that are evaluated to find the directions of jumps."""


@dataclass(frozen=True, eq=False)
class RowPrices:
    """The prices of all constraints, for a minimised objective."""

    price: FloatArray
    """(rows,) the change of the objective per unit of the limit; NaN where there is none."""
    gained: float
    """By how much the local optimum is better than the point."""


class _Pieces(NamedTuple):
    """The predictors near a point: one or more linear pieces for each output."""

    output: IntArray
    """(pieces,) places in `Networks.outputs`."""
    slopes: sp.csr_array
    """(pieces, columns)"""
    offset: FloatArray
    """(pieces,) the value at the point less that of the predictor."""
    side: IntArray
    """(pieces,) 0: the output is the piece; 1: at least the piece (a maximum); -1: at most (a minimum)."""
    unclear: BoolArray
    """(outputs,) outputs that are neither the maximum nor the minimum of their pieces."""
    lower: FloatArray
    """(columns,) 0 where a predictor jumps below the column's value, otherwise minus infinity."""
    upper: FloatArray


def row_prices(problem: Problem, x: FloatArray, budget: Budget) -> RowPrices | None:
    """The prices at the verified point `x`; None if no local optimum was found near it in time."""
    try:
        return _Pricing(problem, x, budget).prices()
    except EngineError:
        return None


class _Pricing:
    """Steps from a point to a local optimum, and the prices there."""

    def __init__(self, problem: Problem, x: FloatArray, budget: Budget) -> None:
        self._budget, self._host = budget, problem.mip.minimised()
        self._networks = Networks(problem, Stopwatch())
        self._z, self._radius = np.array(x, dtype=np.float64), FIRST_RADIUS
        fixed = self._host.integer | (self._host.lower == self._host.upper)
        fixed[self._networks.outputs[self._networks.classes]] = True
        self._fixed: BoolArray = fixed
        self._smooth = all(block.description.smooth for block in problem.blocks)
        self._rng = np.random.default_rng(0)

    def prices(self) -> RowPrices | None:
        """Step to a local optimum, then move each binding limit."""
        first, lp = self._z, None
        for _ in range(STEPS):
            lp = _LocalLp(self._host, self._networks, self._z, self._radius, self._fixed, self._pieces())
            if not lp.solve(self._budget) or self._budget.over:
                return None
            if not self._moved_by(lp):
                break
        assert lp is not None
        price = np.where(lp.binding, np.nan, 0.0)
        for i in lp.hardest_first() if lp.model_holds else ():
            if self._budget.over:
                break
            price[i] = lp.price(i, self._budget)
        return RowPrices(price, float(self._host.cost @ (first - self._z)))

    def _moved_by(self, lp: _LocalLp) -> bool:
        """Take the step of the LP, or reduce the radius; False at a local optimum."""
        predicted = lp.gain * self._radius
        if self._radius <= LAST_RADIUS or lp.gain <= WORTH_A_STEP * (1.0 + abs(self._host.cost @ self._z)):
            return False
        there = (self._z + self._radius * lp.d)[None]
        there = self._networks.with_predictions(there, self._networks.values(there))[0]
        ratio = (self._merit(self._z, lp) - self._merit(there, lp)) / predicted
        if ratio > POOR_STEP:
            self._z = there
        if ratio > GOOD_STEP:
            self._radius = min(FIRST_RADIUS, GROW * self._radius)
        else:
            self._radius *= SHRINK
        return True

    def _merit(self, z: FloatArray, lp: _LocalLp) -> float:
        """The objective plus what violated constraints are worth, with a factor of 2 for safety."""
        missed = np.maximum(self._host.row_violation(z), 0.0)
        return float(self._host.cost @ z + 2.0 * np.abs(lp.row_duals) @ missed)

    def _pieces(self) -> _Pieces:
        """The predictors near the point."""
        networks, columns = self._networks, self._host.n_columns
        here, every = networks.linearise(self._z), np.arange(networks.count)
        side, free = np.zeros(networks.count, dtype=np.int64), np.full(columns, np.inf)
        slopes, nothing = networks.jacobian(here), np.zeros(networks.count)
        if self._smooth or networks.count == 0:
            return _Pieces(every, slopes, nothing, side, side > 0, -free, free)

        # values and slopes at points around, which stay on one side of jumps
        step = self._steps(-free, free)
        change, models = self._around(step, here.values)
        lower, upper = -free, free
        jumping = _jumping(change, models, step, here.values)
        if np.any(jumping):
            lower, upper = self._limits_at_jumps(here.values, jumping)
            step = self._steps(lower, upper)
            change, models = self._around(step, here.values)
            jumping = _jumping(change, models, step, here.values)

        # the pieces: each is exact at its own probe; here, what piece p says of probe q
        offset = np.stack([c - J @ s for c, J, s in zip(change, models, step, strict=True)])
        said = np.stack([o + (J @ step.T).T for o, J in zip(offset, models, strict=True)])
        room = SMOOTH * np.abs(change).max(axis=0) + TOLERANCE**2 * (1.0 + np.abs(here.values))
        convex = np.all(said.max(axis=0) <= change + room, axis=0)
        concave = np.all(said.min(axis=0) >= change - room, axis=0)
        side = convex.astype(np.int64) - concave.astype(np.int64)
        unclear = (~convex & ~concave) | jumping
        several, single = np.flatnonzero(side), np.flatnonzero(side == 0)
        return _Pieces(
            np.concatenate([single, *(several for _ in models)]),
            sp.csr_array(sp.vstack([slopes[single], *(J[several] for J in models)], format="csr")),
            np.concatenate([nothing[single], *offset[:, several]]),
            np.concatenate([side[single], *(side[several] for _ in models)]),
            unclear, lower, upper,
        )  # fmt: skip

    def _steps(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(probes, columns) random displacements of the inputs that may move, between these limits."""
        inputs = self._networks.inputs[~self._fixed[self._networks.inputs]]
        step = np.zeros((PROBES, self._z.size))
        step[:, inputs] = self._rng.uniform(-1.0, 1.0, (PROBES, inputs.size))
        return np.clip(step * PROBE_RADIUS * (1.0 + np.abs(self._z)), lower, upper)

    def _around(self, step: FloatArray, values: FloatArray) -> tuple[FloatArray, list[sp.csr_array]]:
        """(probes, outputs) the changes of the outputs, and the slopes at each probe."""
        models = [self._networks.linearise(self._z + s) for s in step]
        change = np.stack([model.values for model in models]) - values
        return change, [self._networks.jacobian(model) for model in models]

    def _limits_at_jumps(self, values: FloatArray, jumping: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Limits of displacements: 0 on the side of a column on which an output jumps."""
        networks = self._networks
        limits = np.full((2, self._z.size), np.inf)
        read = np.unique(networks.columns[jumping[networks.rows]])
        read = read[~self._fixed[read]]
        if 2 * read.size * networks.count <= MOST_EVALUATIONS:
            for way, limit in zip((-1.0, 1.0), limits, strict=True):
                Z = np.tile(self._z, (read.size, 1))
                Z[np.arange(read.size), read] += way * PROBE_RADIUS * (1.0 + np.abs(self._z[read]))
                jumps = np.abs(networks.values(Z) - values) > SMOOTH * (1.0 + np.abs(values))
                limit[read[np.any(jumps[:, jumping], axis=1)]] = 0.0
        return -limits[0], limits[1]


def _jumping(
    change: FloatArray, models: list[sp.csr_array], step: FloatArray, values: FloatArray
) -> BoolArray:
    """(outputs,) which outputs change by more than their slopes explain."""
    explained = max((abs(J) for J in models), key=lambda J: J.sum()) @ np.abs(step).max(axis=0)
    return np.asarray(
        np.abs(change).max(axis=0) > JUMP * explained + TOLERANCE * PROBE_RADIUS * (1.0 + np.abs(values))
    )


class _LocalLp:
    """The LP over displacements in units of the radius."""

    def __init__(
        self,
        host: Mip,
        networks: Networks,
        z: FloatArray,
        radius: float,
        fixed: BoolArray,
        pieces: _Pieces,
    ) -> None:
        self._host = host
        self.d, self.row_duals, self.gain = np.zeros(z.size), np.zeros(host.n_rows), 0.0
        regressions = ~networks.classes[pieces.output]
        self._output, self._side = networks.outputs[pieces.output][regressions], pieces.side[regressions]
        self._unclear = pieces.unclear[pieces.output][regressions]
        places = np.arange(self._output.size)
        unit = sp.csr_array((np.ones(places.size), (places, self._output)), shape=(places.size, z.size))
        own, offset = unit - pieces.slopes[regressions], pieces.offset[regressions]
        classes, margin = _class_rows(networks, z)
        activity = host.A @ z
        self._rows = sp.csr_array(sp.vstack([host.A, own, classes], format="csr"))
        offset = _scaled(offset, radius, OFFSET)
        row_upper = _reachable(host.row_upper - activity, radius)
        row_lower = -_reachable(activity - host.row_lower, radius)
        self._lower = np.concatenate(
            [row_lower, np.where(self._side < 0, -np.inf, offset), -_reachable(margin, radius)]
        )
        self._upper = np.concatenate(
            [row_upper, np.where(self._side > 0, np.inf, offset), np.full(margin.size, np.inf)]
        )
        trust = np.full(z.size, np.inf)
        trust[networks.inputs] = 1.0 + np.abs(z[networks.inputs])
        trust[fixed] = 0.0
        most = np.minimum(np.maximum(_reachable(host.upper - z, radius), 0.0), pieces.upper)
        least = -np.minimum(np.maximum(_reachable(z - host.lower, radius), 0.0), -pieces.lower)
        self._limits = np.maximum(least, -trust), np.minimum(most, trust)
        self._at_lower, self._at_upper = row_lower >= 0.0, row_upper <= 0.0
        self.binding: BoolArray = self._at_lower | self._at_upper
        """(rows,) which constraints are at a limit."""

    def solve(self, budget: Budget) -> bool:
        """Find the best displacement; False without an answer."""
        continuous = np.zeros(self.d.size, dtype=bool)
        program = LinearProgram(self._rows, self._lower, self._upper, *self._limits, continuous)
        self._live = LoadedHighs(program)
        self._live.set_objective(self._host.cost, 0.0)
        value = self._value(budget)
        if value is None:
            return False
        self.gain, self._duals = -value, self._live.row_duals()
        self.row_duals = self._duals[: self._host.n_rows]
        return True

    def _value(self, budget: Budget) -> float | None:
        status, d, _ = self._live.run(budget, 0.0)
        if status is not MipStatus.OPTIMAL or d is None:
            return None
        self.d = d
        return float(self._host.cost @ d)

    @property
    def model_holds(self) -> bool:
        """Whether every output is at one of its pieces, and no unclear one is priced."""
        first, last = self._host.n_rows, self._host.n_rows + self._output.size
        said = (self._rows @ self.d)[first:last]
        limit = np.where(self._side < 0, self._upper[first:last], self._lower[first:last])
        at_piece = np.zeros(self.d.size, dtype=bool)
        at_piece[self._output[np.abs(said - limit) <= TOLERANCE]] = True
        priced = np.abs(self._duals[first:last]) > TOLERANCE
        return bool(np.all(at_piece[self._output]) and not np.any(priced & self._unclear))

    def hardest_first(self) -> IntArray:
        """The binding constraints, those with the largest multipliers first."""
        places = np.flatnonzero(self.binding)
        return np.asarray(places[np.argsort(-np.abs(self.row_duals[places]), kind="stable")])

    def price(self, i: int, budget: Budget) -> float:
        """The change of the objective per unit of a binding limit; NaN if a wider limit is worth another
        amount than a tighter one costs."""
        lower, upper = float(self._lower[i]), float(self._upper[i])
        shift = SHIFT * float(
            np.abs(self._host.A.data[self._host.A.indptr[i] : self._host.A.indptr[i + 1]]).max(initial=1e-9)
        )
        up, down = (self._moved(i, lower, upper, way * shift, budget) / (way * shift) for way in (1.0, -1.0))
        self._live.set_row_limits(i, lower, upper)
        room = AGREED * max(abs(up), abs(down)) + TOLERANCE**2
        return 0.5 * (up + down) if abs(up - down) <= room else np.nan

    def _moved(self, i: int, lower: float, upper: float, by: float, budget: Budget) -> float:
        """The change of the objective if the binding limits move; NaN if nothing meets them then."""
        self._live.set_row_limits(i, lower + by * self._at_lower[i], upper + by * self._at_upper[i])
        value = self._value(budget)
        return np.nan if value is None else value + self.gain


def _scaled(distance: FloatArray, radius: float, tolerance: float) -> FloatArray:
    """Distances in units of the radius; those within the tolerance are 0."""
    return np.where(np.abs(distance) <= tolerance, 0.0, distance / radius)


def _reachable(slack: FloatArray, radius: float) -> FloatArray:
    """Slacks in units of the radius; of a violation, what a small step can repair."""
    return np.maximum(_scaled(slack, radius, TOLERANCE), -SHIFT)


def _class_rows(networks: Networks, z: FloatArray) -> tuple[sp.csr_array, FloatArray]:
    """Rows that keep the classes, and their slacks."""
    conditions = networks.conditions
    active = np.flatnonzero(conditions.active(z)) if conditions.count else np.empty(0, dtype=np.int64)
    if active.size == 0:
        return sp.csr_array((0, z.size)), np.empty(0)
    form, here = conditions.form[active], networks.linearise(z)
    slack = form @ here.values - conditions.margin[active]
    return sp.csr_array(form @ networks.jacobian(here)), np.maximum(slack, 0.0)
