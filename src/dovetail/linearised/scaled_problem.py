"""Data about a problem that all linearising methods share: box, lengths, networks, penalties.

The methods of one solve share the data through `context.once(scaled_problem)`.

A merit function combines the objective and the violations in one number; it guides searches only. A descent
satisfies the linear constraints and may miss the network equations: `l1_merit`. A completed solution has true
outputs and may violate constraints: `CompletedMerit`.

Room for rounding: a problem whose limits are tightened by the effect of its predictors' rounding.

A point of the tightened problem satisfies the rows of the original wherever its samples are evaluated. It is
used for searches and never for proofs: bounds come from the original.

Before a solution is known, searches leave a little room (`with_room`), because the optimum of a search
satisfies a row exactly with the float64 copy of the network. At outputs of a hundred and more the float32
network itself violates the row by more than the tolerance in about half of all cases, and the check refuses
the best points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.box import Box
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.probe import within_reach
from dovetail.core.problem import Problem
from dovetail.linearised.networks import Networks
from dovetail.mip.answers import answer_of
from dovetail.run.context import SolveContext
from dovetail.run.engine import Quadratic
from dovetail.run.network_step import ends_in_probability
from dovetail.structure.boxes import TypicalRanges, limits_within, typical_ranges
from dovetail.structure.structure import structure_of

ROUNDING_FACTOR = 1.5
"""Factor on the rounding for which room is left: the search satisfies a row exactly with the float64 copy,
and the network's own value differs by up to half of it."""


NEGLIGIBLE_ROUNDING = 5e-7
"""Half the tolerance of rows: smaller rounding makes no point infeasible."""
MODEST = 1e-6
"""The largest change of a limit, relative to max(1, |limit|): outputs and their rounding may be much smaller
at a solution than at the middle of the box, where they are measured."""


def cleared(problem: Problem, change: FloatArray, lead: FloatArray) -> Problem:
    """Limits tightened by the effect of a `change` of the outputs; classes decided by a `lead` or more.
    Limits closer than twice the change move to their middle, so equalities stay."""
    mip = problem.mip
    change = ROUNDING_FACTOR * change
    in_rows = abs(mip.A) @ change
    row_lower, row_upper = moved_in(mip.row_lower, mip.row_upper, in_rows, in_rows)
    lower, upper = moved_in(mip.lower, mip.upper, change, change)
    host = replace(mip, row_lower=row_lower, row_upper=row_upper, lower=lower, upper=upper)
    return problem.derived(host, decided(problem, lead))


def decided(problem: Problem, lead: FloatArray) -> tuple[Block, ...]:
    """The blocks with classes decided by a `lead` or more."""
    return tuple(
        replace(
            block,
            epsilon=max(
                block.epsilon, ROUNDING_FACTOR * _distance_in_logits(block, np.max(lead[block.outputs]))
            ),
        )
        if block.classifies
        else block
        for block in problem.blocks
    )


def has_room(problem: Problem, change: FloatArray) -> bool:
    """Whether a point within these limits can pass the check for any `change`; an equality has only its
    tolerance."""
    mip = problem.mip
    rows = mip.row_upper - mip.row_lower >= 2.0 * (abs(mip.A) @ change - TOLERANCE)
    return bool(np.all(rows) and np.all(mip.upper - mip.lower >= 2.0 * (change - TOLERANCE)))


