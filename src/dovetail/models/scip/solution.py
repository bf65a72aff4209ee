"""A point handed to a PySCIPOpt model, as a candidate for the problem that its owner wrote."""

from __future__ import annotations

from typing import Any

from dovetail.core.arrays import FloatArray
from dovetail.core.foreign import Reading


def load_point(model: Any, reading: Reading, point: FloatArray) -> None:
    """Let `getVal` and `getObjVal` of a model that is open for changes say the point.

    SCIP keeps the candidates it is given in an order of its own and reads values off the first. Where
    another one stands there (that of an earlier solve, say), it is written over.
    """
    at = dict(zip(reading.with_slacks.keys, point.tolist(), strict=True))
    values = [(variable, at.get(variable.ptr(), 0.0)) for variable in model.getVars()]
    candidate = model.createOrigSol()
    _write(model, candidate, values)
    model.addSol(candidate)
    first = model.getBestSol()
    if any(model.getSolVal(first, variable) != value for variable, value in values):
        _write(model, first, values)


def _write(model: Any, solution: Any, values: list[tuple[Any, float]]) -> None:
    for variable, value in values:
        model.setSolVal(solution, variable, value)
