"""OMLT's formulations, which choose how a network is written out: all of them mean the network as it is."""

from __future__ import annotations

from typing import Any

from dovetail.compat.omlt.by_index import indices
from dovetail.compat.omlt.definition import Definition
from dovetail.core.errors import UnsupportedError

NAMES = {
    "neuralnet": (
        "FullSpaceNNFormulation",
        "FullSpaceSmoothNNFormulation",
        "ReducedSpaceNNFormulation",
        "ReducedSpaceSmoothNNFormulation",
        "ReluBigMFormulation",
        "ReluComplementarityFormulation",
        "ReluPartitionFormulation",
    ),
    "gbt": ("GBTBigMFormulation",),
    "linear_tree": ("LinearTreeGDPFormulation", "LinearTreeHybridBigMFormulation"),
}

_OWN_FUNCTIONS = ("layer_constraints", "activation_constraints", "activation_functions")
"""Options that would change what a network computes."""


class Way:
    """How OMLT writes an activation out; there are several for one and the same function."""

    def __init__(self, **options: Any) -> None:
        """What is said of it says how to write it, too."""


ACTIVATIONS: dict[str, Any] = {
    "ComplementarityReLUActivation": Way,
    "bigm_relu_activation_constraint": Way(),
    "linear_activation_constraint": Way(),
    "sigmoid_activation_constraint": Way(),
    "softplus_activation_constraint": Way(),
    "tanh_activation_constraint": Way(),
    "sigmoid_activation_function": Way(),
    "softplus_activation_function": Way(),
    "tanh_activation_function": Way(),
}
"""OMLT's own: each is the function that its name says, which the network computes."""


class Formulation:
    """A definition on its way into a block; what else is said of it says how to write it out."""

    def __init__(self, network_structure: Definition, *ways: Any, **named_ways: Any) -> None:
        if not isinstance(network_structure, Definition):
            raise UnsupportedError(
                f"{type(network_structure).__name__} is no network definition of dovetail.compat.omlt; load "
                "it with dovetail.compat.omlt.io."
            )
        for option in _OWN_FUNCTIONS:
            given = named_ways.get(option) or {}
            if not all(isinstance(way, Way) for way in given.values()):
                raise UnsupportedError(
                    f"{option}= is not taken: the network is evaluated as it is. Give a network (ONNX, or "
                    "torch by dovetail.add_predictor_constr) that computes it."
                )
        self.definition = network_structure
        _ = self.input_indexes  # layers that are no network are refused where they are passed

    @property
    def input_indexes(self) -> list[Any]:
        """How the block's inputs are indexed."""
        return [*indices(self.definition.input_shape)]


FORMULATIONS: dict[str, dict[str, type[Formulation]]] = {
    module: {name: type(name, (Formulation,), {"__doc__": "The network as it is."}) for name in names}
    for module, names in NAMES.items()
}
"""By the module that OMLT has them in."""
