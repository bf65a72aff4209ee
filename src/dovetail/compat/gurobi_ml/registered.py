"""`add_predictor_constr` and `register_predictor_constr` as gurobi-machinelearning has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dovetail.compat.gurobi_ml.own_pipeline import OwnPipelineConstr
from dovetail.compat.gurobi_ml.table import GENERAL, PEER
from dovetail.core.errors import OptionError
from dovetail.modelling.predictor_constr import PredictorConstr

_add = PEER.function(GENERAL)
_users: dict[type | str, Callable[..., Any]] = {}


def add_predictor_constr(
    gp_model: Any, predictor: Any, input_vars: Any, output_vars: Any = None, **options: Any
) -> Any:
    """Tie outputs to inputs through a predictor, by the function registered for its class, if any."""
    add = _registered(predictor)
    if add is not None:
        return add(gp_model, predictor, input_vars, output_vars, **options)
    if any(_registered(step) for _, step in getattr(predictor, "steps", ())):
        functions = _add_transformer, add_predictor_constr
        return OwnPipelineConstr(gp_model, predictor, input_vars, output_vars, functions, **options)
    entry = PEER.entry_of(predictor)
    own = _add if entry is None else PEER.functions[entry.name]
    return own(gp_model, predictor, input_vars, output_vars, **options)


def _add_transformer(gp_model: Any, transformer: Any, input_vars: Any) -> Any:
    """A step before the last: registered functions of transformers need take no outputs."""
    return (_registered(transformer) or add_predictor_constr)(gp_model, transformer, input_vars)


def _registered(predictor: Any) -> Callable[..., Any] | None:
    """The function for a predictor's class or one above it, by the class or by its name."""
    found = (_users.get(kind) or _users.get(kind.__name__) for kind in type(predictor).__mro__)
    return next((add for add in found if add is not None), None)


def register_predictor_constr(predictor: type | str, predictor_constr: Callable[..., Any]) -> None:
    """Let `predictor_constr(gp_model, predictor, input_vars, output_vars, **options)` take that class.

    It may call any function of these modules, or add variables and rows to the model itself, as classes
    derived from `AbstractPredictorConstr` do.
    """
    if isinstance(predictor_constr, type) and issubclass(predictor_constr, PredictorConstr):
        raise OptionError(
            f"{predictor_constr.__name__} is what these modules' functions give back; register one of the "
            "functions, or a class derived from AbstractPredictorConstr that adds its rows itself."
        )
    _users[predictor] = predictor_constr


def user_predictors() -> dict[type | str, Callable[..., Any]]:
    """What was registered."""
    return _users
