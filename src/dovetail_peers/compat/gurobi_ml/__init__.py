"""gurobi-machinelearning's names: `from dovetail.compat.gurobi_ml import add_predictor_constr`.

>>> from dovetail.compat.gurobi_ml.sklearn import add_mlp_regressor_constr
>>> add_mlp_regressor_constr.__name__
'add_mlp_regressor_constr'

`add_predictor_constr` first tries the functions that users registered for classes of predictors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dovetail.core.errors import OptionError
from dovetail.modelling.predictor_constr import PredictorConstr
from dovetail.version import __version__
from dovetail_peers.compat.gurobi_ml.constr import GurobiPredictorConstr
from dovetail_peers.compat.gurobi_ml.table import EXCEPTIONS, GENERAL, PEER
from dovetail_peers.compat.peer import publish

_add = PEER.function(GENERAL)
_users: dict[type | str, Callable[..., Any]] = {}


def add_predictor_constr(
    gp_model: Any, predictor: Any, input_vars: Any, output_vars: Any = None, **options: Any
) -> Any:
    """Tie outputs to inputs through a predictor, by the function registered for its class, if any."""
    add = _registered(predictor)
    if add is not None:
        return add(gp_model, predictor, input_vars, output_vars, **options)
    entry = PEER.entry_of(predictor)
    own = _add if entry is None else PEER.functions[entry.name]
    return own(gp_model, predictor, input_vars, output_vars, **options)


def _registered(predictor: Any) -> Callable[..., Any] | None:
    """The function for a predictor's class or one above it, by the class or by its name."""
    found = (_users.get(kind) or _users.get(kind.__name__) for kind in type(predictor).__mro__)
    return next((add for add in found if add is not None), None)


def register_predictor_constr(predictor: type | str, predictor_constr: Callable[..., Any]) -> None:
    """Let `predictor_constr(gp_model, predictor, input_vars, output_vars, **options)` take that class.

    It may call any function of these modules, or add variables and constraints to the model itself.
    """
    if isinstance(predictor_constr, type) and issubclass(predictor_constr, PredictorConstr):
        raise OptionError(
            f"{predictor_constr.__name__} is what these modules' functions give back; register one of the "
            "functions, or a function of your own that adds variables and constraints to the model."
        )
    _users[predictor] = predictor_constr


def user_predictors() -> dict[type | str, Callable[..., Any]]:
    """The registered functions by class."""
    return _users


def sklearn_predictors() -> dict[str, Any]:
    """The peer's own choice by the class of an estimator; `add_predictor_constr` takes more than these."""
    others = {"Pipeline", *sklearn_transformers()}
    return {kind: add for kind, add in PEER.by_class("sklearn.").items() if kind not in others}


def sklearn_transformers() -> dict[str, Any]:
    """The same for transformers."""
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
        "modeling.base_predictor_constr": {"AbstractPredictorConstr": GurobiPredictorConstr},
        "exceptions": EXCEPTIONS,
    },
)

__all__ = ["__version__", "add_predictor_constr", "register_predictor_constr"]
