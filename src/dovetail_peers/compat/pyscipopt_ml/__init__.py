"""PySCIPOpt-ML's names: `from dovetail.compat.pyscipopt_ml.add_predictor import add_predictor_constr`.

>>> from dovetail.compat.pyscipopt_ml.torch import add_sequential_constr
>>> add_sequential_constr.__name__
'add_sequential_constr'
"""

from __future__ import annotations

from typing import Any, cast

from dovetail.version import __version__
from dovetail_peers.compat.modules import publish
from dovetail_peers.compat.pyscipopt_ml.table import EXCEPTIONS, GENERAL, PEER, ScipPredictorConstr

_add = PEER.function(GENERAL)


def add_predictor_constr(
    scip_model: Any,
    predictor: Any,
    input_vars: Any,
    output_vars: Any = None,
    unique_naming_prefix: str = "p_",
    **options: Any,
) -> ScipPredictorConstr:
    """Tie outputs to inputs through a predictor, by the function that the peer sends it to."""
    entry = PEER.entry_of(predictor)
    add = _add if entry is None else PEER.functions[entry.name]
    made = add(scip_model, predictor, input_vars, output_vars, unique_naming_prefix, **options)
    return cast(ScipPredictorConstr, made)


def sklearn_convertors() -> dict[str, Any]:
    """The peer's own choice by the class of an estimator; `add_predictor_constr` takes more than these."""
    return dict(PEER.by_class("sklearn."))


publish(__name__, PEER.modules())
publish(
    __name__,
    {
        "add_predictor": {"add_predictor_constr": add_predictor_constr},
        "registered_predictors": {"sklearn_convertors": sklearn_convertors},
        "modelling.base_predictor_constraint": {"AbstractPredictorConstr": ScipPredictorConstr},
        "exceptions": EXCEPTIONS,
    },
)

__all__ = ["__version__", "add_predictor_constr", "sklearn_convertors"]
