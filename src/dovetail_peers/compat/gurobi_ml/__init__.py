"""gurobi-machinelearning's names: `from dovetail.compat.gurobi_ml import add_predictor_constr`.

>>> from dovetail.compat.gurobi_ml.sklearn import add_mlp_regressor_constr
>>> add_mlp_regressor_constr.__name__
'add_mlp_regressor_constr'
"""

from __future__ import annotations

from typing import Any

from dovetail.version import __version__
from dovetail_peers.compat.gurobi_ml.constr import AbstractPredictorConstr
from dovetail_peers.compat.gurobi_ml.registered import (
    add_predictor_constr,
    register_predictor_constr,
    user_predictors,
)
from dovetail_peers.compat.gurobi_ml.table import EXCEPTIONS, PEER
from dovetail_peers.compat.modules import publish


def sklearn_predictors() -> dict[str, Any]:
    """The peer's own choice by the class of an estimator; `add_predictor_constr` takes more than these."""
    transformers = sklearn_transformers()
    return {kind: add for kind, add in PEER.by_class("sklearn.").items() if kind not in transformers}


def sklearn_transformers() -> dict[str, Any]:
    """The same for what only transforms."""
    return dict(PEER.by_class("sklearn.preprocessing"))


publish(__name__, PEER.modules())
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
        "modeling.base_predictor_constr": {"AbstractPredictorConstr": AbstractPredictorConstr},
        "exceptions": EXCEPTIONS,
    },
)

__all__ = ["__version__", "add_predictor_constr", "register_predictor_constr"]
