"""Networks as OMLT has them: layers and what comes before each, put together by hand or read from a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from torch import nn

from dovetail.core.errors import OptionError, UnsupportedError
from dovetail_peers.compat.omlt.definition import (
    Bounds,
    Definition,
    answered_shape,
    by_index,
    input_shape_of,
    onnx_graph,
)
from dovetail_peers.compat.omlt.graph_layer import GNNLayer, GraphNetwork
from dovetail_peers.compat.omlt.layers import InputLayer, Layer
from dovetail_peers.compat.omlt.trained_layers import keras_layers, onnx_layers


@dataclass
class Links:
    """Layers, and the pairs of them that are joined."""

    layers: list[Layer] = field(default_factory=list)
    edges: list[tuple[Layer, Layer]] = field(default_factory=list)

    def before(self, layer: Layer) -> list[Layer]:
        """Those right before a layer."""
        return [first for first, second in self.edges if second is layer]

    def behind(self, layer: Layer) -> list[Layer]:
        """Those right behind a layer."""
        return [second for first, second in self.edges if first is layer]

    def first(self) -> list[Layer]:
        """Those that no layer is before."""
        return [layer for layer in self.layers if not self.before(layer)]

    def last(self) -> list[Layer]:
        """Those that no layer is behind."""
        return [layer for layer in self.layers if not self.behind(layer)]

    def in_order(self) -> Iterator[Layer]:
        """All of them: those that no layer is before, then those that only these are before, and so on."""
        pending, done = [*self.layers], set[int]()
        while pending:
            ready = [layer for layer in pending if {id(own) for own in self.before(layer)} <= done]
            if not ready:
                raise OptionError(f"the edges of {pending} lead round in a circle; a network is a chain.")
            done.update(id(layer) for layer in ready)
            pending = [layer for layer in pending if id(layer) not in done]
            yield from ready

    def chain(self) -> list[Layer]:
        """The layers in their order; an `OptionError` where they are no chain."""
        for what, ends in (("input", self.first()), ("output", self.last())):
            if len(ends) > 1:
                raise OptionError(
                    f"a network by hand has one {what} layer, and this one has {len(ends)}: {ends}; join "
                    "them by add_edge to one chain, or give an ONNX model (load_onnx_neural_network)."
                )
        chain = self.first()
        while chain and len(chain) <= len(self.layers):
            behind = self.behind(chain[-1])
            if len(behind) != 1:
                break
            chain += behind
        if len(chain) != len(self.layers) or len(self.edges) != len(chain) - 1 or len(chain) < 2:
            raise OptionError(
                f"{len(self.layers)} layers with {len(self.edges)} edges are no chain: the network needs "
                "one InputLayer, add_edge from each layer to the next, and one last layer."
            )
        if not isinstance(chain[0], InputLayer):
            raise OptionError(f"the first layer is {chain[0]!r}; the network needs one InputLayer.")
        return chain


class NetworkDefinition(Definition):
    """A network put together by hand, layer after layer, in a chain."""

    @cached_property
    def _links(self) -> Links:
        return Links()

    def __str__(self) -> str:
        return f"{type(self).__name__} of {len(self._links.layers)} layers"

    def add_layer(self, layer: Layer) -> None:
        """One more; `add_edge` says what comes before it."""
        if not isinstance(layer, Layer):
            raise UnsupportedError(
                f"a layer of class {type(layer).__name__} is not taken, only those of "
                "dovetail.compat.omlt.neuralnet.layer; give the network as an ONNX model "
                "(load_onnx_neural_network)."
            )
        self._links.layers.append(layer)

    def add_edge(self, from_layer: Layer, to_layer: Layer) -> None:
        """`to_layer` reads what `from_layer` gives, and nothing else."""
        for side, layer in (("from_layer", from_layer), ("to_layer", to_layer)):
            if not any(layer is own for own in self._links.layers):
                raise OptionError(
                    f"{side} is {layer!r}, which is no layer of this network; call add_layer with it first."
                )
        self._links.edges.append((from_layer, to_layer))

    @property
    def predictor(self) -> Any:
        """The chain in float64, as its weights are given."""
        layers = self._links.chain()[1:]
        if self.nodes:
            return GraphNetwork(layers, self.nodes)
        return nn.Sequential(*(module for layer in layers for module in layer.modules()))

    @property
    def nodes(self) -> int:
        """Those of the graph that layers read."""
        return next((layer.N for layer in self._links.layers if isinstance(layer, GNNLayer)), 0)

    @property
    def input_shape(self) -> Sequence[int]:
        """Those of the input layer."""
        return tuple(self._links.chain()[0].output_size)

    @property
    def output_shape(self) -> Sequence[int]:
        """Those of the last layer."""
        return tuple(self._links.chain()[-1].output_size)

    def layer(self, layer_id: int) -> Layer:
        """The one with that `id`, which is what OMLT calls its layers by."""
        return _called(layer_id, self._links)

    @property
    def layers(self) -> Iterator[Layer]:
        """From the first to the last, or as far as they are put together."""
        return self._links.in_order()

    @property
    def input_layers(self) -> Iterator[Layer]:
        """Those that no layer is before."""
        return iter(self._links.first())

    @property
    def output_layers(self) -> Iterator[Layer]:
        """Those that no layer is behind."""
        return iter(self._links.last())

    @property
    def input_nodes(self) -> Iterator[Layer]:
        """The same as `input_layers`."""
        return self.input_layers

    @property
    def output_nodes(self) -> Iterator[Layer]:
        """The same as `output_layers`."""
        return self.output_layers

    def predecessors(self, layer: Layer | int) -> Iterator[Layer]:
        """Those right before a layer."""
        return iter(self._links.before(_called(layer, self._links)))

    def successors(self, layer: Layer | int) -> Iterator[Layer]:
        """Those right behind a layer."""
        return iter(self._links.behind(_called(layer, self._links)))


class LoadedNetwork(NetworkDefinition):
    """A network that was trained elsewhere: its layers can be looked at, and it is solved as it is."""

    def __init__(
        self,
        predictor: Any,
        input_shape: Sequence[int],
        list_layers: Callable[[], list[Layer]],
        scaling_object: Any = None,
        scaled_input_bounds: Bounds | None = None,
        unscaled_input_bounds: Bounds | None = None,
    ) -> None:
        super().__init__(scaling_object, scaled_input_bounds, unscaled_input_bounds)
        self._predictor, self._input_shape, self._list_layers = predictor, input_shape, list_layers

    @cached_property
    def _links(self) -> Links:
        """Listed once, so that a layer is the same one whenever it is asked for."""
        layers = self._list_layers()
        return Links(layers, [*pairwise(layers)])

    def add_layer(self, layer: Layer) -> None:
        """An `UnsupportedError`: it stays what was trained."""
        raise UnsupportedError(
            f"{layer!r} cannot be added to a network that was read from elsewhere; put its layers and this "
            "one into a NetworkDefinition of your own, with add_layer and add_edge."
        )

    @property
    def predictor(self) -> Any:
        """As it was given."""
        return self._predictor

    @property
    def nodes(self) -> int:
        """It reads no graph."""
        return 0

    @property
    def input_shape(self) -> Sequence[int]:
        """All axes of its input but an open one for samples, as OMLT counts them."""
        return self._input_shape

    @cached_property
    def output_shape(self) -> Sequence[int]:
        """Those of the last layer where layers can be listed; else as many as the network gives."""
        try:
            return tuple(self._links.layers[-1].output_size)
        except UnsupportedError:
            return answered_shape(self._predictor, self._input_shape)


def _called(layer: Layer | int, links: Links) -> Layer:
    if isinstance(layer, Layer):
        return layer
    for own in links.layers:
        if id(own) == layer:
            return own
    raise KeyError(layer)


def load_onnx_neural_network(
    onnx: Any, scaling_object: Any = None, input_bounds: Bounds | None = None
) -> LoadedNetwork:
    """An ONNX model; the bounds are those of the network's own (scaled) inputs."""
    graph = onnx_graph(onnx)
    shape = input_shape_of(graph)
    return LoadedNetwork(onnx, shape, partial(onnx_layers, graph, shape), scaling_object, input_bounds)


