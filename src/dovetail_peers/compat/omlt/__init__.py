"""OMLT's names: `from dovetail.compat.omlt import OmltBlock`.

>>> from dovetail.compat.omlt.neuralnet import ReluBigMFormulation
>>> from dovetail.compat.omlt.io import load_onnx_neural_network
>>> ReluBigMFormulation.__name__, load_onnx_neural_network.__name__
('ReluBigMFormulation', 'load_onnx_neural_network')
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from dovetail.version import __version__
from dovetail_peers.compat.omlt import block, definition, network
from dovetail_peers.compat.omlt.block import OmltBlock
from dovetail_peers.compat.omlt.definition import (
    FORMULATIONS,
    ComplementarityReLUActivation,
    OffsetScaling,
    ScalingInterface,
    by_index,
)
from dovetail_peers.compat.omlt.layers import (
    ConvLayer2D,
    DenseLayer,
    GNNLayer,
    IndexMapper,
    InputLayer,
    Layer,
    Layer2D,
    PoolingLayer2D,
)
from dovetail_peers.compat.omlt.network import NetworkDefinition, load_torch_geometric_sequential
from dovetail_peers.compat.peer import publish

_ONNX = {
    "load_onnx_neural_network": network.load_onnx_neural_network,
    "load_onnx_neural_network_with_bounds": network.load_onnx_neural_network_with_bounds,
    "write_onnx_model_with_bounds": network.write_onnx_model_with_bounds,
}

_LIBRARIES = ("onnx", "keras", "torch", "torch_geometric", "lineartree")


def _library(name: str) -> ModuleType:
    """A library as a name of `dependencies`, imported on first access."""
    if name not in _LIBRARIES:
        raise AttributeError(name)
    return import_module(name)


_LAYERS = (ConvLayer2D, DenseLayer, GNNLayer, IndexMapper, InputLayer, Layer, Layer2D, PoolingLayer2D)
publish(
    __name__,
    {
        "dependencies": {"__getattr__": _library}
        | {f"{name}_available": find_spec(name) is not None for name in _LIBRARIES},
        "scaling": {
            "OffsetScaling": OffsetScaling,
            "ScalingInterface": ScalingInterface,
            "convert_to_dict": by_index,
        },
        "io.onnx": _ONNX,
        "io.keras.keras_reader": {"load_keras_sequential": network.load_keras_sequential},
        "io.torch_geometric.build_gnn_formulation": {
            "gnn_with_fixed_graph": block.gnn_with_fixed_graph,
            "gnn_with_non_fixed_graph": block.gnn_with_non_fixed_graph,
        },
        "io.torch_geometric.torch_geometric_reader": {
            "load_torch_geometric_sequential": load_torch_geometric_sequential
        },
        "io.input_bounds": {
            "load_input_bounds": network.load_input_bounds,
            "write_input_bounds": network.write_input_bounds,
        },
        "neuralnet.nn_formulation": FORMULATIONS["neuralnet"],
        "neuralnet.network_definition": {"NetworkDefinition": NetworkDefinition},
        "neuralnet.layer": {layer.__name__: layer for layer in _LAYERS},
        "neuralnet.activations": {"ComplementarityReLUActivation": ComplementarityReLUActivation},
        "gbt.gbt_formulation": FORMULATIONS["gbt"],
        "gbt.model": {"GradientBoostedTreeModel": definition.GradientBoostedTreeModel},
        "linear_tree.lt_formulation": FORMULATIONS["linear_tree"],
        "linear_tree.lt_definition": {"LinearTreeDefinition": definition.LinearTreeDefinition},
    },
)

__all__ = ["OffsetScaling", "OmltBlock", "__version__"]
