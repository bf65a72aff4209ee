"""A point handed to a gurobipy model: all variables fixed to it, one solve, the bounds put back.

gurobipy has no other way to a solution that its attributes speak of. The bounds are put back as changes that
wait, as all changes of gurobipy do: the next `update` or `optimize` writes them down, and takes the values
away. A restricted licence solves no model of more than 2,000 variables, of 200 with quadratic terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import ModelError
from dovetail.core.foreign import Reading
from dovetail.models.tool_model import Identity

SETTINGS: dict[str, float] = {
    "TimeLimit": np.inf,
    "WorkLimit": np.inf,
    "NodeLimit": np.inf,
    "IterationLimit": np.inf,
    "BarIterLimit": 2_000_000_000,
    "SolutionLimit": 2_000_000_000,
    "FeasibilityTol": 1e-4,
    "IntFeasTol": 1e-4,
}
"""For one solve of a point that was checked: no limit of its owner ends it, and rows that the point meets to
1e-6 are met, however Gurobi scales them."""
OPTIMAL, TOO_LARGE = 2, 10010
"""Gurobi's codes for a solve that has an answer, and for a model beyond a restricted licence."""


def load_point(model: Any, reading: Reading, point: FloatArray, optimize: Callable[[Any], None]) -> None:
    """Let `X` and `ObjVal` of the model say the point; a `ModelError` where Gurobi does not take it.

    `optimize` is gurobipy's own, which does not ask whether predictors are attached.
    """
    variables, values = _there(model, reading, point)
    with _quietly(model, SETTINGS | {"Cutoff": -np.inf if model.ModelSense < 0 else np.inf}):
        with _fixed(model, variables, values):
            fault = _fault(model, optimize)
        if fault:
            model.update()
    if fault:
        raise ModelError(
            f"X and ObjVal of the gurobipy model stay empty: {fault}. Read with result.value(variables)."
        )


def _fault(model: Any, optimize: Callable[[Any], None]) -> str:
    """What is wrong with the model, once it is solved; nothing if it has a solution."""
    try:
        optimize(model)
    except Exception as reason:  # gurobipy's own, which this file does not import
        if getattr(reason, "errno", 0) == TOO_LARGE:
            most = "200 with quadratic terms" if model.NumQNZs or model.NumQConstrs else "2,000"
            return f"it has {model.NumVars} variables, and a restricted licence of Gurobi solves up to {most}"
        return f"Gurobi says {reason}"
    return "" if model.Status == OPTIMAL else f"Gurobi solves it with the status {model.Status}"


def _there(model: Any, reading: Reading, point: FloatArray) -> tuple[list[Any], list[float]]:
    """The variables that are still in the model, and their values; whole ones of integers."""
    integer = np.zeros(point.size, dtype=bool)
    integer[: len(reading.keys)] = reading.mip.integer[: len(reading.keys)]
    values = np.where(integer, np.round(point), point)
    at = {key: values[j] for j, key in enumerate(reading.with_slacks.keys)}
    found = [(variable, at.get(Identity(variable))) for variable in model.getVars()]
    return [v for v, value in found if value is not None], [float(x) for _, x in found if x is not None]


@contextmanager
def _fixed(model: Any, variables: list[Any], values: list[float]) -> Iterator[None]:
    """The variables at these values within; their bounds wait to be as they were afterwards, in any case."""
    bounds = {name: model.getAttr(name, variables) for name in ("LB", "UB")}
    try:
        for name in bounds:
            model.setAttr(name, variables, values)
        yield
    finally:
        for name, before in bounds.items():
            model.setAttr(name, variables, before)


@contextmanager
def _quietly(model: Any, settings: dict[str, float]) -> Iterator[None]:
    """The parameters within; all as they were afterwards, in an order in which Gurobi prints nothing."""
    silence = {"OutputFlag": 0, "LogToConsole": 0}
    wanted = silence | settings
    before = {name: model.getParamInfo(name)[2] for name in wanted}
    try:
        for name, value in wanted.items():
            model.setParam(name, value)
        yield
    finally:
        for name in [*settings, *silence]:
            model.setParam(name, before[name])
