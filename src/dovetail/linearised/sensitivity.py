"""The value of tolerances at a solution: the gain from violated constraints, and the effect of rounding.

    min  cost'z    over the constraints, the bounds, integers fixed at the solution,
                   y - J x  =  f(x0) - J x0        for each predictor, J its Jacobian at the solution x0
                   |x - x0| <= a small part of its range, for the predictors' inputs

Idea: near a solution predictors are almost linear, so the multipliers of this LP give the change of the
objective per unit of a prediction. Weakness: at a kink of a ReLU network the Jacobian is that of one side,
and integers do not move. The result is an estimate: good enough to decide whether a difference may be
rounding, and no bound. The value of violated constraints is therefore measured by a step to a solution that
violates none.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.class_rounding import block_slack
from dovetail.core.errors import EngineError
from dovetail.core.problem import Problem
from dovetail.linearised.networks import Networks
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import LinearProgram
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus
from dovetail.run.work import Stopwatch

TRUST_RADIUS = 1e-3
"""Relative to an input's value, or to 1: how far it may move from the point, so that the linearisation stays
meaningful."""
REPAIRS, REPAIRED = 4, 0.01
"""Linear steps towards a point without violations, and the fraction of the violation that may remain."""
SAFETY = 2.0
"""Factor for degenerate points, whose multipliers are not unique, and for bounds that subtract rounding over
a box."""


def sensitivity(problem: Problem, x: FloatArray, budget: Budget) -> FloatArray | None:
    """(columns,) the change of the objective per unit of a prediction; 0 for other columns.

    The LP is made at the point `x`, whose outputs are the predictors'. None where the LP has no answer in
    time; infinity where no point near `x`, with its integers, meets the constraints exactly.
    """
    host, (outputs, own, trust) = problem.mip.minimised(), _linear(problem, x)
    level = own @ x
    program = LinearProgram(
        sp.csr_array(sp.vstack([host.A, own], format="csr")),
        np.concatenate([host.row_lower, level]),
        np.concatenate([host.row_upper, level]),
        np.clip(x - trust, host.lower, host.upper),
        np.clip(x + trust, host.lower, host.upper),
        np.zeros(host.n_columns, dtype=bool),
    )
    worth = np.zeros(host.n_columns)
    try:
        live = LoadedHighs(program)
        live.set_objective(host.cost, 0.0)
        status, _, _ = live.run(budget, 0.0)
        if status is MipStatus.OPTIMAL:
            worth[outputs] = np.abs(live.row_duals()[host.n_rows :])
    except EngineError:
        return None
    if status is MipStatus.INFEASIBLE:
        worth[outputs] = np.inf
    return worth if status in (MipStatus.OPTIMAL, MipStatus.INFEASIBLE) else None


def _linear(problem: Problem, x: FloatArray) -> tuple[IntArray, sp.csr_array, FloatArray]:
    """The numeric outputs, y - J x of each as a row, and (columns,) how far each column may move."""
    networks = Networks(problem, Stopwatch())
    linear, columns = networks.linearise(x), problem.mip.n_columns
    regressions = np.flatnonzero(~networks.classes)
    outputs = networks.outputs[regressions]
    unit = sp.csr_array(
        (np.ones(outputs.size), (np.arange(outputs.size), outputs)), shape=(outputs.size, columns)
    )
    trust = np.full(columns, np.inf)
    trust[networks.inputs] = TRUST_RADIUS * (1.0 + np.abs(x[networks.inputs]))
    trust[problem.mip.integer] = trust[networks.outputs[networks.classes]] = 0.0
    return outputs, sp.csr_array(unit - networks.jacobian(linear)[regressions]), trust


def gained_by_missing(problem: Problem, x: FloatArray, budget: Budget) -> float | None:
    """The gain of `x` from violating constraints within tolerances: the loss on the way to a nearby point
    that violates none.

        min |d|    over the constraints and bounds at x + d, integers held, predictors linear at x

    Multipliers would give the same number if predictors are smooth; at a kink they belong to one side.
    Infinity if no such point is found: `x` may be the only point, within tolerance. None without an answer in
    time.
    """
    host, missed = problem.mip.minimised(), _largest_violation(problem, x)
    z, left = x, missed
    for _ in range(REPAIRS):
        if left <= REPAIRED * missed:
            break
        _, own, trust = _linear(problem, z)
        activity, rows = host.A @ z, sp.vstack([host.A, own], format="csr")
        lower = np.minimum(np.maximum(host.lower - z, -trust), trust) / left
        upper = np.minimum(np.maximum(host.upper - z, -trust), trust) / left
        program = LinearProgram(  # over the parts of d above and below 0, in units of the violation
            sp.csr_array(sp.hstack([rows, -rows], format="csr")),
            np.concatenate([host.row_lower - activity, np.zeros(own.shape[0])]) / left,
            np.concatenate([host.row_upper - activity, np.zeros(own.shape[0])]) / left,
            np.concatenate([np.maximum(lower, 0.0), np.maximum(-upper, 0.0)]),
            np.concatenate([np.maximum(upper, 0.0), np.maximum(-lower, 0.0)]),
            np.zeros(2 * host.n_columns, dtype=bool),
        )
        try:
            live = LoadedHighs(program)
            live.set_objective(np.ones(2 * host.n_columns), 0.0)
            status, d, _ = live.run(budget, 0.0)
        except EngineError:
            return None
        if d is None:
            return np.inf if status is MipStatus.INFEASIBLE else None
        z = problem.predict(z + left * (d[: host.n_columns] - d[host.n_columns :]))
        left = _largest_violation(problem, z) if np.all(np.isfinite(z)) else np.inf
    if left > 0.5 * missed:
        return np.inf
    return max(0.0, float(host.cost @ (z - x))) * missed / (missed - left) if missed else 0.0


def _largest_violation(problem: Problem, x: FloatArray) -> float:
    """The largest violation at `x`."""
    host = problem.mip.minimised()
    return float(
        max(np.max(host.row_violation(x), initial=0.0), np.max(host.bound_violation(x), initial=0.0))
    )


def worth_of_rounding(problem: Problem, x: FloatArray, budget: Budget) -> float | None:
    """The possible effect of the predictors' rounding on the objective at `x`; None without an answer in
    time."""
    worth = sensitivity(problem, x, budget)
    if worth is None:
        return None
    total = 0.0
    for block in problem.blocks:
        if not block.classifies:
            inputs = x[block.inputs]
            price, slack = worth[block.outputs], block_slack(block, inputs, inputs)
            priced = price > 0.0  # a part without cost may be unbounded
            total += float(np.sum(price[priced] * slack[priced]))
    return SAFETY * total if np.isfinite(total) else 0.0
