"""Data about a problem that all linearising methods share: box, lengths, networks, penalties.

The methods of one solve share the data through `context.once(scaled_problem)`.

A merit function is one number for a solution with violations; methods choose by it and never judge by it. A
descent satisfies the linear constraints and may miss the network equations: `l1_merit`. A completed solution
has true outputs and may violate constraints: `CompletedMerit`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.box import Box
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.linearised.clearance import with_room
from dovetail.linearised.networks import Networks
from dovetail.run.context import SolveContext
from dovetail.structure.boxes import TypicalRanges, limits_within, typical_ranges
from dovetail.structure.structure import structure_of

SPREAD_POINTS = 16
"""Number of random points of the box at which the spread of each value is measured (to about a fifth)."""
SMALLEST_SPREAD = 1e-3
"""Relative to the largest value: a nearly constant output still gets a unit."""
CONSTANT = 1e-12
"""Outputs with a smaller spread are constants and have the unit 1."""
WIDEST = 1e10
"""The largest width that counts for cost times width, because free columns may be unbounded."""
SAFETY = 2.0
"""Initial penalties relative to the largest worth of an output: an exact penalty must exceed it."""


@dataclass(frozen=True, eq=False)
class ScaledProblem:
    """One problem with scales, in minimisation form."""

    problem: Problem
    host: Mip
    """The program, minimised; bounds as tight as the box, class outputs 0 or 1."""
    box: Box
    ranges: TypicalRanges
    networks: Networks
    spread: FloatArray
    """(m,) the unit of each output's value."""
    width: FloatArray
    """The typical variation of each column, the unit of trust regions; never 0."""
    penalty: FloatArray
    """(m,) the smallest penalty of a unit of |y - f(x)|, or of a violated class condition."""
    by_range: bool = True
    """Whether inputs have widths of their own."""

    @classmethod
    def of(cls, context: SolveContext, *, box: Box | None = None, by_range: bool = True) -> ScaledProblem:
        """The scales of a solve's problem; `box` if it is known; without `by_range` inputs have one width."""
        if box is None:
            box = context.once(structure_of).tight_box
        problem = with_room(context)
        with context.stopwatch.measure("nn"), context.stopwatch.measure("network"):
            ranges = typical_ranges(problem, box, context.seed)
            networks = Networks(problem, context.stopwatch, context.device)
        spread = _spread(problem, networks, ranges, context.seed)
        lower, upper, integer = limits_within(problem, box.lower, box.upper)
        host = replace(problem.mip.minimised(), lower=lower, upper=upper, integer=integer)
        width = ranges.width if by_range else np.full(host.n_columns, ranges.width[networks.inputs].mean())
        penalty = _penalty(host, networks, ranges, spread)
        return cls(problem, host, box, ranges, networks, spread, width, penalty, by_range)

    @property
    def inputs(self) -> IntArray:
        """Columns that networks read."""
        return self.networks.inputs

    @property
    def free_integers(self) -> BoolArray:
        """Integer columns that can take more than one value; class outputs among them."""
        return np.asarray(self.host.integer & (self.host.upper - self.host.lower > 0.5))

    def trust_region(
        self,
        z: FloatArray,
        radius: float | FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        *,
        integers: bool,
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds within these, with inputs within `radius` times their widths of `z`. Integer inputs are
        limited only with `integers`, because a region smaller than one would fix them."""
        step = radius * self.width
        near = self.inputs if integers else self.inputs[~self.host.integer[self.inputs]]
        low, high = lower[near], upper[near]
        lower, upper = lower.copy(), upper.copy()
        lower[near] = np.minimum(np.maximum(low, z[near] - step[near]), high)
        upper[near] = np.maximum(np.minimum(high, z[near] + step[near]), lower[near])
        return lower, upper


def scaled_problem(context: SolveContext) -> ScaledProblem:
    """The scaled problem of a solve; made once (see `SolveContext.once`)."""
    return ScaledProblem.of(context)


def _spread(problem: Problem, networks: Networks, ranges: TypicalRanges, seed: int) -> FloatArray:
    """Standard deviation of each output's value over the box, at least a thousandth of its size."""
    rng = np.random.default_rng(seed)
    Z = ranges.lower + rng.random((SPREAD_POINTS, problem.mip.n_columns)) * (ranges.upper - ranges.lower)
    Z[:, problem.mip.integer] = np.round(Z[:, problem.mip.integer])
    values = networks.values(Z)
    spread = np.maximum(values.std(axis=0), SMALLEST_SPREAD * np.abs(values).max(axis=0))
    return np.where(np.isfinite(spread) & (spread > CONSTANT), spread, 1.0)


def _penalty(host: Mip, networks: Networks, ranges: TypicalRanges, spread: FloatArray) -> FloatArray:
    """More than an output can be worth, by its own cost or by its share of the objective."""
    at_stake = float(np.sqrt(np.sum((host.cost * np.minimum(ranges.width, WIDEST)) ** 2)))
    share = (at_stake if at_stake > 0.0 else 1.0) / (spread * np.sqrt(max(1, networks.count)))
    return np.asarray(
        SAFETY * np.maximum(np.where(networks.classes, 0.0, np.abs(host.cost[networks.outputs])), share)
    )


ROW_PENALTY = 10.0
"""Violating a row by its largest entry costs so many times what all columns together are worth: enough that
no saving pays for it, little enough that costs still count among points with equal violations."""
WIDEST_AT_STAKE = 1e6
"""The largest width that counts for cost times width, because free columns may be unbounded."""
DECREASE = 1e-9
"""Relative to 1 + |merit|: a smaller decrease is rounding."""
ROUNDING = 1e-9
"""Smaller violations of rows and bounds count as satisfied: the tolerance of engines."""
MISSED = 1e-7
"""Points with a larger total violation pay the penalty once more, so that feasible points win."""


def l1_merit(scaled: ScaledProblem, Z: FloatArray, values: FloatArray, penalty: FloatArray) -> FloatArray:
    """(T,) the exact penalty function of each row of `Z`: cost'z + penalty'|y - f(x)|. `values` (T, m) are
    the networks' values there. A class counts by the shortfall of its logits."""
    networks = scaled.networks
    apart = np.abs(Z[:, networks.outputs] - values) * ~networks.classes
    merit = Z @ scaled.host.cost + apart @ penalty
    conditions = networks.conditions
    if conditions.count:
        merit += conditions.shortfall(Z, values) @ np.asarray(conditions.weights @ penalty)
    return np.asarray(merit)


class CompletedMerit:
    """The cost of points with true outputs, plus a penalty for violated rows and bounds."""

    def __init__(self, scaled: ScaledProblem) -> None:
        self.host = host = scaled.host
        size = abs(host.A).max(axis=1).toarray().ravel() if host.n_rows else np.empty(0)
        self.row_scale = np.where(size > 0, size, 1.0)
        at_stake = float(np.sqrt(np.sum((host.cost * np.minimum(scaled.width, WIDEST_AT_STAKE)) ** 2)))
        self._penalty = ROW_PENALTY * (at_stake or 1.0)

    def of(self, Z: FloatArray) -> FloatArray:
        """(T,) one for each row of `Z`; infinite if a network returned NaN."""
        host = self.host
        violation = np.sum(np.maximum(0.0, host.bound_violation(Z) - ROUNDING), axis=1)
        if host.n_rows:
            beyond = host.row_violation(Z) / self.row_scale
            violation += np.sum(np.maximum(0.0, beyond - ROUNDING), axis=1)
        return self.with_missed(Z @ host.cost, violation)

    def with_missed(self, cost: FloatArray, missed: FloatArray) -> FloatArray:
        """The merit of points with these costs and total violations."""
        merit = cost + self._penalty * (missed + (missed > MISSED))
        return np.where(np.isfinite(merit), merit, np.inf)
