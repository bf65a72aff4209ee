"""gurobi-machinelearning's names: `from dovetail.compat.gurobi_ml import add_predictor_constr`.

>>> from dovetail.compat.gurobi_ml.sklearn import add_mlp_regressor_constr
>>> add_mlp_regressor_constr.__name__
'add_mlp_regressor_constr'

`add_predictor_constr` asks the functions that users registered for classes of predictors first; a pipeline
with such a step is a chain, each step by its own function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TextIO

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError
from dovetail.modelling.predictor_constr import PredictorConstr
from dovetail.version import __version__
from dovetail_peers.compat.gurobi_ml.constr import AbstractPredictorConstr
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


class OwnPipelineConstr:
    """What the functions of the steps gave back, one after the other.

    What is verified is each of them; `get_error` compares with the pipeline itself.
    """

    def __init__(
        self,
        gp_model: Any,
        pipeline: Any,
        input_vars: Any,
        output_vars: Any,
        functions: tuple[Callable[..., Any], Callable[..., Any]],
        **options: Any,
    ) -> None:
        self.gp_model, self.predictor = gp_model, pipeline
        self._steps: list[Any] = []
        *before, last = [step for _, step in pipeline.steps if step not in (None, "passthrough")]
        add_transformer, add = functions
        at = input_vars
        try:
            for step in before:
                self._steps.append(add_transformer(gp_model, step, at))
                at = self._steps[-1].output
            self._steps.append(add(gp_model, last, at, output_vars, **options))
        except Exception:
            self.remove()
            raise

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, place: int) -> Any:
        """What the function of a step gave back."""
        return self._steps[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._steps)

    @property
    def input(self) -> Any:
        """(n_samples, n_features) variables."""
        return self._steps[0].input

    @property
    def output(self) -> Any:
        """(n_samples, n_outputs) variables."""
        return self._steps[-1].output

    @property
    def input_values(self) -> Any:
        """Values of the inputs, at the point of the model's last solve."""
        return self._steps[0].input_values

    @property
    def output_values(self) -> Any:
        """The same of the outputs."""
        return self._steps[-1].output_values

    def get_error(self, eps: float | None = None) -> FloatArray:
        """(n_samples, n_outputs) |what the pipeline says of the inputs - the outputs|."""
        values = np.asarray(self.output_values, dtype=np.float64)
        said = np.asarray(self.predictor.predict(self.input_values), dtype=np.float64)
        return np.asarray(np.abs(said.reshape(values.shape) - values))

    def print_stats(self, abbrev: bool = False, file: TextIO | None = None) -> None:
        """Those of all steps."""
        for step in self._steps:
            step.print_stats(file=file)

    def remove(self) -> None:
        """Take all steps out again, the last one first."""
        while self._steps:
            self._steps.pop().remove()


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
