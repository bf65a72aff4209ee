"""Room for rounding: a problem whose limits are moved in by what its predictors' rounding may do to them.

A point of it satisfies the rows of the original wherever its samples are evaluated. It is a place to look for
points and never to prove anything: bounds come from the original.

Before any point is known, searches leave a little room (`with_room`): a search puts a float64 copy of the
network on a row. At outputs of a hundred and more the network itself, in float32, is then beyond it by more
than the tolerance as often as not, and the check refuses the best points.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.probe import within_reach
from dovetail.core.problem import Problem
from dovetail.mip.answers import answer_of
from dovetail.run.context import SolveContext
from dovetail.run.engine import Quadratic
from dovetail.run.network_step import ends_in_probability

AHEAD = 1.5
"""Factor on the rounding for which room is left: a search puts the float64 copy on the row, and the
network's own value differs by up to half of it."""


ABSORBED = 5e-7
"""Half the tolerance of rows: smaller rounding keeps no point from its row."""
MODEST = 1e-6
"""The largest change of a limit, relative to max(1, |limit|): outputs and their rounding may be much smaller
at a solution than at the middle of the box, where they are measured."""


def cleared(problem: Problem, change: FloatArray, lead: FloatArray) -> Problem:
    """Limits tightened by the effect of a `change` of the outputs; classes decided by a `lead` or more.
    Limits closer than twice the change move to their middle, so equalities stay."""
    mip = problem.mip
    change = AHEAD * change
    in_rows = abs(mip.A) @ change
    row_lower, row_upper = moved_in(mip.row_lower, mip.row_upper, in_rows, in_rows)
    lower, upper = moved_in(mip.lower, mip.upper, change, change)
    host = replace(mip, row_lower=row_lower, row_upper=row_upper, lower=lower, upper=upper)
    return problem.derived(host, decided(problem, lead))


def decided(problem: Problem, lead: FloatArray) -> tuple[Block, ...]:
    """The blocks with classes decided by a `lead` or more."""
    return tuple(
        replace(block, epsilon=max(block.epsilon, AHEAD * _in_logits(block, np.max(lead[block.outputs]))))
        if block.classifies
        else block
        for block in problem.blocks
    )


def has_room(problem: Problem, change: FloatArray) -> bool:
    """Whether a point within these limits can pass for any `change`; an equality has only its tolerance."""
    mip = problem.mip
    rows = mip.row_upper - mip.row_lower >= 2.0 * (abs(mip.A) @ change - TOLERANCE)
    return bool(np.all(rows) and np.all(mip.upper - mip.lower >= 2.0 * (change - TOLERANCE)))


def moved_in(
    lower: FloatArray, upper: FloatArray, up: FloatArray, down: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Lower limits raised and upper ones lowered, at most to their middle; by finite amounts only."""
    half = np.maximum(0.0, 0.5 * (upper - lower))
    up, down = (np.where(np.isfinite(by), by, 0.0) for by in (up, down))
    return lower + np.minimum(up, half), upper - np.minimum(down, half)


def _in_logits(block: Block, lead: float) -> float:
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
    in_rows = AHEAD * (abs(mip.A) @ change)
    row_lower, row_upper = _modestly(mip.row_lower, mip.row_upper, in_rows)
    lower, upper = _modestly(mip.lower, mip.upper, AHEAD * change)
    sides = ((row_lower, mip.row_lower), (row_upper, mip.row_upper), (lower, mip.lower), (upper, mip.upper))
    if all(np.array_equal(moved, own) for moved, own in sides):
        return problem.derived(mip, decided(problem, lead))
    room = replace(mip, row_lower=row_lower, row_upper=row_upper, lower=lower, upper=upper)
    if not _has_points(room, context):
        room = mip
    return problem.derived(room, decided(problem, lead))


def _modestly(lower: FloatArray, upper: FloatArray, by: FloatArray) -> tuple[FloatArray, FloatArray]:
    by = np.where(by > ABSORBED, by, 0.0)
    up, down = (np.minimum(by, MODEST * np.maximum(1.0, np.abs(limit))) for limit in (lower, upper))
    return moved_in(lower, upper, up, down)


def _has_points(mip: Mip, context: SolveContext) -> bool:
    """Whether the rows have a common point, integers relaxed."""
    answer = answer_of(
        "LP of the room for rounding", mip.relaxed(), context.budget, seed=context.seed,
        threads=context.threads, objective=Quadratic.linear(np.zeros(mip.n_columns)),
    )  # fmt: skip
    return answer is not None and answer.x is not None
