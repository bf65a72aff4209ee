"""What the host proves by itself: infeasible, unbounded, or a bound on every objective.

The host is a relaxation of the whole problem, since it leaves out y = f(x); of the outputs it
knows only their bounds, and that classes are 0 or 1. So an infeasible host proves the problem
infeasible, and its bound is a bound for the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.budget import Budget
from dovetail.core.engine import MipAnswer, MipStatus, Quadratic
from dovetail.core.errors import EngineError
from dovetail.core.mip import SMALLEST, Mip
from dovetail.core.problem import Problem
from dovetail.mip.highs import HighsEngine

SHARE, MOST_SECONDS = 0.2, 10.0


@dataclass(frozen=True, eq=False)
class Host:
    """What is known before any network is looked at; numbers are in minimisation form."""

    infeasible: bool = False
    ray: bool = False
    """Some direction outside the blocks improves the objective for ever: feasible means unbounded."""
    bound: float = -np.inf
    x: FloatArray | None = None
    """A point of the host, the cheapest found."""
    note: str = ""


def examine(problem: Problem, budget: Budget, *, seed: int = 0, threads: int = 1) -> Host:
    """Ask HiGHS about the host alone, within a share of the time."""
    try:
        return _examine(problem, budget, seed, threads)
    except EngineError as trouble:
        return Host(note=f"nothing is known about the host: {trouble}")


def _examine(problem: Problem, budget: Budget, seed: int, threads: int) -> Host:
    """Without blocks the host is the whole problem, and gets all the time."""
    mip = problem.mip.minimised()
    lower, upper, integer = class_limits(problem, mip.lower, mip.upper)
    empty = np.flatnonzero(lower > upper)
    if empty.size:
        name = mip.column_name(int(empty[0]))
        return Host(infeasible=True, note=f"the bounds of {name} hold neither class 0 nor class 1")
    known = replace(mip, lower=lower, upper=upper, integer=integer)
    part = budget.part(min(SHARE * budget.left, MOST_SECONDS)) if problem.blocks else budget
    answer = _solve(known, known.cost, part, seed, threads)
    if answer.status is MipStatus.INFEASIBLE:
        return _confirm_infeasible(known, budget, seed, threads)
    if answer.status is not MipStatus.UNBOUNDED:
        return Host(bound=answer.bound, x=answer.x)
    # an output may be what falls for ever, which says nothing: its network decides how far it goes
    ray = _has_ray(problem, known, part, seed, threads)
    nothing = np.zeros(mip.columns)
    for cost in (nothing,) if ray else (_cost_without_outputs(problem, known), nothing):
        point = _solve(known, cost, part, seed, threads)
        if point.status is MipStatus.INFEASIBLE:
            return _confirm_infeasible(known, budget, seed, threads)
        if point.x is not None:
            break
    return Host(ray=ray, x=point.x)


def class_limits(
    problem: Problem, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Bounds and integrality with what is known of class outputs: they are 0 or 1."""
    lower, upper, integer = lower.copy(), upper.copy(), problem.mip.integer.copy()
    for block in problem.blocks:
        if block.classifies:
            columns = block.outputs.ravel()
            lower[columns] = np.maximum(np.ceil(lower[columns] - 1e-6), 0.0)
            upper[columns] = np.minimum(np.floor(upper[columns] + 1e-6), 1.0)
            integer[columns] = True
    return lower, upper, integer


def limits_within(
    problem: Problem, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """`class_limits` of a box that rows made; where no class fits it, those of the problem itself.

    Then nothing is feasible, but that is the host's to prove and not a box's.
    """
    low, high, integer = class_limits(problem, lower, upper)
    own_low, own_high, _ = class_limits(problem, problem.mip.lower, problem.mip.upper)
    crossed = low > high
    return np.where(crossed, own_low, low), np.where(crossed, own_high, high), integer


def _cost_without_outputs(problem: Problem, mip: Mip) -> FloatArray:
    cost = mip.cost.copy()
    cost[problem.outputs] = 0.0
    return cost


def _solve(mip: Mip, cost: FloatArray, budget: Budget, seed: int, threads: int) -> MipAnswer:
    session = HighsEngine().load(mip, np.empty(0, dtype=np.int64), seed=seed, threads=threads)
    return session.solve(Quadratic.linear(cost, mip.offset), budget=budget, gap=1e-8)


def _confirm_infeasible(mip: Mip, budget: Budget, seed: int, threads: int) -> Host:
    """Infeasible is a strong word: it is said when a second run, on the rows reversed, says so too."""
    turned = np.arange(mip.rows)[::-1]
    reversed_mip = replace(
        mip,
        A=mip.A[turned],
        row_lower=mip.row_lower[turned],
        row_upper=mip.row_upper[turned],
        row_names=None,
    )
    part = budget.part(min(SHARE * budget.left, MOST_SECONDS))
    again = _solve(reversed_mip, np.zeros(mip.columns), part, seed + 1, threads)
    if again.status is MipStatus.INFEASIBLE:
        return Host(infeasible=True, note="the rows, bounds and integers of the host have no solution")
    return Host(note="HiGHS called the host infeasible once and did not confirm it")


def _has_ray(problem: Problem, mip: Mip, budget: Budget, seed: int, threads: int) -> bool:
    """Whether the cost falls for ever along a direction that leaves all inputs and outputs alone.

    The direction is looked at in numpy: rows are scaled to entries of size 1, so that a tiny entry
    does not make a limit look like none.
    """
    tied = np.zeros(mip.columns, dtype=bool)
    tied[problem.inputs] = tied[problem.outputs] = True

    def directions(limit: FloatArray, side: float) -> FloatArray:
        """A direction may move by 1 where there is no limit, and not at all where there is one."""
        return np.where(np.isfinite(limit), 0.0, side)

    size = abs(mip.A).max(axis=1).toarray().ravel() if mip.rows else np.empty(0)
    scaled = sp.csr_array(sp.diags_array(1.0 / np.where(size > 0, size, 1.0)) @ mip.A)
    cone = replace(
        mip.relaxed(),
        A=scaled.multiply(abs(scaled) >= SMALLEST),
        lower=np.where(tied, 0.0, directions(mip.lower, -1.0)),
        upper=np.where(tied, 0.0, directions(mip.upper, 1.0)),
        row_lower=directions(mip.row_lower, -np.inf),
        row_upper=directions(mip.row_upper, np.inf),
        offset=0.0,
    )
    direction = _solve(cone, mip.cost, budget, seed, threads).x
    if direction is None:
        return False
    along = scaled @ direction
    leaves = np.max(np.maximum(cone.row_lower - along, along - cone.row_upper), initial=0.0)
    return bool(leaves <= 1e-9 and mip.cost @ direction < -1e-6 * np.max(np.abs(mip.cost)))
