"""OMLT's formulations, which choose how a network is written out: all of them mean the network as it is."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from dovetail.core.errors import OptionError, UnsupportedError
from dovetail_peers.compat.omlt.definition import Definition, by_index, indices

NETWORKS = (
    "FullSpaceNNFormulation",
    "FullSpaceSmoothNNFormulation",
    "ReluBigMFormulation",
    "ReluComplementarityFormulation",
    "ReducedSpaceNNFormulation",
    "ReducedSpaceSmoothNNFormulation",
    "ReluPartitionFormulation",
)

TRANSFORMATIONS = ("bigm", "mbigm", "hull", "custom")
"""What OMLT calls the ways to write a disjunction of leaves out."""


Numbers = Mapping[Any, float] | Iterable[float]


class PyomoFormulation(ABC):
    """What a block asks of a formulation: indices, and to fill the block.

    One of your own derives from it and adds rows of Pyomo's to `self.block`, over its `inputs` and `outputs`.
    """

    def __init__(self) -> None:
        self._held: Any = None

    def _set_block(self, block: Any) -> None:
        self._held = weakref.ref(block)

    @property
    def block(self) -> Any:
        """The block that was built with it; None before."""
        return None if self._held is None else self._held()

    @property
    @abstractmethod
    def input_indexes(self) -> list[Any]:
        """How the block's inputs are indexed."""

    @property
    @abstractmethod
    def output_indexes(self) -> list[Any]:
        """How its outputs are."""

    @abstractmethod
    def _build_formulation(self) -> None:
        """Fill the block, which has its inputs and outputs."""


class Formulation(PyomoFormulation):
    """A definition on its way into a block."""

    def __init__(self, definition: Definition) -> None:
        super().__init__()
        if not isinstance(definition, Definition):
            raise UnsupportedError(
                f"{type(definition).__name__} is no network definition of dovetail.compat.omlt; load "
                "it with dovetail.compat.omlt.io."
            )
        self.model_definition = definition
        _ = self.input_indexes  # layers that are no network are refused where they are passed

    @property
    def input_indexes(self) -> list[Any]:
        """How the block's inputs are indexed."""
        return [*indices(self.model_definition.input_shape)]

    @property
    def output_indexes(self) -> list[Any]:
        """How its outputs are."""
        return [*indices(self.model_definition.output_shape)]

    def _build_formulation(self) -> None:
        self.block.tie(self.model_definition)


class ComplementarityReLUActivation:
    """One of OMLT's ways to write a ReLU out, which the network computes itself."""

    def __init__(self, **options: Any) -> None:
        """`options` say how to write it, too."""


class NetworkFormulation(Formulation):
    """A network; what else is said of it says how to write it out."""

    def __init__(
        self,
        network_structure: Definition,
        layer_constraints: Any = None,
        activation_constraints: Any = None,
        *,
        activation_functions: Any = None,
        split_func: Any = None,
    ) -> None:
        super().__init__(network_structure)
        own = {
            "layer_constraints": layer_constraints,
            "activation_constraints": activation_constraints,
            "activation_functions": activation_functions,
        }
        for option, given in own.items():
            if not all(isinstance(way, ComplementarityReLUActivation) for way in (given or {}).values()):
                raise UnsupportedError(
                    f"{option}= is not taken: the network is evaluated as it is. Give a network (ONNX, or "
                    "torch by dovetail.add_predictor_constr) that computes it."
                )


class GBTBigMFormulation(Formulation):
    """An ensemble of trees."""

    def __init__(self, gbt_model: Definition) -> None:
        super().__init__(gbt_model)


class LinearTreeGDPFormulation(Formulation):
    """A linear tree; its splits are where they are, whatever `epsilon` is."""

    def __init__(self, lt_definition: Definition, transformation: str = "bigm", epsilon: float = 0.0) -> None:
        super().__init__(lt_definition)
        if transformation not in TRANSFORMATIONS:
            raise UnknownTransformationError(
                f"the transformation {transformation!r} is not known; give one of "
                f"{', '.join(TRANSFORMATIONS)}, all of which mean the tree as it is."
            )
        self.transformation, self.epsilon = transformation, epsilon


