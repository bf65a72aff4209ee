"""gurobi-machinelearning's names: `from dovetail.compat.gurobi_ml import add_predictor_constr`.

>>> from dovetail.compat.gurobi_ml.sklearn import add_mlp_regressor_constr
>>> add_mlp_regressor_constr.__name__
'add_mlp_regressor_constr'
"""

from __future__ import annotations

from typing import Any

from dovetail.compat.gurobi_ml.constr import GurobiPredictorConstr
from dovetail.compat.gurobi_ml.registered import (
    add_predictor_constr,
    register_predictor_constr,
    user_predictors,
)
from dovetail.compat.gurobi_ml.table import EXCEPTIONS, FUNCTIONS, PEER
from dovetail.compat.modules import publish
from dovetail.version import __version__

_MODULES = PEER.modules(FUNCTIONS)


def _by_class(library: str) -> dict[str, Any]:
    """The functions that the peer chooses by the class of a predictor."""
    return {
        kind: _MODULES[entry.module][entry.name]
        for entry in FUNCTIONS
        if entry.module.startswith(library)
        for kind in entry.takes
    }


def sklearn_predictors() -> dict[str, Any]:
    """The peer's own choice by the class of an estimator; `add_predictor_constr` takes more than these."""
    return {kind: add for kind, add in _by_class("sklearn.").items() if kind not in sklearn_transformers()}


def sklearn_transformers() -> dict[str, Any]:
    """The same for what only transforms."""
    return _by_class("sklearn.preprocessing")


publish(__name__, _MODULES)
publish(
    __name__,
    {
        "add_predictor": {"add_predictor_constr": add_predictor_constr},
        "register_user_predictor": {
            "register_predictor_constr": register_predictor_constr,
            "user_predictors": user_predictors,
        },
        "sklearn.predictors_list": {"sklearn_predictors": sklearn_predictors},
        "sklearn.preprocessing": {"sklearn_transformers": sklearn_transformers},
        "modeling.base_predictor_constr": {"AbstractPredictorConstr": GurobiPredictorConstr},
        "exceptions": EXCEPTIONS,
    },
)

__all__ = ["__version__", "add_predictor_constr", "register_predictor_constr"]
