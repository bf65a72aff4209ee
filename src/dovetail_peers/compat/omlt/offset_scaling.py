"""OMLT's scaling of inputs and outputs: (value - offset) / factor, one pair for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from dovetail.core.errors import OptionError
from dovetail_peers.compat.omlt.by_index import by_index

Numbers = Mapping[Any, float] | Iterable[float]


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
        self._inputs = _Pairs("inputs", offset_inputs, factor_inputs)
        self._outputs = _Pairs("outputs", offset_outputs, factor_outputs)

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


class _Pairs:
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
