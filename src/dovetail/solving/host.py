"""Claims proved from the linear part of a problem alone: infeasible, unbounded, or a bound on the objective.

Dovetail proves all claims itself (`bounds`): engines find solutions, multipliers and directions, which are
then checked. The linear part is a relaxation of the whole problem, since it leaves out y = f(x). Outputs
appear only with their bounds, and with classes being 0 or 1. So an infeasible linear part proves the problem
infeasible, and a bound of the linear part is a bound of the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import least_cost, propagate
from dovetail.bounds.safe_lp import SafeLp, improving_ray, no_whole_number
from dovetail.bounds.safe_lp import least_cost as least_cost_of_columns
from dovetail.branching.confirmed import EngineSettings, confirmed
from dovetail.core.arrays import FloatArray
from dovetail.core.deadline import OutOfTime, deadline
from dovetail.core.mip import SMALLEST, Mip
from dovetail.core.problem import Problem
from dovetail.run.bound import Bound, GapLimit, Scope, Support
from dovetail.run.budget import Budget
from dovetail.run.engine import least_seconds
from dovetail.run.failures import expendable
from dovetail.structure.boxes import class_limits

SHARE, MOST_SECONDS = 0.2, 10.0
"""Share of the time left, and largest number of seconds, for the problem without predictors: it seldom
decides the problem."""
LPS, LPS_SHARE, UNNOTICED = 2.0, 0.02, 0.1
"""HiGHS's tree and ours take at least two LPs. If the LPs would take a larger share of the time left (and
more than this number of seconds), and bounds alone limit the objective (or all of it except outputs), the
search begins at once."""
NO_POINT = "no solution satisfies constraints, bounds and integrality, not even within 1e-6"


@dataclass(frozen=True, eq=False)
class HostRelaxation:
    """What is known without the predictors, in minimisation form."""

    infeasible: bool = False
    ray: bool = False
    """Whether a direction outside the blocks improves the objective without limit, so that any solution
    means unbounded."""
    endless: tuple[int, ...] = ()
    """The variables that move along this direction."""
    bound: float = -np.inf
    x: FloatArray | None = None
    """The best point found for the problem without predictors."""
    note: str = ""
    asked: bool = True
    """False if the problem is too large for its time: the bound comes from the bounds of variables, and
    feasibility is not known."""

    support: Support = Support.PROOF
    """Whose arithmetic proved the bound."""

    @property
    def proof(self) -> Bound:
        """The bound: of the MIP without predictors, or of the box of its bounds and rows."""
        return Bound(self.bound, "host" if self.asked else "box", Scope.WRITTEN, self.support)


def analyse_host(
    problem: Problem,
    budget: Budget,
    *,
    seed: int = 0,
    threads: int = 1,
    gap: GapLimit = GapLimit(0.0),  # noqa: B008  (frozen)
    at_any_size: bool = False,
) -> HostRelaxation:
    """Solve the problem without predictors within a share of the time; `at_any_size`: within all of it."""
    try:
        with expendable("analysis of the host"), deadline(lambda: budget.late):
            return _analyse(problem, budget, EngineSettings(seed, threads, gap), at_any_size)
    except OutOfTime:
        return HostRelaxation(asked=False)
    return HostRelaxation(note="the model without predictors could not be analysed")


def _analyse(problem: Problem, budget: Budget, settings: EngineSettings, at_any_size: bool) -> HostRelaxation:
    """The analysis. Without blocks this is the whole problem and gets all the time."""
    empty = no_whole_number(problem)
    if empty is not None:
        return HostRelaxation(infeasible=True, note=_no_whole_number(problem, empty))
    whole = at_any_size or not problem.blocks
    long = LPS * least_seconds(problem.stated) > max(LPS_SHARE * budget.left, UNNOTICED)
    bound = least_cost_of_columns(problem) if long and not whole else -np.inf
    if np.isfinite(bound):
        return HostRelaxation(bound=bound, asked=False)
    mip = problem.mip.minimised()
    lower, upper, integer = class_limits(problem, mip.lower, mip.upper)
    known = replace(mip.as_checked(), lower=lower, upper=upper, integer=integer)
    if long and not whole:
        box = propagate(known)
        bound = least_cost(known, box.lower, box.upper)
        others = replace(known, cost=_cost_without_outputs(problem, known))
        if np.isfinite(bound) or np.isfinite(least_cost(others, box.lower, box.upper)):  # there is no ray
            return HostRelaxation(bound=bound, asked=False)
    part = budget if whole else budget.part(min(SHARE * budget.left, MOST_SECONDS))
    found = confirmed(known, settings, part, in_turn=not whole)
    if found.infeasible:
        return HostRelaxation(infeasible=True, note=NO_POINT)
    if not found.unbounded:
        return HostRelaxation(bound=found.bound, x=found.x, note=found.note, support=found.support)
    # outputs are bounded by their networks
    endless = _ray(problem, known, part, settings)
    ray = bool(endless)
    nothing = np.zeros(mip.n_columns)
    for cost in (nothing,) if ray else (_cost_without_outputs(problem, known), nothing):
        found = confirmed(replace(known, cost=cost), settings, part)
        if found.infeasible:
            return HostRelaxation(infeasible=True, note=NO_POINT)
        if found.x is not None:
            break
    return HostRelaxation(ray=ray, endless=endless, x=found.x, note=found.note)


def _no_whole_number(problem: Problem, j: int) -> str:
    name = problem.stated.column_name(j)
    if problem.stated.integer[j]:
        return f"there is no whole number between the bounds of {name}"
    return f"the bounds of {name} hold neither class 0 nor class 1"


def _cost_without_outputs(problem: Problem, mip: Mip) -> FloatArray:
    cost = mip.cost.copy()
    cost[problem.outputs] = 0.0
    return cost


def _ray(problem: Problem, mip: Mip, budget: Budget, settings: EngineSettings) -> tuple[int, ...]:
    """The variables of a direction along which the cost decreases without limit while inputs and outputs
    are fixed. HiGHS proposes it for rows scaled to entries of size 1; it is then verified on the original
    rows."""
    tied = np.zeros(mip.n_columns, dtype=bool)
    tied[problem.inputs] = tied[problem.outputs] = True

    def directions(limit: FloatArray, side: float) -> FloatArray:
        """Bounds of a direction: 1 if there is no limit, otherwise 0."""
        return np.where(np.isfinite(limit), 0.0, side)

    size = abs(mip.A).max(axis=1).toarray().ravel() if mip.n_rows else np.empty(0)
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
    direction = SafeLp(cone, seed=settings.seed, threads=settings.threads).minimise(mip.cost, 0.0, budget).x
    if direction is None or not improving_ray(mip, np.where(tied, 0.0, direction)):
        return ()
    return tuple(np.flatnonzero(np.where(tied, 0.0, direction)).tolist())
