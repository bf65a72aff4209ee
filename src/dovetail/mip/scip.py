"""SCIP as an engine: quadratic pulls written as t >= s^2, so that only linear costs change between solves."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.budget import Budget, StopReason
from dovetail.core.engine import Bounds, MipAnswer, MipSession, MipStatus, Quadratic, certified
from dovetail.core.errors import EngineError, MissingDependencyError
from dovetail.core.mip import Mip
from dovetail.mip.expansion import Expansion

STATUS = {
    "optimal": MipStatus.OPTIMAL,
    "gaplimit": MipStatus.OPTIMAL,
    "infeasible": MipStatus.INFEASIBLE,
    "unbounded": MipStatus.UNBOUNDED,
    "timelimit": MipStatus.LIMIT,
    "nodelimit": MipStatus.LIMIT,
    "memlimit": MipStatus.LIMIT,
    "sollimit": MipStatus.LIMIT,
    "userinterrupt": MipStatus.LIMIT,
}


class ScipEngine:
    """MILP and convex MIQP by SCIP."""

    name = "scip"

    def refuses(self, mip: Mip, columns: IntArray) -> str | None:
        """SCIP takes every program."""
        return None

    def load(self, mip: Mip, columns: IntArray, *, seed: int = 0, threads: int = 1) -> MipSession:
        """Build the model once. SCIP itself uses one thread."""
        return ScipSession(import_scip('engine "scip"'), mip, columns, seed)


def import_scip(who: str) -> Any:
    """PySCIPOpt, or an error that says who wants it and how to get it."""
    try:
        import pyscipopt
    except ImportError:
        raise MissingDependencyError(f'{who} needs PySCIPOpt: pip install "dovetail[scip]".') from None
    return pyscipopt


def add_program(
    scip: Any,
    model: Any,
    A: Any,
    row_lower: FloatArray,
    row_upper: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    integer: BoolArray,
) -> list[Any]:
    """Write columns and rows into a SCIP model; the variables, one per column."""
    variables = [
        model.addVar(
            name=f"c{j}",
            vtype="I" if integer[j] else "C",
            lb=None if np.isneginf(lower[j]) else float(lower[j]),
            ub=None if np.isposinf(upper[j]) else float(upper[j]),
        )
        for j in range(A.shape[1])
    ]
    for i in range(A.shape[0]):
        entries = range(A.indptr[i], A.indptr[i + 1])
        expression = scip.quicksum(float(A.data[k]) * variables[A.indices[k]] for k in entries)
        if np.isfinite(row_lower[i]) and row_lower[i] == row_upper[i]:
            model.addCons(expression == float(row_lower[i]))
            continue
        if np.isfinite(row_lower[i]):
            model.addCons(expression >= float(row_lower[i]))
        if np.isfinite(row_upper[i]):
            model.addCons(expression <= float(row_upper[i]))
    return variables


class ScipSession:
    """A program inside SCIP."""

    def __init__(self, scip: Any, mip: Mip, columns: IntArray, seed: int) -> None:
        self._scip, self._mip = scip, mip
        self._expansion = Expansion.of(mip, columns)
        self._model = scip.Model()
        self._model.hideOutput()
        for name, value in (
            ("randomization/randomseedshift", seed % 2**31),
            ("numerics/feastol", 1e-7),
        ):
            self._model.setParam(name, value)
        self._variables = add_program(scip, self._model, *self._expansion.program())
        self._add_squares()
        self._bounds = (mip.lower, mip.upper)

    def _add_squares(self) -> None:
        model, variables = self._model, self._variables
        first = self._expansion.first_square
        for k, (j, r) in enumerate(zip(self._expansion.squares_of, self._expansion.reference, strict=True)):
            shifted = variables[j] - float(r)
            model.addCons(variables[first + k] >= shifted * shifted)

    def solve(
        self,
        objective: Quadratic,
        *,
        budget: Budget,
        start: FloatArray | None = None,
        gap: float = 1e-6,
        bounds: Bounds | None = None,
    ) -> MipAnswer:
        """Minimise; exact up to `gap` unless a limit is met."""
        if budget.over:
            return MipAnswer(MipStatus.LIMIT, None, np.inf, -np.inf)
        model = self._model
        model.freeTransform()
        self._set_bounds(bounds if bounds is not None else (self._mip.lower, self._mip.upper))
        cost, offset = self._expansion.cost(objective)
        used = np.flatnonzero(cost)
        total = self._scip.quicksum(float(cost[j]) * self._variables[j] for j in used)
        model.setObjective(total + offset, "minimize")
        model.setParam("limits/gap", gap)
        model.setParam("limits/time", min(budget.left, 1e20))
        if start is not None:
            self._offer(start)
        model.optimize()
        return self._answer(objective, budget, bounds)

    def _set_bounds(self, bounds: Bounds) -> None:
        lower, upper = bounds
        moved = np.flatnonzero((lower != self._bounds[0]) | (upper != self._bounds[1]))
        infinity = self._model.infinity()
        for j in moved:
            self._model.chgVarLb(self._variables[j], float(np.maximum(lower[j], -infinity)))
            self._model.chgVarUb(self._variables[j], float(np.minimum(upper[j], infinity)))
        self._bounds = (lower.copy(), upper.copy())

    def _offer(self, x: FloatArray) -> None:
        solution = self._model.createSol()
        for variable, value in zip(self._variables, self._expansion.lift(x), strict=True):
            self._model.setSolVal(solution, variable, float(value))
        self._model.addSol(solution)

    def _answer(self, objective: Quadratic, budget: Budget, bounds: Bounds | None) -> MipAnswer:
        model = self._model
        said = model.getStatus()
        if said == "userinterrupt":
            budget.stop(StopReason.INTERRUPT)
        if said == "inforunbd":
            status = MipStatus.LIMIT
        elif said in STATUS:
            status = STATUS[said]
        else:
            raise EngineError(f"SCIP ended with {said!r}; no answer was taken from it.")
        if status in (MipStatus.INFEASIBLE, MipStatus.UNBOUNDED) or model.getNSols() == 0:
            return MipAnswer(status, None, np.inf, -np.inf)
        best = model.getBestSol()
        x = np.array([model.getSolVal(best, self._variables[j]) for j in range(self._mip.columns)])
        bound = float(model.getDualbound())
        return certified("SCIP", self._mip, objective, x, status, bound, bounds)
