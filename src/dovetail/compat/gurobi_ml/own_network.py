"""Networks that their owners put together layer by layer: gurobi-machinelearning's `BaseNNConstr`.

Layers are rows of the model, ReLU as Gurobi's larger of two, which dovetail reads like all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, TextIO

import numpy as np

from dovetail.compat.gurobi_ml.activations import Activation, Identity, ReLU, range_of
from dovetail.compat.gurobi_ml.own_constr import AbstractPredictorConstr
from dovetail.core.errors import UnsupportedError


class Layer(AbstractPredictorConstr):
    """activation(input coefs + intercept), or activation(input) without `coefs`.

    An activation of your own has `mip_model(layer)`, which adds rows to `layer.gp_model` over `layer.input`
    and `layer.output`.
    """

    def __init__(
        self,
        gp_model: Any,
        output_vars: Any,
        input_vars: Any,
        activation: Any,
        *,
        coefs: Any = None,
        intercept: Any = 0.0,
        **options: Any,
    ) -> None:
        self.activation, self.coefs, self.intercept = activation, coefs, intercept
        super().__init__(gp_model, input_vars, output_vars, **options)

    def _create_output_vars(self, input_vars: Any, name: str = "act") -> Any:
        """New ones, between the numbers that the activation can give; one of your own may give any."""
        low, high = range_of(self, input_vars)
        own = isinstance(self.activation, Activation)
        lower, upper = self.activation.limits(low, high) if own else (-np.inf, np.inf)
        return self.gp_model.addMVar(low.shape, lb=lower, ub=upper, name=f"{self._name}.{name}")

    def _mip_model(self, **options: Any) -> None:
        self.activation.mip_model(self)

    def get_error(self, eps: float | None = None) -> NoReturn:
        """An `UnsupportedError`: the network has one."""
        raise UnsupportedError("one layer has no error of its own; ask the network for its get_error().")


class BaseNNConstr(AbstractPredictorConstr):
    """Derive from it, and add the network's layers in `_mip_model`: `add_dense_layer` and the like.

    `act_dict` has the activations by name, with those of `activation_models=` in place of their own.
    """

    def __init__(
        self, gp_model: Any, predictor: Any, input_vars: Any, output_vars: Any = None, **options: Any
    ) -> None:
        self.predictor = predictor
        self.act_dict: dict[str, Any] = {"relu": ReLU(), "identity": Identity()}
        self.act_dict |= options.get("activation_models") or {}
        self._layers: list[Layer] = []
        super().__init__(gp_model, input_vars, output_vars, **options)

    def _create_output_vars(self, input_vars: Any, name: str = "out") -> Any:
        """None where the last layer is to make them."""
        known = hasattr(self, "_output_shape")
        return super()._create_output_vars(input_vars, name) if known else None

    @property
    def layers(self) -> list[Layer]:
        """Those that were added, the first one first."""
        return self._layers

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._layers)

    def __getitem__(self, place: int) -> Layer:
        """A layer by its place."""
        return self._layers[place]

    def add_dense_layer(
        self,
        input_vars: Any,
        layer_coefs: Any,
        layer_intercept: Any,
        activation: Activation,
        activation_vars: Any = None,
        **options: Any,
    ) -> Layer:
        """One layer of neurons; its outputs are new variables where none are given."""
        linear = {"coefs": np.asarray(layer_coefs), "intercept": np.asarray(layer_intercept)}
        return self._added(activation_vars, input_vars, activation, **linear, **options)

    def add_activation_layer(
        self, input_vars: Any, activation: Activation, activation_vars: Any = None, **options: Any
    ) -> Layer:
        """An activation alone."""
        return self._added(activation_vars, input_vars, activation, **options)

    _add_dense_layer, _add_activation_layer = add_dense_layer, add_activation_layer

    def _added(self, output_vars: Any, input_vars: Any, activation: Any, **options: Any) -> Layer:
        self._layers.append(Layer(self.gp_model, output_vars, input_vars, activation, **options))
        return self._layers[-1]

    def print_stats(self, abbrev: bool = False, file: TextIO | None = None) -> None:
        """What was added, and by which layer."""
        super().print_stats(abbrev, file)
        for layer in self._layers:
            layer.print_stats(abbrev, file)
