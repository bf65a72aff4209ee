"""OMLT's readers: networks of Keras and ONNX as definitions, and bounds of inputs in a file beside them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from dovetail_peers.compat.omlt.by_index import by_index
from dovetail_peers.compat.omlt.definition import Bounds, input_shape_of, onnx_graph
from dovetail_peers.compat.omlt.network import LoadedNetwork
from dovetail_peers.compat.omlt.trained_layers import keras_layers, onnx_layers


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
