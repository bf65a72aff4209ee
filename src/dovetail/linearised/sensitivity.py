"""What a small change of a constraint, a bound or a prediction is worth at a point.

    min  cost'z    over the constraints, the bounds, integers held at the point,
                   y - J x  =  f(x0) - J x0        for each predictor, J its Jacobian at the point x0
                   |x - x0| <= a small part of its range, for the predictors' inputs

Idea: near a point predictors are linear, so the multipliers of this LP say by how much the objective changes
per unit of each right-hand side. Weakness: at a kink of a ReLU network the Jacobian is that of one side, and
integers do not move; the answer is an estimate, good for "may this difference be rounding?", not for a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray
from dovetail.core.class_rounding import block_slack
from dovetail.core.errors import EngineError
from dovetail.core.problem import Problem
from dovetail.linearised.networks import Networks
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import Program
from dovetail.run.bound import Tolerated
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus
from dovetail.run.stopwatch import Stopwatch

TRUST = 1e-3
"""Of an input's value, or of 1: how far it may move from the point. Multipliers are those of the point
itself, wherever predictors are smooth; the limit keeps the LP where the linearisation means something."""
SAFETY = 2.0
"""Multipliers of a degenerate point are not unique, and a bound takes off what rounding is worth over a box,
which may be more than at the point."""


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """By how much the objective changes, at the most, per unit of each right-hand side; never negative."""

    rows: FloatArray
    """(rows,) of a constraint's limits."""
    columns: FloatArray
    """(columns,) of a variable's bounds."""
    outputs: FloatArray
    """(columns,) of what a predictor says; 0 for columns that are no outputs."""


def sensitivity(problem: Problem, x: FloatArray, budget: Budget) -> Sensitivity | None:
    """At the point `x`, whose outputs are the predictors'; None where the LP has no answer in time.

    All changes are worth infinity where no point near `x`, with its integers, meets the constraints exactly.
    """
    host = problem.mip.minimised()
    networks = Networks(problem, Stopwatch())
    linear = networks.linearise(x)
    regressions = np.flatnonzero(~networks.classes)
    outputs = networks.outputs[regressions]
    unit = sp.csr_array(
        (np.ones(outputs.size), (np.arange(outputs.size), outputs)), shape=(outputs.size, host.n_columns)
    )
    own = sp.csr_array(unit - networks.jacobian(linear)[regressions])
    level = own @ x
    trust = np.full(host.n_columns, np.inf)
    trust[networks.inputs] = TRUST * (1.0 + np.abs(x[networks.inputs]))
    held = host.integer.copy()
    held[networks.outputs[networks.classes]] = True
    trust[held] = 0.0
    program = Program(
        sp.csr_array(sp.vstack([host.A, own], format="csr")),
        np.concatenate([host.row_lower, level]),
        np.concatenate([host.row_upper, level]),
        np.clip(x - trust, host.lower, host.upper),
        np.clip(x + trust, host.lower, host.upper),
        np.zeros(host.n_columns, dtype=bool),
    )
    try:
        live = LoadedHighs(program)
        live.set_objective(host.cost, 0.0)
        status, _, _ = live.run(budget, 0.0)
        if status is MipStatus.INFEASIBLE:
            return Sensitivity(*(np.full(n, np.inf) for n in (host.n_rows, host.n_columns, host.n_columns)))
        if status is not MipStatus.OPTIMAL:
            return None
        duals = live.row_duals()
    except EngineError:
        return None
    of_outputs = np.zeros(host.n_columns)
    of_outputs[outputs] = np.abs(duals[host.n_rows :])
    reduced = host.cost - program.A.T @ duals
    return Sensitivity(np.abs(duals[: host.n_rows]), np.abs(reduced), of_outputs)


def tolerated(problem: Problem, x: FloatArray, budget: Budget) -> Tolerated | None:
    """What missed constraints and rounding are worth at `x`; None where nobody knows."""
    found = sensitivity(problem, x, budget)
    if found is None:
        return None
    host = problem.mip.minimised()
    missed = _worth(found.rows, host.row_violation(x)) + _worth(found.columns, host.bound_violation(x))
    return Tolerated(SAFETY * missed, SAFETY * _rounding(problem, x, found))


def _worth(prices: FloatArray, missed: FloatArray) -> float:
    """What is gained by missing limits by so much; signed amounts, negative inside."""
    return float(np.sum(prices[missed > 0.0] * missed[missed > 0.0]))


def _rounding(problem: Problem, x: FloatArray, found: Sensitivity) -> float:
    """What the predictors' own rounding may do to the objective, by what is known of their arithmetic."""
    total = 0.0
    for block in problem.blocks:
        if not block.classifies:
            inputs = x[block.inputs]
            price, slack = found.outputs[block.outputs], block_slack(block, inputs, inputs)
            total += float(np.sum(np.where(price > 0.0, price * slack, 0.0)))
    return total if np.isfinite(total) else 0.0
