"""OMLT's term definition: a predictor, the indices of its inputs and outputs, bounds and scaling."""

from __future__ import annotations

import itertools
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from dovetail.core.errors import OptionError, UnsupportedError
from dovetail.core.predictor import as_predictor
from dovetail.predictors.onnx.file import metered, read_graph
from dovetail.predictors.onnx.module import OnnxGraph

Bounds = Mapping[Any, tuple[float, float]] | Sequence[tuple[float, float]]


Value = TypeVar("Value")


class Definition:
    """A predictor with the properties that a Pyomo block needs."""

    def __init__(
        self,
        predictor: Any,
        input_shape: Sequence[int],
        scaling_object: Any = None,
        scaled_input_bounds: Bounds | None = None,
        unscaled_input_bounds: Bounds | None = None,
    ) -> None:
        self._predictor, self._input_shape = predictor, input_shape
        self.scaling_object = scaling_object
        self.unscaled_input_bounds = _pairs(unscaled_input_bounds)
        """By index; values in a row follow the order of the inputs."""
        given = scaled_input_bounds is not None
        self.scaled_input_bounds = _pairs(scaled_input_bounds) if given else self._scaled()

    def _scaled(self) -> dict[Any, tuple[float, float]] | None:
        bounds = self.unscaled_input_bounds
        if bounds is None or self.scaling_object is None:
            return bounds
        low, high = (
            self.scaling_object.get_scaled_input_expressions({k: pair[side] for k, pair in bounds.items()})
            for side in (0, 1)
        )
        return {k: (low[k], high[k]) for k in bounds}

    @property
    def predictor(self) -> Any:
        """All predictors of `add_predictor_constr`; predictors trained elsewhere are not changed."""
        return self._predictor

    @property
    def input_shape(self) -> Sequence[int]:
        """All axes of its input except an open axis for samples, as in OMLT."""
        return self._input_shape

    @property
    def output_shape(self) -> Sequence[int]:
        """The indices of its outputs."""
        return self._answered_shape

    @cached_property
    def _answered_shape(self) -> tuple[int, ...]:
        """As many outputs as the predictor gives, after a 0 if the inputs have one."""
        shape, size = self._input_shape, int(np.prod(self._input_shape))
        count = int(as_predictor(self._predictor).predict(np.zeros((1, size))).shape[1])
        return (1, count) if len(shape) > 1 and shape[0] == 1 else (count,)

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return int(np.prod(self.input_shape))

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(np.prod(self.output_shape))

    @property
    def nodes(self) -> int:
        """Number of edges of a graph that the predictor reads after its inputs; 0 if there is none."""
        return 0

    @property
    def layers(self) -> Iterator[Any]:
        """Raises an `UnsupportedError`: only networks have layers."""
        raise UnsupportedError("trees have no layers; the tree itself is what is solved.")


class GradientBoostedTreeModel(Definition):
    """Trees from an ONNX model."""

    def __init__(
        self, onnx_model: Any, scaling_object: Any = None, scaled_input_bounds: Bounds | None = None
    ) -> None:
        shape = input_shape_of(onnx_graph(onnx_model))
        super().__init__(onnx_model, shape, scaling_object, scaled_input_bounds)
        self.onnx_model = onnx_model


class LinearTreeDefinition(Definition):
    """A tree with a linear model in each leaf, evaluated by its `predict`."""

    def __init__(
        self,
        lt_regressor: Any,
        scaling_object: Any = None,
        scaled_input_bounds: Bounds | None = None,
        unscaled_input_bounds: Bounds | None = None,
    ) -> None:
        scaled = scaling_object, scaled_input_bounds, unscaled_input_bounds
        self.is_scaled = scaling_object is not None or scaled_input_bounds is not None
        if not hasattr(lt_regressor, "predict"):
            raise OptionError(
                f"a {type(lt_regressor).__name__} has no predict; give the linear tree itself, not a summary."
            )
        super().__init__(lt_regressor.predict, (int(lt_regressor.n_features_in_),), *scaled)


def onnx_graph(model: Any) -> OnnxGraph:
    """A file or a `ModelProto`."""
    return read_graph(model, None, metered(model, None))


def input_shape_of(graph: OnnxGraph) -> tuple[int, ...]:
    """All axes of the input that have a size: an open axis counts samples."""
    return tuple(size for size in graph.sizes if size is not None)


def _pairs(bounds: Bounds | None) -> dict[Any, tuple[float, float]] | None:
    if bounds is None:
        return None
    return {k: (float(low), float(high)) for k, (low, high) in by_index(bounds).items()}


