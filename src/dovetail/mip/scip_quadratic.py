"""A program with quadratic functions between its columns, for SCIP, which takes them as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import Mip
from dovetail.mip.program import Program
from dovetail.mip.scip import SETTINGS, STATUS, add_program, import_scip, run_to_the_end, watched_model
from dovetail.run.budget import Budget, OutOfTime
from dovetail.run.engine import MipAnswer, MipStatus, Quadratic, certified
from dovetail.run.failures import expendable

GAP = 1e-7
"""Relative, a tenth of what `optimal` promises: spatial branching gets no finer than its tolerances."""

Function = tuple[int, list[int], FloatArray, FloatArray, float]
"""Column y, columns x, and y = x'Qx + linear'x + constant."""


def solve_quadratic(
    mip: Mip, functions: Sequence[Function], budget: Budget, seed: int, start: FloatArray | None
) -> MipAnswer | None:
    """Minimise the cost of `mip`, in minimisation form; None where SCIP came to nothing."""
    scip = import_scip("a quadratic program")
    try:
        model = watched_model(scip, budget)
        model.setParams(
            {
                **SETTINGS,
                "randomization/randomseedshift": seed % 2**31,
                "constraints/nonlinear/tightenlpfeastol": False,  # its LP solver prints warnings, and cannot
                "limits/gap": GAP,
            }
        )
        variables = add_program(scip, model, Program.of(mip))
        for y, x, Q, linear, constant in functions:
            own = [variables[j] for j in x]
            square = scip.quicksum(
                float(Q[i, j]) * own[i] * own[j] for i, j in zip(*np.nonzero(Q), strict=True)
            )
            rest = scip.quicksum(float(linear[i]) * own[i] for i in np.flatnonzero(linear))
            model.addCons(variables[y] == square + rest + constant)
        cost = scip.quicksum(float(mip.cost[j]) * variables[j] for j in np.flatnonzero(mip.cost))
        model.setObjective(cost + mip.offset, "minimize")
        if start is not None:
            solution = model.createSol()
            for variable, number in zip(variables, start, strict=True):
                model.setSolVal(solution, variable, float(number))
            model.addSol(solution)
    except OutOfTime:
        return None
    said = None
    with expendable("quadratic program of SCIP", EngineError):
        said = run_to_the_end(model, budget)
    if said is None or model.getNSols() == 0:
        return None
    best = model.getBestSol()
    point = np.array([model.getSolVal(best, variable) for variable in variables])
    status, bound = STATUS.get(said, MipStatus.LIMIT), float(model.getDualbound())
    with expendable("quadratic program of SCIP", EngineError):
        return certified("SCIP", mip, Quadratic.linear(mip.cost, mip.offset), point, status, bound)
    return None
