"""dovetail: mixed-integer optimisation with trained predictors, which are not rewritten as constraints.

    import dovetail as dt

    mip = dt.Mip(cost, A, row_lower, row_upper, lower, upper, integer)
    problem = dt.Problem(mip)
    problem.add_predictor(net, inputs, outputs)
    result = dt.solve(problem)

Public names are loaded when first used: importing dovetail imports neither torch nor scipy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dovetail.core.words import did_you_mean
from dovetail.methods import METHODS
from dovetail.nn import SUB_SOLVERS
from dovetail.paper import PARTS
from dovetail.version import __version__

_PUBLIC = {
    "Box": "dovetail.predictors.domains",
    "Hull": "dovetail.predictors.domains",
    "Near": "dovetail.predictors.domains",
    "Region": "dovetail.core.domain",
    "Score": "dovetail.predictors.domains",
    "Block": "dovetail.core.block",
    "BlockPrices": "dovetail.methods.component_prices.prices",
    "CVaR": "dovetail.predictors.risk",
    "Certificate": "dovetail.certificates.certificate",
    "Conflict": "dovetail.core.conflict",
    "ConstraintTable": "dovetail.run.constraints",
    "DovetailError": "dovetail.core.errors",
    "EngineError": "dovetail.core.errors",
    "Ensemble": "dovetail.predictors.ensemble",
    "Event": "dovetail.run.monitor",
    "Family": "dovetail.core.family_arrays",
    "FamilyRow": "dovetail.core.family_arrays",
    "FileLimits": "dovetail.core.files",
    "Function": "dovetail.predictors.function",
    "MeanDeviation": "dovetail.predictors.risk",
    "MeanSpread": "dovetail.predictors.risk",
    "Mip": "dovetail.core.mip",
    "MissingDependencyError": "dovetail.core.errors",
    "ModelError": "dovetail.core.errors",
    "OptionError": "dovetail.core.errors",
    "ParetoFront": "dovetail.sweeping.pareto",
    "PredictorConstr": "dovetail.modelling.predictor_constr",
    "PredictorError": "dovetail.core.errors",
    "Problem": "dovetail.core.problem",
    "Product": "dovetail.predictors.derived",
    "Quantiles": "dovetail.predictors.risk",
    "Result": "dovetail.run.result",
    "RuleList": "dovetail.predictors.rule_list",
    "SecondOpinion": "dovetail.run.second_opinion",
    "ShardedResult": "dovetail.sharding.solve_shards",
    "Square": "dovetail.predictors.derived",
    "Status": "dovetail.run.result",
    "StopReason": "dovetail.run.budget",
    "SweepResult": "dovetail.sweeping.sweep_result",
    "Template": "dovetail.core.template",
    "Trace": "dovetail.run.trace",
    "UnsupportedError": "dovetail.core.errors",
    "Violation": "dovetail.core.check",
    "WhatIf": "dovetail.run.constraints",
    "Worst": "dovetail.predictors.risk",
    "add_predictor_constr": "dovetail.modelling.add_predictor_constr",
    "categories_of": "dovetail.predictors",
    "check": "dovetail.modelling.snapshot",
    "compare": "dovetail.report.page.compare_page",
    "load_predictor": "dovetail.predictors.files",
    "pareto": "dovetail.sweeping.pareto",
    "read": "dovetail.models.files",
    "read_certificate": "dovetail.certificates.certificate",
    "register_engine": "dovetail.mip",
    "register_method": "dovetail.methods",
    "register_predictor": "dovetail.core.predictor",
    "resume": "dovetail.solving.resume",
    "solve": "dovetail.solving.solve",
    "solve_shards": "dovetail.sharding.solve_shards",
    "sweep": "dovetail.sweeping.sweep",
}
"""The places of the public names that are in no table of parts."""
_PUBLIC |= METHODS.public_names() | SUB_SOLVERS.public_names() | PARTS

_NOT_AT_THE_TOP = frozenset(PARTS) | {
    "BlockPrices", "IntegerLocalSearch", "Neighbourhood", "SequentialLinear",  # single parts of auto
    "register_engine", "register_method", "register_predictor",  # extension points
    "Block", "Certificate", "Conflict", "ConstraintTable", "Event", "Family", "FamilyRow", "ParetoFront",
    "PredictorConstr", "ShardedResult", "SweepResult", "Template", "Trace", "Violation", "WhatIf",  # returned
    "EngineError", "MissingDependencyError", "ModelError", "OptionError", "PredictorError",
    "UnsupportedError", "FileLimits", "categories_of", "read_certificate",
}  # fmt: skip
"""Names that work and that `dir(dovetail)` leaves out: a user of the default method does not need them."""

__all__ = ["__version__", *sorted({*_PUBLIC} - _NOT_AT_THE_TOP)]

import_module("dovetail.predictors")  # teaches core which foreign objects are predictors
import_module("dovetail.solving.solve")  # a light import: the first solve sets its signal handlers early


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'dovetail' has no attribute {name!r}{did_you_mean(name, _PUBLIC)}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:  # type checkers do not look names up in tables; the tests compare the two
    from dovetail.certificates.certificate import Certificate as Certificate
    from dovetail.certificates.certificate import read_certificate as read_certificate
    from dovetail.core.block import Block as Block
    from dovetail.core.check import Violation as Violation
    from dovetail.core.conflict import Conflict as Conflict
    from dovetail.core.domain import Region as Region
    from dovetail.core.errors import DovetailError as DovetailError
    from dovetail.core.errors import EngineError as EngineError
    from dovetail.core.errors import MissingDependencyError as MissingDependencyError
    from dovetail.core.errors import ModelError as ModelError
    from dovetail.core.errors import OptionError as OptionError
    from dovetail.core.errors import PredictorError as PredictorError
    from dovetail.core.errors import UnsupportedError as UnsupportedError
    from dovetail.core.family_arrays import Family as Family
    from dovetail.core.family_arrays import FamilyRow as FamilyRow
    from dovetail.core.files import FileLimits as FileLimits
    from dovetail.core.mip import Mip as Mip
    from dovetail.core.predictor import register_predictor as register_predictor
    from dovetail.core.problem import Problem as Problem
    from dovetail.core.template import Template as Template
    from dovetail.coupling.penalty import BalancedPenalty as BalancedPenalty
    from dovetail.coupling.penalty import FixedPenalty as FixedPenalty
    from dovetail.coupling.penalty import IncreasingPenalty as IncreasingPenalty
    from dovetail.methods import register_method as register_method
    from dovetail.methods.auto import Auto as Auto
    from dovetail.methods.component_prices.prices import BlockPrices as BlockPrices
    from dovetail.methods.dual_decomposition import DualDecomposition as DualDecomposition
    from dovetail.methods.integer_search import IntegerLocalSearch as IntegerLocalSearch
    from dovetail.methods.neighbourhood import Neighbourhood as Neighbourhood
    from dovetail.methods.sequential_linear import SequentialLinear as SequentialLinear
    from dovetail.mip import register_engine as register_engine
    from dovetail.modelling.add_predictor_constr import add_predictor_constr as add_predictor_constr
    from dovetail.modelling.predictor_constr import PredictorConstr as PredictorConstr
    from dovetail.modelling.snapshot import check as check
    from dovetail.models.files import read as read
    from dovetail.nn.barrier import LogBarrier as LogBarrier
    from dovetail.nn.projected_gradient import ProjectedGradient as ProjectedGradient
    from dovetail.predictors import categories_of as categories_of
    from dovetail.predictors.derived import Product as Product
    from dovetail.predictors.derived import Square as Square
    from dovetail.predictors.domains import Box as Box
    from dovetail.predictors.domains import Hull as Hull
    from dovetail.predictors.domains import Near as Near
    from dovetail.predictors.domains import Score as Score
    from dovetail.predictors.ensemble import Ensemble as Ensemble
    from dovetail.predictors.files import load_predictor as load_predictor
    from dovetail.predictors.function import Function as Function
    from dovetail.predictors.risk import CVaR as CVaR
    from dovetail.predictors.risk import MeanDeviation as MeanDeviation
    from dovetail.predictors.risk import MeanSpread as MeanSpread
    from dovetail.predictors.risk import Quantiles as Quantiles
    from dovetail.predictors.risk import Worst as Worst
    from dovetail.predictors.rule_list import RuleList as RuleList
    from dovetail.report.page.compare_page import compare as compare
    from dovetail.run.budget import StopReason as StopReason
    from dovetail.run.constraints import ConstraintTable as ConstraintTable
    from dovetail.run.constraints import WhatIf as WhatIf
    from dovetail.run.monitor import Event as Event
    from dovetail.run.result import Multipliers as Multipliers
    from dovetail.run.result import Result as Result
    from dovetail.run.result import Status as Status
    from dovetail.run.second_opinion import SecondOpinion as SecondOpinion
    from dovetail.run.trace import Trace as Trace
    from dovetail.sharding.solve_shards import ShardedResult as ShardedResult
    from dovetail.sharding.solve_shards import solve_shards as solve_shards
    from dovetail.solving.resume import resume as resume
    from dovetail.solving.solve import solve as solve
    from dovetail.sweeping.pareto import ParetoFront as ParetoFront
    from dovetail.sweeping.pareto import pareto as pareto
    from dovetail.sweeping.sweep import sweep as sweep
    from dovetail.sweeping.sweep_result import SweepResult as SweepResult
    from dovetail_study.big_m.method import BigM as BigM
    from dovetail_study.single_step_gradient import SingleStepGradient as SingleStepGradient
