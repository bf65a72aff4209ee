"""What OMLT calls a definition: a predictor, the indices of its inputs and outputs, bounds and scaling."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import nn

from dovetail.compat.omlt.by_index import by_index
from dovetail.compat.omlt.layers import DenseLayer, InputLayer
from dovetail.core.errors import OptionError, UnsupportedError
from dovetail.predictors.onnx.file import metered, read_graph

Bounds = Mapping[Any, tuple[float, float]] | Sequence[tuple[float, float]]


class Definition(ABC):
    """A predictor with all that a block of Pyomo's needs to know of it."""

    def __init__(
        self,
        scaling_object: Any = None,
        scaled_input_bounds: Bounds | None = None,
        unscaled_input_bounds: Bounds | None = None,
    ) -> None:
        self.scaling_object = scaling_object
        self.unscaled_input_bounds = _pairs(unscaled_input_bounds)
        """By index; those in a row are the inputs' in their order."""
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
    @abstractmethod
    def predictor(self) -> Any:
        """All that `add_predictor_constr` takes."""

    @property
    @abstractmethod
    def input_shape(self) -> Sequence[int]:
        """How its inputs are indexed."""

    @property
    def output_shape(self) -> Sequence[int] | None:
        """How its outputs are indexed; None where only the predictor's answer tells how many there are."""
        return None


class NetworkDefinition(Definition):
    """A network put together by hand, layer after layer: input and dense layers in a chain."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.layers: list[Any] = []
        self._next: dict[int, Any] = {}

    def add_layer(self, layer: Any) -> None:
        """One more; `add_edge` says what comes before it."""
        if not isinstance(layer, (InputLayer, DenseLayer)):
            raise UnsupportedError(
                f"a layer of class {type(layer).__name__} is not taken, only InputLayer and DenseLayer; give "
                "the network as an ONNX model (load_onnx_neural_network)."
            )
        self.layers.append(layer)

    def add_edge(self, from_layer: Any, to_layer: Any) -> None:
        """`to_layer` reads what `from_layer` gives, and nothing else."""
        if id(from_layer) in self._next or any(to_layer is other for other in self._next.values()):
            raise UnsupportedError("the layers are no chain; give the network as an ONNX model.")
        self._next[id(from_layer)] = to_layer

    @property
    def predictor(self) -> nn.Sequential:
        """The chain in float64, as its weights are given."""
        return nn.Sequential(*(module for layer in self._chain()[1:] for module in layer.modules()))

    @property
    def input_shape(self) -> Sequence[int]:
        """Those of the input layer."""
        return tuple(self._chain()[0].output_size)

    @property
    def output_shape(self) -> Sequence[int]:
        """Those of the last layer."""
        return tuple(self._chain()[-1].output_size)

    def _chain(self) -> list[Any]:
        first = [layer for layer in self.layers if isinstance(layer, InputLayer)]
        if len(first) != 1 or len(self._next) != len(self.layers) - 1 or len(self.layers) < 2:
            raise OptionError("the network needs one InputLayer, and add_edge from each layer to the next.")
        chain = [first[0]]
        while id(chain[-1]) in self._next:
            chain.append(self._next[id(chain[-1])])
        return chain


class TrainedDefinition(Definition):
    """A predictor that was trained elsewhere and stays what it is."""

    def __init__(self, predictor: Any, input_shape: Sequence[int], *args: Any) -> None:
        super().__init__(*args)
        self._predictor, self._input_shape = predictor, input_shape

    @property
    def predictor(self) -> Any:
        """As it was given."""
        return self._predictor

    @property
    def input_shape(self) -> Sequence[int]:
        """All axes of its input but an open one for samples, as OMLT counts them."""
        return self._input_shape

    @property
    def n_inputs(self) -> int:
        """How many inputs there are."""
        return len([*indices(self._input_shape)])


class GradientBoostedTreeModel(TrainedDefinition):
    """Trees from an ONNX model."""

    def __init__(
        self, onnx_model: Any, scaling_object: Any = None, scaled_input_bounds: Bounds | None = None
    ) -> None:
        super().__init__(onnx_model, onnx_input_shape(onnx_model), scaling_object, scaled_input_bounds)
        self.onnx_model = onnx_model


class LinearTreeDefinition(TrainedDefinition):
    """A tree with a linear model in each leaf, asked by its `predict`."""

    def __init__(
        self,
        lt_regressor: Any,
        scaling_object: Any = None,
        scaled_input_bounds: Bounds | None = None,
        unscaled_input_bounds: Bounds | None = None,
    ) -> None:
        if not hasattr(lt_regressor, "predict"):
            raise UnsupportedError(
                "a summary of splits and leaves is not taken; give the linear tree itself, which has predict."
            )
        bounds = scaled_input_bounds, unscaled_input_bounds
        super().__init__(lt_regressor.predict, (int(lt_regressor.n_features_in_),), scaling_object, *bounds)


def onnx_input_shape(model: Any) -> tuple[int, ...]:
    """All axes of the input that have a size: an open one is that of the samples."""
    return tuple(size for size in read_graph(model, None, metered(model, None)).sizes if size is not None)


def indices(shape: Sequence[int]) -> Iterable[Any]:
    """Numbers for one axis, tuples for several."""
    return range(shape[0]) if len(shape) == 1 else itertools.product(*map(range, shape))


def _pairs(bounds: Bounds | None) -> dict[Any, tuple[float, float]] | None:
    if bounds is None:
        return None
    return {k: (float(low), float(high)) for k, (low, high) in by_index(bounds).items()}
