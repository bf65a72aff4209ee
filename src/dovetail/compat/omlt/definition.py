"""What OMLT calls a definition: a predictor, the indices of its inputs and outputs, bounds and scaling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from torch import nn

from dovetail.compat.omlt.by_index import by_index, indices
from dovetail.compat.omlt.graph_layer import GNNLayer, GraphNetwork
from dovetail.compat.omlt.layers import InputLayer, Layer
from dovetail.compat.omlt.linear_tree_nodes import NOT_A_SUMMARY, LinearTreeNodes
from dovetail.core.errors import OptionError, UnsupportedError
from dovetail.predictors.onnx.file import metered, read_graph
from dovetail.predictors.onnx.graph import Graph

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

    @property
    def nodes(self) -> int:
        """Those of a graph whose edges the predictor reads behind its inputs; 0 where there is none."""
        return 0


class NetworkDefinition(Definition):
    """A network put together by hand, layer after layer, in a chain."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._layers: list[Layer] = []
        self._edges: list[tuple[Layer, Layer]] = []

    def add_layer(self, layer: Layer) -> None:
        """One more; `add_edge` says what comes before it."""
        if not isinstance(layer, Layer):
            raise UnsupportedError(
                f"a layer of class {type(layer).__name__} is not taken, only those of "
                "dovetail.compat.omlt.neuralnet.layer; give the network as an ONNX model "
                "(load_onnx_neural_network)."
            )
        self._layers.append(layer)

    def add_edge(self, from_layer: Layer, to_layer: Layer) -> None:
        """`to_layer` reads what `from_layer` gives, and nothing else."""
        for layer in (from_layer, to_layer):
            if not any(layer is own for own in self._layers):
                raise OptionError(f"{layer!r} is no layer of this network; call add_layer with it first.")
        self._edges.append((from_layer, to_layer))

    @property
    def predictor(self) -> nn.Module:
        """The chain in float64, as its weights are given."""
        layers = self._chain()[1:]
        if self.nodes:
            return GraphNetwork(layers, self.nodes)
        return nn.Sequential(*(module for layer in layers for module in layer.modules()))

    @property
    def nodes(self) -> int:
        """Those of the graph that layers read."""
        return next((layer.N for layer in self._layers if isinstance(layer, GNNLayer)), 0)

    @property
    def input_shape(self) -> Sequence[int]:
        """Those of the input layer."""
        return tuple(self._chain()[0].output_size)

    @property
    def output_shape(self) -> Sequence[int]:
        """Those of the last layer."""
        return tuple(self._chain()[-1].output_size)

    @property
    def layers(self) -> Iterator[Layer]:
        """From the first to the last."""
        return iter(self._chain())

    @property
    def input_layers(self) -> Iterator[Layer]:
        """Those that no layer is before."""
        return (layer for layer in self._layers if not any(self.predecessors(layer)))

    @property
    def output_layers(self) -> Iterator[Layer]:
        """Those that no layer is behind."""
        return (layer for layer in self._layers if not any(self.successors(layer)))

    def predecessors(self, layer: Layer) -> Iterator[Layer]:
        """Those right before a layer."""
        return (before for before, after in self._edges if after is layer)

    def successors(self, layer: Layer) -> Iterator[Layer]:
        """Those right behind a layer."""
        return (after for before, after in self._edges if before is layer)

    def _chain(self) -> list[Layer]:
        """The layers in their order; an `OptionError` where they are no chain."""
        chain = [*self.input_layers][:1]
        while chain and len(chain) <= len(self._layers):
            behind = [*self.successors(chain[-1])]
            if len(behind) != 1:
                break
            chain += behind
        if len(chain) != len(self._layers) or len(self._edges) != len(chain) - 1 or len(chain) < 2:
            raise OptionError(
                f"{len(self._layers)} layers with {len(self._edges)} edges are no chain: the network needs "
                "one InputLayer, add_edge from each layer to the next, and one last layer."
            )
        if not isinstance(chain[0], InputLayer):
            raise OptionError(f"the first layer is {chain[0]!r}; the network needs one InputLayer.")
        return chain


