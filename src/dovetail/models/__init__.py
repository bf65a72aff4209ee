"""Foreign models: read into a `Mip`, one file per library; importing this package imports none of them.

A tool is recognised by the module names of a model's classes, so that none is imported just to say that
an object is not one of its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dovetail.core.errors import ModelError
from dovetail.core.foreign import ForeignModel

_FILES = {
    "dovetail.core.problem.Problem": ("own", "OwnModel"),
    "highspy.highs.Highs": ("highs", "HighsModel"),
    "pyscipopt.scip.Model": ("scip", "ScipModel"),
    "gurobipy._model.Model": ("gurobi", "GurobiModel"),
    "gurobipy.Model": ("gurobi", "GurobiModel"),
    "pyomo.core.base.block.BlockData": ("pyomo_block", "PyomoModel"),
    "linopy.model.Model": ("linopy_model", "LinopyModel"),
}
"""Which file reads the models of which class, and through what."""


def foreign_model(model: Any) -> ForeignModel:
    """What can read `model`; a `ModelError` if it is of no modelling tool that dovetail knows."""
    for cls in type(model).__mro__:
        found = _FILES.get(f"{cls.__module__}.{cls.__qualname__}")
        if found is not None:
            reader: ForeignModel = getattr(import_module(f"dovetail.models.{found[0]}"), found[1])(model)
            return reader
    raise ModelError(
        f"{type(model).__module__}.{type(model).__qualname__} is not a model dovetail can read; give a "
        "model of PySCIPOpt, highspy, gurobipy, Pyomo or linopy, or a dovetail.Problem."
    )