def by_index(given: Mapping[Any, Value] | Iterable[Value]) -> dict[Any, Value]:
    """A user's dictionary, by index.

    >>> by_index([0.5, 2.0]), by_index({(0, 1): 3.0})
    ({0: 0.5, 1: 2.0}, {(0, 1): 3.0})
    """
    return dict(given) if isinstance(given, Mapping) else dict(enumerate(given))


def indices(shape: Sequence[int]) -> Iterable[Any]:
    """Numbers for one axis, tuples for several."""
    return range(shape[0]) if len(shape) == 1 else itertools.product(*map(range, shape))


NETWORKS = (
    "FullSpaceNNFormulation",
    "FullSpaceSmoothNNFormulation",
    "ReluBigMFormulation",
    "ReluComplementarityFormulation",
    "ReducedSpaceNNFormulation",
    "ReducedSpaceSmoothNNFormulation",
    "ReluPartitionFormulation",
)

Numbers = Mapping[Any, float] | Iterable[float]


class Formulation:
    """A predictor definition from which a block is built."""

    def __init__(self, definition: Definition) -> None:
        self._held: weakref.ref[Any] | None = None
        if not isinstance(definition, Definition):
            raise UnsupportedError(
                f"{type(definition).__name__} is no network definition of dovetail.compat.omlt; load "
                "it with dovetail.compat.omlt.io."
            )
        self.model_definition = definition
        _ = self.input_indexes  # objects that are not networks are refused when they are passed

    @property
    def input_indexes(self) -> list[Any]:
        """How the block's inputs are indexed."""
        return [*indices(self.model_definition.input_shape)]

    @property
    def output_indexes(self) -> list[Any]:
        """The scaling of its outputs."""
        return [*indices(self.model_definition.output_shape)]

    @property
    def block(self) -> Any:
        """The block that was built with it; None before that."""
        return None if self._held is None else self._held()

    def build(self, block: Any) -> None:
        """Fill a block that has its inputs and outputs."""
        self._held = weakref.ref(block)
        block.tie(self.model_definition)


class ComplementarityReLUActivation:
    """One of OMLT's ways to write a ReLU; dovetail evaluates the network itself."""

    def __init__(self, **options: Any) -> None:
        """`options` for formulations are ignored."""


class NetworkFormulation(Formulation):
    """A network; further arguments describe a formulation and are ignored."""

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
                    f"{option}= is not supported: the network is evaluated as it "
                    f"is. Give a network (ONNX, or "
                    "torch by dovetail.add_predictor_constr) that computes it."
                )


class GBTBigMFormulation(Formulation):
    """An ensemble of trees."""

    def __init__(self, gbt_model: Definition) -> None:
        super().__init__(gbt_model)


class LinearTreeGDPFormulation(Formulation):
    """A linear tree; `transformation` and `epsilon` are ignored."""

    def __init__(self, lt_definition: Definition, transformation: str = "bigm", epsilon: float = 0.0) -> None:
        super().__init__(lt_definition)
        self.transformation, self.epsilon = transformation, epsilon


class LinearTreeHybridBigMFormulation(Formulation):
    """The same without options."""

    def __init__(self, lt_definition: Definition, epsilon: float = 0.0) -> None:
        super().__init__(lt_definition)
        self.epsilon = epsilon


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
"""By OMLT's module names."""


class ScalingInterface(ABC):
    """The interface of a scaling; users may derive from it."""

    @abstractmethod
    def get_scaled_input_expressions(self, input_vars: Mapping[Any, Any]) -> dict[Any, Any]:
        """Inputs of the model in the units of the network."""

    @abstractmethod
    def get_unscaled_output_expressions(self, scaled_output_vars: Mapping[Any, Any]) -> dict[Any, Any]:
        """Outputs of the network in the units of the model."""


class OffsetScaling(ScalingInterface):
    """The scaling used in training: inputs and outputs shifted and divided; values by index or in a row."""

    def __init__(
        self, offset_inputs: Numbers, factor_inputs: Numbers, offset_outputs: Numbers, factor_outputs: Numbers
    ) -> None:
        self._inputs = _ScalingPairs("inputs", offset_inputs, factor_inputs)
        self._outputs = _ScalingPairs("outputs", offset_outputs, factor_outputs)

    def get_scaled_input_expressions(self, input_vars: Mapping[Any, Any]) -> dict[Any, Any]:
        """Inputs of the model in the units of the network."""
        return self._inputs.scaled(input_vars)

    def get_unscaled_input_expressions(self, scaled_input_vars: Mapping[Any, Any]) -> dict[Any, Any]:
        """Inputs of the network in the units of the model."""
        return self._inputs.unscaled(scaled_input_vars)

    def get_unscaled_output_expressions(self, scaled_output_vars: Mapping[Any, Any]) -> dict[Any, Any]:
        """Outputs of the network in the units of the model."""
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