def load_onnx_neural_network_with_bounds(filename: str | Path) -> LoadedNetwork:
    """An ONNX file, and the bounds in the file beside it that `write_onnx_model_with_bounds` wrote."""
    beside = Path(f"{filename}.bounds.json")
    return load_onnx_neural_network(
        str(filename), None, load_input_bounds(beside) if beside.exists() else None
    )


def load_keras_sequential(
    nn: Any,
    scaling_object: Any = None,
    scaled_input_bounds: Bounds | None = None,
    unscaled_input_bounds: Bounds | None = None,
) -> LoadedNetwork:
    """A Keras model, on its torch backend."""
    shape = tuple(int(size) for size in nn.input_shape[1:])
    bounds = scaled_input_bounds, unscaled_input_bounds
    return LoadedNetwork(nn, shape, partial(keras_layers, nn, shape), scaling_object, *bounds)


def write_onnx_model_with_bounds(
    filename: str | Path, onnx_model: Any = None, input_bounds: Bounds | None = None
) -> None:
    """Write the model, and the bounds beside it, whichever is given."""
    if onnx_model is not None:
        Path(filename).write_bytes(onnx_model.SerializeToString())
    if input_bounds is not None:
        write_input_bounds(f"{filename}.bounds.json", input_bounds)


def write_input_bounds(input_bounds_filename: str | Path, input_bounds: Bounds) -> None:
    """One record for each input, as OMLT writes them."""
    pairs = by_index(input_bounds)
    records = [{"key": k, "lower_bound": float(a), "upper_bound": float(b)} for k, (a, b) in pairs.items()]
    Path(input_bounds_filename).write_text(json.dumps(records), encoding="utf-8")


def load_input_bounds(input_bounds_filename: str | Path) -> dict[Any, tuple[float, float]]:
    """The bounds by index."""
    records = json.loads(Path(input_bounds_filename).read_text(encoding="utf-8"))
    return {_index(each["key"]): (each["lower_bound"], each["upper_bound"]) for each in records}


def _index(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key