class TrainedDefinition(Definition):
    """A predictor that was trained elsewhere and stays what it is."""

    def __init__(
        self,
        predictor: Any,
        input_shape: Sequence[int],
        *args: Any,
        list_layers: Callable[[], list[Layer]] | None = None,
    ) -> None:
        super().__init__(*args)
        self._predictor, self._input_shape, self._list_layers = predictor, input_shape, list_layers

    @property
    def layers(self) -> Iterator[Layer]:
        """From the first to the last; an `UnsupportedError` where they are others than OMLT's."""
        if self._list_layers is None:
            raise UnsupportedError("trees have no layers; the tree itself is what is solved.")
        return iter(self._list_layers())

    @property
    def predictor(self) -> Any:
        """As it was given."""
        return self._predictor

    @property
    def input_shape(self) -> Sequence[int]:
        """All axes of its input but an open one for samples, as OMLT counts them."""
        return self._input_shape

    @property
    def output_shape(self) -> Sequence[int] | None:
        """Those of the last layer, where layers can be listed."""
        try:
            return tuple([*self.layers][-1].output_size)
        except UnsupportedError:
            return None

    @property
    def n_inputs(self) -> int:
        """How many inputs there are."""
        return len([*indices(self._input_shape)])


class GradientBoostedTreeModel(TrainedDefinition):
    """Trees from an ONNX model."""

    def __init__(
        self, onnx_model: Any, scaling_object: Any = None, scaled_input_bounds: Bounds | None = None
    ) -> None:
        shape = input_shape_of(onnx_graph(onnx_model))
        super().__init__(onnx_model, shape, scaling_object, scaled_input_bounds)
        self.onnx_model = onnx_model


class LinearTreeDefinition(TrainedDefinition):
    """A tree with a linear model in each leaf, asked by its `predict`; or the summary of one."""

    n_outputs = 1

    def __init__(
        self,
        lt_regressor: Any,
        scaling_object: Any = None,
        scaled_input_bounds: Bounds | None = None,
        unscaled_input_bounds: Bounds | None = None,
    ) -> None:
        scaled = scaling_object, scaled_input_bounds, unscaled_input_bounds
        self.is_scaled = scaling_object is not None or scaled_input_bounds is not None
        if hasattr(lt_regressor, "predict"):
            super().__init__(lt_regressor.predict, (int(lt_regressor.n_features_in_),), *scaled)
            self._summary = getattr(lt_regressor, "summary", None)
            return
        if not isinstance(lt_regressor, Mapping):
            raise OptionError(f"{NOT_A_SUMMARY} This is a {type(lt_regressor).__name__}.")
        nodes = LinearTreeNodes.of(lt_regressor, None)
        super().__init__(nodes.predict, (nodes.features,), *scaled)
        self._summary = lambda: lt_regressor

    @cached_property
    def _nodes(self) -> LinearTreeNodes:
        if self._summary is None:
            raise UnsupportedError("this tree has no summary() that would list its splits and leaves.")
        return LinearTreeNodes.of(self._summary(), self.scaled_input_bounds)

    @property
    def splits(self) -> dict[int, dict[Any, Any]]:
        """By number, below the number of the tree, which is 0."""
        return {0: self._nodes.splits}

    @property
    def leaves(self) -> dict[int, dict[Any, Any]]:
        """The same of leaves; `bounds` has the box of each."""
        return {0: self._nodes.leaves}

    @property
    def thresholds(self) -> dict[int, dict[Any, Any]]:
        """The same of the columns that are split: each split's threshold, least first."""
        return {0: self._nodes.thresholds}


def onnx_graph(model: Any) -> Graph:
    """A file or a `ModelProto` as it is read."""
    return read_graph(model, None, metered(model, None))


def input_shape_of(graph: Graph) -> tuple[int, ...]:
    """All axes of the input that have a size: an open one is that of the samples."""
    return tuple(size for size in graph.sizes if size is not None)


def _pairs(bounds: Bounds | None) -> dict[Any, tuple[float, float]] | None:
    if bounds is None:
        return None
    return {k: (float(low), float(high)) for k, (low, high) in by_index(bounds).items()}
