"""A parsed model to the plain graph of the nodes that one output needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.file_limits import Meter
from dovetail.predictors.onnx.functions import NEWEST, NodeReader, require_text, supported_opset
from dovetail.predictors.onnx.graph import OnnxGraph
from dovetail.predictors.onnx.node import DTYPES, OnnxNode
from dovetail.predictors.onnx.weights import WeightReader


class ModelReader:
    """One model on its way to a graph."""

    def __init__(self, onnx: Any, meter: Meter, model: Any, folder: Path | None) -> None:
        self._name = meter.name
        self._model = model
        self._weights = WeightReader(onnx, meter, folder)
        self._nodes = NodeReader(onnx, meter, model.functions, self._weights)

    def graph(self, output: str | None) -> OnnxGraph:
        """All that `output` (or the only output) depends on."""
        model = self._model.graph
        if not model.output:
            raise PredictorError(f"{self._name} holds no ONNX graph; it is damaged or of another format.")
        if model.sparse_initializer:
            raise UnsupportedError(f"{self._name}: sparse weights are not supported; export dense ones.")
        require_text(*(item.name for item in [*model.input, *model.output, *model.initializer]))
        initial = {tensor.name: tensor for tensor in model.initializer}
        opset = self._opset()
        input_name, dtype, sizes = self._input(initial)
        chosen = self._output(output)
        nodes = self._needed(self._nodes.nodes(model.node, opset), chosen, {input_name, *initial})
        used = {name for node in nodes for name in node.inputs} | {chosen}
        constants = {name: self._weights.tensor(tensor) for name, tensor in initial.items() if name in used}
        chosen, nodes = _not_laid_out_in_one_column(chosen, nodes, constants)
        narrowest = _narrowest(dtype, nodes, constants.values())
        nodes = tuple(replace(node, narrowest_dtype=narrowest) for node in nodes)
        return OnnxGraph(self._name, input_name, dtype, sizes, chosen, nodes, constants, narrowest)

    def _opset(self) -> int:
        """The version of ONNX's own operators; whichever it is where only those of other domains are used."""
        if all(node.domain not in ("", "ai.onnx") for node in self._model.graph.node):
            return NEWEST
        return supported_opset(self._model.opset_import, f"{self._name}: the model")

    def _input(self, initial: Mapping[str, Any]) -> tuple[str, torch.dtype, tuple[int | None, ...]]:
        """The one input that is data, its type and its shape."""
        inputs = [item for item in self._model.graph.input if item.name not in initial]
        if len(inputs) != 1:
            names = ", ".join(repr(item.name) for item in inputs) or "none"
            raise UnsupportedError(
                f"{self._name} has {len(inputs)} inputs ({names}); a predictor has one, of shape "
                "(samples, features). Join them into one tensor inside the network."
            )
        kind = inputs[0].type.tensor_type
        dtype = DTYPES.get(kind.elem_type)
        if dtype is None or not dtype.is_floating_point:
            named = str(dtype).removeprefix("torch.") if dtype else f"ONNX element type {kind.elem_type}"
            raise UnsupportedError(
                f"{self._name}: input {inputs[0].name!r} holds {named}, not floats; export a network that "
                "takes floats and casts them itself."
            )
        if not kind.HasField("shape") or len(kind.shape.dim) < 2:
            raise PredictorError(
                f"{self._name}: input {inputs[0].name!r} has no shape (samples, features, ...); export the "
                "network with an example input that has a batch dimension."
            )
        sizes = tuple(d.dim_value if d.dim_value > 0 else None for d in kind.shape.dim)
        return inputs[0].name, dtype, sizes

    def _output(self, wanted: str | None) -> str:
        names = [item.name for item in self._model.graph.output]
        if wanted is None and len(names) == 1:
            return str(names[0])
        scores = self._scores_of_trees() if wanted is None else None
        if scores is not None:
            return scores
        if wanted in names:
            return str(wanted)
        listed = ", ".join(repr(name) for name in names)
        if wanted is not None:
            raise PredictorError(f"{self._name} has no output {wanted!r}; it has {listed}.")
        raise UnsupportedError(
            f"{self._name} has {len(names)} outputs ({listed}); choose one: "
            f"dovetail.predictors.onnx.model.OnnxPredictor(model, output={names[0]!r})."
        )

    def _scores_of_trees(self) -> str | None:
        """What a tree ensemble for classes gives beside its labels, also where a ZipMap makes a dictionary of
        it for scikit-learn's users."""
        graph = self._model.graph
        if any(node.op_type == "TreeEnsembleClassifier" for node in graph.node):
            for node in graph.node:
                if node.op_type == "ZipMap":
                    return str(node.input[0])
            floats = [item.name for item in graph.output if item.type.tensor_type.elem_type in (1, 11)]
            return str(floats[0]) if len(floats) == 1 else None
        return None

    def _needed(self, nodes: Iterable[OnnxNode], output: str, known: set[str]) -> tuple[OnnxNode, ...]:
        """The nodes that `output` depends on; outputs nobody reads lose their names."""
        ordered = list(nodes)
        made = set(known)
        for node in ordered:
            for name in node.inputs:
                if name and name not in made:
                    raise PredictorError(
                        f"{self._name}: {node} reads {name!r}, which nothing has made before it."
                    )
            for name in node.outputs:
                if name and name in made:
                    raise PredictorError(f"{self._name}: {name!r} is made twice, the second time by {node}.")
                made.add(name)
        if output not in made:
            raise PredictorError(f"{self._name}: nothing makes the output {output!r}.")
        wanted, kept = {output}, []
        for node in reversed(ordered):
            if wanted & set(node.outputs):
                outputs = tuple(name if name in wanted else "" for name in node.outputs)
                kept.append(replace(node, outputs=outputs))
                wanted |= set(node.inputs) - {""}
        return tuple(reversed(kept))


def _not_laid_out_in_one_column(
    output: str, nodes: tuple[OnnxNode, ...], constants: Mapping[str, Tensor]
) -> tuple[str, tuple[OnnxNode, ...]]:
    """What is reshaped to (-1, 1) at the very end, without that: a scikit-learn MLP of several outputs is
    exported so, and its samples would not be told from its outputs."""
    if not nodes or nodes[-1].operator != "Reshape" or len(nodes[-1].inputs) != 2:
        return output, nodes
    data, shape = nodes[-1].inputs
    makers = {name: node for node in nodes for name in node.outputs if name}
    sizes = constants.get(shape)
    if shape in makers and makers[shape].operator == "Constant":
        value = makers[shape].attributes.get("value")
        sizes = value if isinstance(value, Tensor) else None
    if sizes is None or sizes.tolist() != [-1, 1] or data not in makers:
        return output, nodes
    read = {name for node in nodes[:-1] for name in node.inputs}
    return data, tuple(node for node in nodes[:-1] if shape in read or shape not in node.outputs)


def _narrowest(dtype: torch.dtype, nodes: Iterable[OnnxNode], constants: Iterable[Tensor]) -> torch.dtype:
    """The narrowest float type that appears anywhere."""
    found = {dtype, *(tensor.dtype for tensor in constants)}
    for node in nodes:
        found |= {value.dtype for value in node.attributes.values() if isinstance(value, Tensor)}
        to = node.attributes.get("to")
        if node.operator == "Cast" and isinstance(to, int) and to in DTYPES:
            found.add(DTYPES[to])
    floats = [kind for kind in found if kind.is_floating_point]
    return min(floats, key=lambda kind: (torch.finfo(kind).bits, str(kind)))