class LinearTreeHybridBigMFormulation(Formulation):
    """The same without a choice."""

    def __init__(self, lt_definition: Definition, epsilon: float = 0.0) -> None:
        super().__init__(lt_definition)
        self.epsilon = epsilon


class UnknownTransformationError(UnsupportedError, NotImplementedError):
    """Which OMLT's users catch as the built-in that OMLT raises."""


FORMULATIONS: dict[str, dict[str, type[Formulation]]] = {
    "neuralnet": {
        name: type(name, (NetworkFormulation,), {"__doc__": NetworkFormulation.__doc__}) for name in NETWORKS
    },
    "gbt": {"GBTBigMFormulation": GBTBigMFormulation},
    "linear_tree": {
        "LinearTreeGDPFormulation": LinearTreeGDPFormulation,
        "LinearTreeHybridBigMFormulation": LinearTreeHybridBigMFormulation,
    },
}
"""By the module that OMLT has them in."""


class ScalingInterface(ABC):
    """What a block asks of a scaling; one of your own derives from it."""

    @abstractmethod
    def get_scaled_input_expressions(self, input_vars: Mapping[Any, Any]) -> dict[Any, Any]:
        """Inputs of the model as the network sees them."""

    @abstractmethod
    def get_unscaled_output_expressions(self, scaled_output_vars: Mapping[Any, Any]) -> dict[Any, Any]:
        """Outputs of the network as the model has them."""


class OffsetScaling(ScalingInterface):
    """What a network was trained on: inputs and outputs shifted and divided; values by index or in a row."""

    def __init__(
        self, offset_inputs: Numbers, factor_inputs: Numbers, offset_outputs: Numbers, factor_outputs: Numbers
    ) -> None:
        self._inputs = _ScalingPairs("inputs", offset_inputs, factor_inputs)
        self._outputs = _ScalingPairs("outputs", offset_outputs, factor_outputs)

    def get_scaled_input_expressions(self, input_vars: Mapping[Any, Any]) -> dict[Any, Any]:
        """Inputs of the model as the network sees them."""
        return self._inputs.scaled(input_vars)

    def get_unscaled_input_expressions(self, scaled_input_vars: Mapping[Any, Any]) -> dict[Any, Any]:
        """Inputs of the network as the model has them."""
        return self._inputs.unscaled(scaled_input_vars)

    def get_scaled_output_expressions(self, output_vars: Mapping[Any, Any]) -> dict[Any, Any]:
        """Outputs of the model as the network gives them."""
        return self._outputs.scaled(output_vars)

    def get_unscaled_output_expressions(self, scaled_output_vars: Mapping[Any, Any]) -> dict[Any, Any]:
        """Outputs of the network as the model has them."""
        return self._outputs.unscaled(scaled_output_vars)


class _ScalingPairs:
    """Offsets and factors by index."""

    def __init__(self, what: str, offsets: Numbers, factors: Numbers) -> None:
        self._what, self._offset, self._factor = what, by_index(offsets), by_index(factors)
        for index, factor in self._factor.items():
            if not factor > 0:
                raise OptionError(f"factor_{what} is {factor} at index {index}; give a number > 0.")

    def scaled(self, values: Mapping[Any, Any]) -> dict[Any, Any]:
        self._require(values)
        return {k: (value - self._offset[k]) / self._factor[k] for k, value in values.items()}

    def unscaled(self, values: Mapping[Any, Any]) -> dict[Any, Any]:
        self._require(values)
        return {k: value * self._factor[k] + self._offset[k] for k, value in values.items()}

    def _require(self, values: Mapping[Any, Any]) -> None:
        if not set(values) == set(self._offset) == set(self._factor):
            raise OptionError(
                f"the scaling has offset_{self._what} for {[*self._offset]} and factor_{self._what} for "
                f"{[*self._factor]}, but the network's {self._what} are {[*values]}; give one of each."
            )