def moved_in(
    lower: FloatArray, upper: FloatArray, up: FloatArray, down: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Lower limits raised and upper limits lowered, at most to their middle, by finite amounts only."""
    half = np.maximum(0.0, 0.5 * (upper - lower))
    up, down = (np.where(np.isfinite(by), by, 0.0) for by in (up, down))
    return lower + np.minimum(up, half), upper - np.minimum(down, half)


def _distance_in_logits(block: Block, lead: float) -> float:
    """A distance from the threshold in the search's units: in logits, if the network has them."""
    if not ends_in_probability(block):
        return lead
    return lead / (block.threshold * (1.0 - block.threshold))


def with_room(context: SolveContext) -> Problem:
    """The problem of a search with room for its predictors' rounding, unless it would be infeasible."""
    problem, mip = context.problem, context.problem.mip
    if context.budget.over or all(block.description.is_float64 for block in problem.blocks):
        return problem
    middle = 0.5 * np.sum(within_reach(mip.lower, mip.upper), axis=0)
    x = problem.predict(np.where(mip.integer, np.round(middle), middle))
    if not np.all(np.isfinite(x)):
        return problem
    change, lead = context.incumbent.rounding(x)
    in_rows = ROUNDING_FACTOR * (abs(mip.A) @ change)
    row_lower, row_upper = _tightened_limits(mip.row_lower, mip.row_upper, in_rows)
    lower, upper = _tightened_limits(mip.lower, mip.upper, ROUNDING_FACTOR * change)
    sides = ((row_lower, mip.row_lower), (row_upper, mip.row_upper), (lower, mip.lower), (upper, mip.upper))
    if all(np.array_equal(moved, own) for moved, own in sides):
        return problem.derived(mip, decided(problem, lead))
    room = replace(mip, row_lower=row_lower, row_upper=row_upper, lower=lower, upper=upper)
    if not _has_points(room, context):
        room = mip
    return problem.derived(room, decided(problem, lead))


def _tightened_limits(lower: FloatArray, upper: FloatArray, by: FloatArray) -> tuple[FloatArray, FloatArray]:
    by = np.where(by > NEGLIGIBLE_ROUNDING, by, 0.0)
    up, down = (np.minimum(by, MODEST * np.maximum(1.0, np.abs(limit))) for limit in (lower, upper))
    return moved_in(lower, upper, up, down)


def _has_points(mip: Mip, context: SolveContext) -> bool:
    """Whether the rows have a common point, integers relaxed."""
    answer = answer_of(
        "LP for a margin against rounding", mip.relaxed(), context.budget, seed=context.seed,
        threads=context.threads, objective=Quadratic.linear(np.zeros(mip.n_columns)),
    )  # fmt: skip
    return answer is not None and answer.x is not None


SAMPLE_POINTS = 16
"""Number of random points of the box at which the spread of each value is measured (to about a fifth)."""
SMALLEST_SPREAD = 1e-3
"""Relative to the largest value: a nearly constant output still gets a unit."""
CONSTANT = 1e-12
"""Outputs with a smaller spread are constants and have the unit 1."""
WIDEST = 1e10
"""The largest width that counts for cost times width, because free columns may be unbounded."""
SAFETY = 2.0
"""Initial penalties relative to the largest effect of an output on the objective: an exact penalty must
exceed this effect."""


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
    Z = ranges.lower + rng.random((SAMPLE_POINTS, problem.mip.n_columns)) * (ranges.upper - ranges.lower)
    Z[:, problem.mip.integer] = np.round(Z[:, problem.mip.integer])
    values = networks.values(Z)
    spread = np.maximum(values.std(axis=0), SMALLEST_SPREAD * np.abs(values).max(axis=0))
    return np.where(np.isfinite(spread) & (spread > CONSTANT), spread, 1.0)


def _penalty(host: Mip, networks: Networks, ranges: TypicalRanges, spread: FloatArray) -> FloatArray:
    """An upper estimate of an output's effect on the objective, by its own cost or by its share of the
    objective."""
    at_stake = float(np.sqrt(np.sum((host.cost * np.minimum(ranges.width, WIDEST)) ** 2)))
    share = (at_stake if at_stake > 0.0 else 1.0) / (spread * np.sqrt(max(1, networks.count)))
    return np.asarray(
        SAFETY * np.maximum(np.where(networks.classes, 0.0, np.abs(host.cost[networks.outputs])), share)
    )


ROW_PENALTY = 10.0
"""The penalty of violating a row by its largest entry, as a multiple of the objective's range: large
enough that no saving outweighs a violation, and small enough that costs still decide between points with
equal violations."""
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
        """(T,) the merit of each row of `Z`; infinite if a network returned NaN."""
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
