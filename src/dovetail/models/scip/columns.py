"""The variables of a PySCIPOpt model, with what is said of each alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import ModelError

NO_PROBLEM, BEING_WRITTEN = 0, 1
"""Stages of SCIP: freed, and open for changes. All later ones have a transformed copy."""

GONE = -1
"""Stands for a column or row that is not in the model any more."""


def original_variables(model: Any) -> list[Any]:
    """The variables as their owner made them; a `ModelError` where there are none."""
    if model.getStage() == NO_PROBLEM:
        raise ModelError("the PySCIPOpt model has no problem any more: it was freed, with freeProb.")
    variables: list[Any] = model.getVars()
    if not variables:
        raise ModelError("the PySCIPOpt model has no variables; add some first.")
    return variables


def limits(values: list[float], infinity: float) -> FloatArray:
    """Limits of columns or rows. What SCIP holds for infinite, its owner may have changed."""
    found = np.array(values, dtype=np.float64)
    found[found >= infinity] = np.inf
    found[found <= -infinity] = -np.inf
    return found


@dataclass(frozen=True, eq=False)
class ScipColumns:
    """The original variables; they are known by the addresses SCIP has them at."""

    variables: list[Any]
    keys: tuple[int, ...]
    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray

    @classmethod
    def of(cls, model: Any) -> ScipColumns:
        """All of a model."""
        variables, infinity = original_variables(model), model.infinity()
        return cls(
            variables,
            tuple(variable.ptr() for variable in variables),
            np.array([variable.getObj() for variable in variables]),
            limits([variable.getLbOriginal() for variable in variables], infinity),
            limits([variable.getUbOriginal() for variable in variables], infinity),
            np.array([variable.isIntegral() for variable in variables]),  # also those that are by themselves
        )

    @cached_property
    def place(self) -> dict[int, int]:
        """Columns by key."""
        return {key: j for j, key in enumerate(self.keys)}

    def find(self, model: Any, variables: list[Any]) -> tuple[IntArray, BoolArray]:
        """The columns of variables in constraints, GONE for removed ones, and which of them are negated.

        A negated variable stands for 1 - x. PySCIPOpt does not say which x; but a point in which every
        binary column j has the value j + 1 does, for there it has the value -j.
        """
        column = np.array([self.place.get(variable.ptr(), GONE) for variable in variables], dtype=np.int64)
        negated = np.zeros(column.size, dtype=bool)
        unknown = [k for k in np.flatnonzero(column == GONE) if variables[k].getStatus() == "NEGATED"]
        if unknown:
            point = model.createOrigSol()
            for j, variable in enumerate(self.variables):
                if variable.isBinary():
                    model.setSolVal(point, variable, float(j + 1))
            column[unknown] = [round(-model.getSolVal(point, variables[k])) for k in unknown]
            negated[unknown] = True
        return column, negated
