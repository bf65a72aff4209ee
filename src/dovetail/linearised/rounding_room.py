"""Room for rounding, before any point is known: limits on outputs moved in a little, for searches.

A search puts a float64 copy of the network on a row. At outputs of a hundred and more the network itself, in
float32, is then beyond it by more than the tolerance as often as not, and the check refuses the best points.
Searches look for points of this problem instead. Nothing is proved by it: bounds come from the original.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import Mip
from dovetail.core.probe import within_reach
from dovetail.core.problem import Problem
from dovetail.linearised.clearance import AHEAD, decided, moved_in
from dovetail.mip.highs import HighsEngine
from dovetail.run.context import SolveContext
from dovetail.run.engine import Quadratic
from dovetail.run.failures import expendable

ABSORBED = 5e-7
"""Half the tolerance of rows: rounding below it keeps no point from its row."""
MODEST = 1e-6
"""The most that a limit is moved, relative to max(1, |limit|): a point may be found where outputs, and what
they round, are much smaller than at the middle of the box, where they are seen."""


def with_room(context: SolveContext) -> Problem:
    """The problem of a search with room for its predictors' rounding, unless its rows then leave nothing."""
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
    nothing = np.empty(0, dtype=np.int64)
    objective = Quadratic.linear(np.zeros(mip.n_columns), 0.0)
    with expendable("LP of the room for rounding", EngineError):
        session = HighsEngine().load(mip.relaxed(), nothing, seed=context.seed, threads=context.threads)
        return session.solve(objective, budget=context.budget).x is not None
    return False
