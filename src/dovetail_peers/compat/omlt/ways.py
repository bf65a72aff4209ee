"""OMLT's functions that write layers and activations out, which say how and not what.

Each means one and the same function of the network, which computes it itself: so they can be passed where
OMLT takes them, and do nothing. Those of numbers (and of Pyomo's expressions) can be called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo

from dovetail.core.errors import UnsupportedError


class Way:
    """How OMLT writes something out; there are several ways for one and the same function."""

    def __init__(self, function: Callable[[Any], Any] | None = None, **options: Any) -> None:
        """`options` say how to write it, too."""
        self._function = function

    def __call__(self, *given: Any) -> Any:
        """The function's value; an `UnsupportedError` for those that write rows."""
        if self._function is None:
            raise UnsupportedError(
                "dovetail writes no rows of layers: build the network with OmltBlock().build_formulation; "
                "values of layers are layer.eval_single_layer's."
            )
        return self._function(*given)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + pyo.exp(-x))


def _softplus(x: Any) -> Any:
    return pyo.log(1 + pyo.exp(x))


FUNCTIONS: dict[str, Way] = {
    "linear": Way(lambda x: x),
    "sigmoid": Way(_sigmoid),
    "softplus": Way(_softplus),
    "tanh": Way(pyo.tanh),
}

ACTIVATIONS: dict[str, Any] = {
    "ACTIVATION_FUNCTION_MAP": FUNCTIONS,
    "ComplementarityReLUActivation": Way,
    "bigm_relu_activation_constraint": Way(),
    **{f"{name}_activation_function": way for name, way in FUNCTIONS.items()},
    **{f"{name}_activation_constraint": Way() for name in FUNCTIONS},
}
"""OMLT's own: each is the function that its name says, which the network computes."""


def default_partition_split_func(w: Any, n: int) -> list[Any]:
    """Places of weights, from the least to the greatest, in `n` parts of much the same length."""
    return np.array_split(np.argsort(w), min(n, len(w)))


LAYERS: dict[str, dict[str, Any]] = {
    "full_space": {f"full_space_{kind}_layer": Way() for kind in ("dense", "gnn", "conv2d", "maxpool2d")},
    "reduced_space": {"reduced_space_dense_layer": Way()},
    "partition_based": {
        "partition_based_dense_relu_layer": Way(),
        "default_partition_split_func": default_partition_split_func,
    },
}
"""The same for layers, by module."""
