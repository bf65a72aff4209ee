"""Readers of other tools' models, one file per tool; importing this package imports none of the tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dovetail.core.errors import ModelError
from dovetail.core.table import Part, Table, of_class

if TYPE_CHECKING:  # this table is read by the command line: it must not load numpy
    from dovetail.core.foreign import ForeignModel

MODELS: Table[ForeignModel] = Table(
    "model",
    "modelling tools",
    Part(
        "dovetail.Problem",
        "dovetail.models.own:OwnModel",
        "constraints, bounds and costs as arrays",
        recognises=of_class("dovetail.core.problem.Problem"),
    ),
    Part(
        "highspy.Highs",
        "dovetail.models.highs:HighsModel",
        "and .mps, .mps.gz, .lp files by dovetail.read",
        library="highspy",
        recognises=of_class("highspy.highs.Highs"),
    ),
    Part(
        "pyscipopt.Model",
        "dovetail.models.scip:ScipModel",
        "quadratic, SOS and logical constraints too",
        library="pyscipopt",
        extra="scip",
        recognises=of_class("pyscipopt.scip.Model"),
    ),
    Part(
        "gurobipy.Model",
        "dovetail.models.gurobi:GurobiModel",
        "quadratic terms, SOS and general constraints too",
        library="gurobipy",
        extra="gurobi",
        recognises=of_class("gurobipy._model.Model", "gurobipy.Model"),
    ),
    Part(
        "Pyomo",
        "dovetail.models.pyomo_block:PyomoModel",
        "a ConcreteModel or a Block; quadratic terms and SOS too",
        library="pyomo",
        extra="pyomo",
        recognises=of_class("pyomo.core.base.block.BlockData"),
    ),
    Part(
        "linopy.Model",
        "dovetail.models.linopy_model:LinopyModel",
        "indicators, quadratic objectives and SOS too",
        library="linopy",
        extra="linopy",
        recognises=of_class("linopy.model.Model"),
    ),
)


def foreign_model(model: Any) -> ForeignModel:
    """The reader for `model`; a `ModelError` for an unknown tool."""
    name = MODELS.recognised(model)
    if name is None:
        raise ModelError(
            f"{type(model).__module__}.{type(model).__qualname__} is not a model dovetail can read; give a "
            "model of PySCIPOpt, highspy, gurobipy, Pyomo or linopy, or a dovetail.Problem."
        )
    reader: ForeignModel = MODELS.load(name)(model)
    return reader
