"""The last step of every solve: move away from constraints that hold only up to this machine's rounding.

Solves end with constraints active. A float32 network is not a smooth function at that scale: evaluated one by
one, the same samples may violate the constraint by the network's rounding. A short descent from this solution
solves the problem with its limits tightened by that amount. The change of the objective is as small as the
rounding. A solution that costs more, or that would lose its proof, is not taken, and the result reports the
possible violation.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import propagate
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.linearised.descent import DescentOptions, MixedIntegerDescent
from dovetail.linearised.scaled_problem import ScaledProblem, cleared, has_room
from dovetail.mip.answers import answer_of
from dovetail.mip.highs import HighsEngine
from dovetail.run.budget import Budget, StopReason
from dovetail.run.context import SolveContext
from dovetail.run.engine import least_seconds
from dovetail.run.failures import expendable
from dovetail.run.incumbent import Incumbent

SECONDS = 0.5
"""Time limit, which also holds after the end of the solve."""
RADIUS, STEPS = 0.01, 15
"""Trust region and steps of the descent: rounding is a tiny part of any box."""
WORTH = 1e-4
"""Relative to the objective: the acceptable loss."""


def clear(context: SolveContext, incumbent: Incumbent) -> None:
    """Replace an incumbent that may fail for other rounding by a point that passes for every rounding."""
    if incumbent.x is None or all(block.description.is_float64 for block in context.problem.blocks):
        return
    if 2.0 * least_seconds(context.problem.stated) > SECONDS:
        return  # the LP that a descent begins with, over twice the columns, would not end
    if context.budget.stopped is StopReason.INTERRUPT or incumbent.steady:
        return  # after Ctrl-C the solution is returned as it is
    change, lead = incumbent.rounding(incumbent.x)
    if not has_room(context.problem, change):
        return
    point = _descent_near(context, incumbent.x, cleared(context.problem, change, lead))
    if point is not None:
        incumbent.accept_steadier(point, WORTH)


def _descent_near(context: SolveContext, x: FloatArray, problem: Problem) -> FloatArray | None:
    """The best point near `x` that a short descent finds in the tightened problem, or None."""
    budget = Budget(SECONDS)
    inner = Incumbent(
        context.problem,
        HighsEngine(),
        budget,
        context.stopwatch,
        seed=context.seed,
        threads=context.threads,
        steady=True,
    )
    inside = replace(context, problem=problem, incumbent=inner, budget=budget)
    with expendable("search for a solution that tolerates rounding"):
        scaled = ScaledProblem.of(inside, box=propagate(problem.mip))
        start = _nearest(scaled.host, x, scaled.width, inside)
        if start is not None:
            MixedIntegerDescent(inside, scaled, DescentOptions(steps=STEPS)).descend(
                start, RADIUS, budget, "clear", steps=1
            )
    return inner.x


def _nearest(host: Mip, x: FloatArray, width: FloatArray, context: SolveContext) -> FloatArray | None:
    """The nearest point to `x` that satisfies the rows with the integers of `x`: min |z - x|, an LP. A
    descent needs a start that satisfies the rows."""
    up, down = host.upper - x, x - host.lower
    up[host.integer] = down[host.integer] = 0.0
    activity = host.A @ x
    moves = Mip(
        cost=np.concatenate([1.0 / width, 1.0 / width]),
        A=sp.hstack([host.A, -host.A]),
        row_lower=host.row_lower - activity,
        row_upper=host.row_upper - activity,
        lower=np.maximum(0.0, -np.concatenate([down, up])),
        upper=np.maximum(0.0, np.concatenate([up, down])),
    )
    answer = answer_of(
        "nearest feasible point",
        moves,
        context.budget,
        seed=context.seed,
        threads=context.threads,
    )
    return None if answer is None or answer.x is None else x + answer.x[: x.size] - answer.x[x.size :]
