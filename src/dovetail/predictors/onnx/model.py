"""ONNX models as predictors, by an interpreter of our own.

A graph is turned once into a list of functions of torch tensors inside an `nn.Module`; from there on an
ONNX model is a torch module like any other: `predict` computes in the file's own precision, gradients
run through a float64 copy. No ONNX runtime is needed to solve; the tests use one as an oracle.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dovetail.core.arrays import FloatArray
from dovetail.core.description import Description
from dovetail.core.errors import UnsupportedError
from dovetail.core.file_limits import FileLimits, Meter
from dovetail.networks.layers import Layer, folded
from dovetail.predictors.onnx.file import metered, read_graph, readable
from dovetail.predictors.onnx.graph import OnnxGraph
from dovetail.predictors.onnx.graph_traits import ends_in_sigmoid, piecewise_constant_nodes
from dovetail.predictors.onnx.layers import layers_of
from dovetail.predictors.onnx.module import OnnxModule
from dovetail.predictors.onnx.trees import is_classifier, onnx_ensemble, tree_node
from dovetail.predictors.torch.layers import changed
from dovetail.predictors.torch.module import TorchPredictor
from dovetail.predictors.trees.file import WrittenTrees
from dovetail.predictors.trees.predictor import TreePredictor


def onnx_predictor(model: Any, *, limits: FileLimits | None = None) -> OnnxPredictor | TreePredictor:
    """A network, or a tree ensemble where the graph is nothing else."""
    meter = metered(model, limits)
    graph = read_graph(model, None, meter)
    node = tree_node(graph)
    if node is None:
        return OnnxPredictor(model, read=(graph, meter))
    with readable(graph.name):
        written = WrittenTrees(graph.name, onnx_ensemble(graph, node), is_classifier=is_classifier(node))
    return TreePredictor(written)


class OnnxPredictor(TorchPredictor):
    """An ONNX file, or an `onnx.ModelProto`: one float input (samples, ...), one output (samples, ...).

    A row of features is the input's further axes laid out flat, and a row of outputs likewise. `output`
    chooses among several outputs by name. A model exported for a single sample is taken sample by sample.
    `limits` raises what reading and trying it may take; `read` is the graph, where it was read before.
    """

    def __init__(
        self,
        model: Any,
        output: str | None = None,
        *,
        limits: FileLimits | None = None,
        read: tuple[OnnxGraph, Meter] | None = None,
    ) -> None:
        meter = read[1] if read is not None else metered(model, limits)
        graph = read[0] if read is not None else read_graph(model, output, meter)
        with readable(graph.name):
            module = OnnxModule(graph, meter)
        super().__init__(module)
        self.name = graph.name
        self._graph = graph
        self._onnx_module = module

    def describe(self, X: FloatArray) -> Description:
        """As for any module; and the graph itself shows steps, and what it ends in."""
        seen = super().describe(X)
        smooth = seen.smooth and not piecewise_constant_nodes(self._graph)
        return replace(seen, smooth=smooth, ends_in_sigmoid=ends_in_sigmoid(self._graph))

    def layers(self) -> tuple[Layer, ...]:
        """The graph written out, if it is a plain chain of dense layers and common activations."""
        return folded(self._operations())

    def _operations(self) -> tuple[Layer, ...]:
        reason = changed(self._onnx_module)
        if reason:
            raise UnsupportedError(f"{self.name} cannot be written out: {reason}.")
        return tuple(layers_of(self._graph, self._onnx_module))
