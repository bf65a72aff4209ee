"""Reading ONNX: a file or a `ModelProto` to a plain graph of the nodes that one output needs.

A file may come from a stranger. Reading runs no code, and a damaged file ends in a typed error. This is the
only file that imports `onnx`.

A file is measured before it is parsed: two bytes can be an empty message, which takes a hundred once parsed,
and a list of small whole numbers takes thirty times its size while it is converted to an array. Only the
bytes of weights keep their size in memory. So the file is walked once without the weights, and the rest may
not be large.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dovetail.core.errors import DovetailError, MissingDependencyError, PredictorError, UnsupportedError
from dovetail.core.files import FileLimits, Meter
from dovetail.predictors.onnx.module import OnnxGraph
from dovetail.predictors.onnx.node import DTYPES, Attribute, OnnxNode

LIMITS = FileLimits(bytes=1 << 30, elements=1 << 28, seconds=60.0)
"""Limits on the file and its weights; reading needs the same amount again, or twice."""


LARGEST_STRUCTURE = 1 << 25
"""Largest number of bytes of a file that are not weights: nodes, names, attributes. A network of 200,000
nodes has less."""
MOST_FIELDS = 4_000_000
"""Largest number of message fields; a node has about ten."""
DEEPEST_MESSAGE = 100
"""Largest nesting of messages: protobuf's own limit."""

WITHIN = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
    "tensor": {},
}
"""The fields of each message that lead to tensors."""
RAW = 9
LISTED = {4: 4, 5: 1, 7: 1, 10: 8, 11: 1}
"""Fields of a tensor that list its numbers, with the smallest number of bytes per number."""


def metered(source: Any, limits: FileLimits | None) -> Meter:
    """A meter for reading a file or a `ModelProto`."""
    name = Path(source).name if isinstance(source, (str, Path)) else source.graph.name or "ONNX model"
    return Meter(name, (limits or FileLimits()).before(LIMITS), "load_predictor", PredictorError)


def read_graph(source: Any, output: str | None, meter: Meter) -> OnnxGraph:
    """The graph of `output` (or the only output) in a file or a `ModelProto`."""
    onnx = _import_onnx()
    with readable(meter.name):
        if isinstance(source, (str, Path)):
            parsed = _parsed(onnx, Path(source), meter)
            return ModelReader(onnx, meter, parsed, Path(source).parent).graph(output)
        return ModelReader(onnx, meter, source, None).graph(output)


def _import_onnx() -> Any:
    try:
        import onnx
        import onnx.numpy_helper
    except ImportError:
        raise MissingDependencyError("an ONNX model needs onnx: pip install onnx.") from None
    return onnx


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turns any exception caused by a damaged file into an error of ours."""
    try:
        yield
    except DovetailError:
        raise
    except Exception as reason:
        raise PredictorError(
            f"{name} cannot be read as an ONNX model ({type(reason).__name__}: {reason}); export it again."
        ) from reason


def _parsed(onnx: Any, path: Path, meter: Meter) -> Any:
    try:
        meter.add_bytes(path.stat().st_size, "the file has")
        content = path.read_bytes()
    except OSError as reason:
        raise PredictorError(f"{path.name} cannot be opened: {reason.strerror}.") from reason
    structure, listed = measured(content)
    if structure > LARGEST_STRUCTURE:
        raise PredictorError(
            f"{path.name}: {structure} of its bytes are not weights; the limit is {LARGEST_STRUCTURE}."
        )
    meter.add_elements(8 * listed, "numbers listed one by one take eight times the memory:")
    meter.bytes = 0  # from here on the weights are counted as they are made
    return onnx.load_from_string(content)


def measured(content: bytes) -> tuple[int, int]:
    """The number of bytes of a model that are not weights, and of numbers listed one by one."""
    structure, listed, count = len(content), 0, 0
    ahead = [(0, len(content), "model", 0)]
    while ahead:
        start, stop, kind, depth = ahead.pop()
        if depth > DEEPEST_MESSAGE:
            raise ValueError(f"messages are nested more than {DEEPEST_MESSAGE} deep within each other")
        for field, begin, end in _fields(content, start, stop):
            count += 1
            if count > MOST_FIELDS:
                raise ValueError(f"it has more than {MOST_FIELDS} parts")
            if field in WITHIN[kind]:
                ahead.append((begin, end, WITHIN[kind][field], depth + 1))
            elif kind == "tensor" and (field == RAW or field in LISTED):
                structure -= end - begin
                listed += (end - begin) // LISTED[field] if field in LISTED else 0
    return structure, listed


def _fields(content: bytes, place: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """The number and position of every field of a message that has a length."""
    while place < stop:
        key, place = _varint(content, place, stop)
        field, wire = key >> 3, key & 7
        begin = place
        if wire == 0:
            _, place = _varint(content, place, stop)
        elif wire in (1, 5):
            place += 8 if wire == 1 else 4
        elif wire == 2:
            length, begin = _varint(content, place, stop)
            place = begin + length
        else:
            raise ValueError("a field of a kind that ONNX does not have")
        if place > stop:
            raise ValueError("a field reaches beyond the end: the file is cut short or damaged")
        yield (field if wire == 2 else 0), begin, place


def _varint(content: bytes, place: int, stop: int) -> tuple[int, int]:
    """A variable-length integer in groups of seven bits, and the position after it."""
    value = shift = 0
    while place < stop and shift < 70:
        byte = content[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value, place
        shift += 7
    raise ValueError("a number reaches beyond the end: the file is cut short or damaged")


class ModelReader:
    """Reads one model into a graph."""

    def __init__(self, onnx: Any, meter: Meter, model: Any, folder: Path | None) -> None:
        self._name = meter.name
        self._model = model
        self._weights = WeightReader(onnx, meter, folder)
        self._nodes = NodeReader(onnx, meter, model.functions, self._weights)

    def graph(self, output: str | None) -> OnnxGraph:
        """The part of the graph that `output` (or the only output) depends on."""
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
        nodes = self._needed_nodes(self._nodes.nodes(model.node, opset), chosen, {input_name, *initial})
        used = {name for node in nodes for name in node.inputs} | {chosen}
        constants = {name: self._weights.tensor(tensor) for name, tensor in initial.items() if name in used}
        chosen, nodes = _without_final_reshape(chosen, nodes, constants)
        narrowest = _narrowest(dtype, nodes, constants.values())
        nodes = tuple(replace(node, narrowest_dtype=narrowest) for node in nodes)
        return OnnxGraph(self._name, input_name, dtype, sizes, chosen, nodes, constants, narrowest)

    def _opset(self) -> int:
        """The version of ONNX's own operators; any version if only operators of other domains are used."""
        if all(node.domain not in ("", "ai.onnx") for node in self._model.graph.node):
            return NEWEST
        return supported_opset(self._model.opset_import, f"{self._name}: the model")

    def _input(self, initial: Mapping[str, Any]) -> tuple[str, torch.dtype, tuple[int | None, ...]]:
        """The one data input, its type and its shape."""
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
        """The scores of a classifying tree ensemble, also behind a ZipMap, which makes a dictionary for
        scikit-learn's users."""
        graph = self._model.graph
        if any(node.op_type == "TreeEnsembleClassifier" for node in graph.node):
            for node in graph.node:
                if node.op_type == "ZipMap":
                    return str(node.input[0])
            floats = [item.name for item in graph.output if item.type.tensor_type.elem_type in (1, 11)]
            return str(floats[0]) if len(floats) == 1 else None
        return None

    def _needed_nodes(self, nodes: Iterable[OnnxNode], output: str, known: set[str]) -> tuple[OnnxNode, ...]:
        """The nodes that `output` depends on; unread outputs lose their names."""
        ordered = list(nodes)
        made = set(known)
        for node in ordered:
            for name in node.inputs:
                if name and name not in made:
                    raise PredictorError(
                        f"{self._name}: {node} reads {name!r}, which no earlier node computes."
                    )
            for name in node.outputs:
                if name and name in made:
                    raise PredictorError(
                        f"{self._name}: {name!r} is computed twice, the second time by {node}."
                    )
                made.add(name)
        if output not in made:
            raise PredictorError(f"{self._name}: no node computes the output {output!r}.")
        wanted, kept = {output}, []
        for node in reversed(ordered):
            if wanted & set(node.outputs):
                outputs = tuple(name if name in wanted else "" for name in node.outputs)
                kept.append(replace(node, outputs=outputs))
                wanted |= set(node.inputs) - {""}
        return tuple(reversed(kept))


def _without_final_reshape(
    output: str, nodes: tuple[OnnxNode, ...], constants: Mapping[str, Tensor]
) -> tuple[str, tuple[OnnxNode, ...]]:
    """The graph without a final reshape to (-1, 1), with which a scikit-learn MLP of several outputs is
    exported and which would mix samples and outputs."""
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
    """The narrowest float type in the graph."""
    found = {dtype, *(tensor.dtype for tensor in constants)}
    for node in nodes:
        found |= {value.dtype for value in node.attributes.values() if isinstance(value, Tensor)}
        to = node.attributes.get("to")
        if node.operator == "Cast" and isinstance(to, int) and to in DTYPES:
            found.add(DTYPES[to])
    floats = [kind for kind in found if kind.is_floating_point]
    return min(floats, key=lambda kind: (torch.finfo(kind).bits, str(kind)))


MOST_NODES = 200_000
"""Largest number of nodes with function calls expanded, because a few lines can call each other endlessly."""
MOST_WORDS = 4_000_000
"""Largest number of input and output names of all nodes, with function calls expanded."""
LONGEST_NAME = 1024
"""Largest number of characters of a name; every call of a function repeats the names inside."""
LONGEST_LABEL = 80
"""Largest number of characters of a function's name in the names inside it."""
LONGEST_LIST = 1 << 20
"""Largest number of entries of a list attribute; tensors may be longer."""
DEEPEST = 32
"""Largest nesting of function calls."""


OLDEST, NEWEST = 7, 28
"""Supported opsets. Up to 12, lists of axes and limits were attributes, and a softmax covered all axes from
one on; each operator's file handles this. Before 7, arithmetic broadcast differently."""


class _Scope(NamedTuple):
    """The graph or one call of a function: maps its own names to names outside."""

    opset: int
    bound: Mapping[str, str]
    prefix: str
    given: Mapping[str, Any]
    depth: int

    def renamed(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names of values in the whole graph."""
        return tuple(self.bound.get(name, self.prefix + name) if name else "" for name in names)

    def attributes(self, attributes: Iterable[Any]) -> dict[str, Any]:
        """Attributes by name, with references to the function's attributes replaced."""
        found = {a.name: self.given.get(a.ref_attr_name) if a.ref_attr_name else a for a in attributes}
        return {name: attribute for name, attribute in found.items() if attribute is not None}


class NodeReader:
    """Turns `NodeProto`s into nodes and counts them."""

    def __init__(self, onnx: Any, meter: Meter, functions: Iterable[Any], weights: WeightReader) -> None:
        self._kinds = onnx.AttributeProto
        self._name = meter.name
        self._meter = meter
        self._functions = {(f.domain, f.name, f.overload): f for f in functions}
        self._weights = weights
        self._count = 0
        self._words = 0

    def nodes(self, protos: Iterable[Any], opset: int) -> Iterator[OnnxNode]:
        """The nodes of the graph in order."""
        yield from self._nodes_of(protos, _Scope(opset, {}, "", {}, 0))

    def _nodes_of(self, protos: Iterable[Any], scope: _Scope) -> Iterator[OnnxNode]:
        """The nodes of the graph or of a function's body."""
        for proto in protos:
            self._require_few(proto)
            label = scope.prefix + (proto.name or f"{proto.op_type}_{self._count}")
            attributes = scope.attributes(proto.attribute)
            function = self._functions.get((proto.domain, proto.op_type, proto.overload))
            if function is not None:
                yield from self._call(proto, function, label, attributes, scope)
                continue
            domain = "" if proto.domain == "ai.onnx" else proto.domain
            values = {name: self._attribute(a, label) for name, a in attributes.items()}
            inputs, outputs = scope.renamed(proto.input), scope.renamed(proto.output)
            yield OnnxNode(proto.op_type, label, inputs, outputs, scope.opset, values, domain)

    def _call(
        self, proto: Any, function: Any, label: str, attributes: dict[str, Any], scope: _Scope
    ) -> Iterator[OnnxNode]:
        """The nodes of a function's body, for one call of it."""
        if scope.depth == DEEPEST:
            raise UnsupportedError(f"{self._name}: functions call each other more than {DEEPEST} deep.")
        opset = supported_opset(function.opset_import, f"{self._name}: function {function.name!r}")
        prefix = f"{label[:LONGEST_LABEL]}#{self._count}/"
        inputs, outputs = scope.renamed(proto.input), scope.renamed(proto.output)
        padded = inputs + ("",) * (len(function.input) - len(inputs))
        names = dict(zip(function.input, padded, strict=True))
        handed_on = set(function.output) & set(names)
        names |= {n: o for n, o in zip(function.output, outputs, strict=False) if n not in handed_on and o}
        given = {a.name: a for a in function.attribute_proto} | attributes
        yield from self._nodes_of(function.node, _Scope(opset, names, prefix, given, scope.depth + 1))
        for name, target in zip(function.output, outputs, strict=False):
            if name in handed_on:
                yield OnnxNode("Identity", label, (names[name],), (target,), opset, {})

    def _require_few(self, proto: Any) -> None:
        """Count a node; an error beyond the limit."""
        self._count += 1
        if self._count > MOST_NODES:
            raise UnsupportedError(f"{self._name} has more than {MOST_NODES} nodes.")
        self._words += len(proto.input) + len(proto.output)
        if self._words > MOST_WORDS:
            raise UnsupportedError(f"{self._name}: its nodes have more than {MOST_WORDS} inputs in all.")
        self._meter.require_time()
        require_text(proto.name, proto.op_type, proto.domain, *proto.input, *proto.output)

    def _attribute(self, proto: Any, label: str) -> Attribute:
        kinds = self._kinds
        if max(len(proto.ints), len(proto.floats), len(proto.strings)) > LONGEST_LIST:
            raise UnsupportedError(
                f"{self._name}: attribute {proto.name!r} of node {label!r} lists more than {LONGEST_LIST} "
                "entries; export it as a tensor."
            )
        if proto.type == kinds.INT:
            return int(proto.i)
        if proto.type == kinds.FLOAT:
            return float(proto.f)
        if proto.type == kinds.STRING:
            return str(proto.s.decode())
        if proto.type == kinds.INTS:
            return tuple(int(value) for value in proto.ints)
        if proto.type == kinds.FLOATS:
            return tuple(float(value) for value in proto.floats)
        if proto.type == kinds.STRINGS:
            return tuple(value.decode() for value in proto.strings)
        if proto.type == kinds.TENSOR:
            return self._weights.tensor(proto.t, label)
        return f"an attribute of kind {proto.type}"  # for example a subgraph: the operator is refused by name


def require_text(*words: Any) -> None:
    """Refuse names that are not text: protobuf returns them as bytes."""
    for word in words:
        if not isinstance(word, str):
            raise PredictorError(f"a name in the model is not text ({word!r}); the file is damaged.")
        if len(word) > LONGEST_NAME:
            raise PredictorError(f"a name in the model has {len(word)} characters ({word[:40]!r}...).")


def supported_opset(imports: Iterable[Any], where: str) -> int:
    """The opset that a model or function imports; `where` names it and the file."""
    version = max((item.version for item in imports if item.domain in ("", "ai.onnx")), default=0)
    if version < OLDEST:
        raise UnsupportedError(
            f"{where} uses opset {version}; {OLDEST} to {NEWEST} are supported. Export it "
            f"again, or convert it: onnx.version_converter.convert_version(model, 17)."
        )
    if version > NEWEST:
        raise UnsupportedError(
            f"{where} uses opset {version}, newer than this dovetail knows; export it with "
            f"opset_version={NEWEST} or lower."
        )
    return int(version)


class WeightReader:
    """Turns a `TensorProto` into a tensor and counts its bytes."""

    def __init__(self, onnx: Any, meter: Meter, folder: Path | None) -> None:
        self._onnx = onnx
        self._name = meter.name
        self._meter = meter
        self._folder = folder

    def tensor(self, proto: Any, owner: str = "") -> Tensor:
        """The numbers of a tensor; an unnamed tensor is called by its owner's name in messages."""
        name = proto.name or owner
        dtype = DTYPES.get(proto.data_type)
        if dtype is None:
            raise UnsupportedError(
                f"{self._name}: tensor {name!r} has ONNX element type {proto.data_type}; "
                "floats, signed integers and booleans are supported."
            )
        if proto.data_location == self._onnx.TensorProto.EXTERNAL:
            raw = self._external(proto, name)
            proto = self._onnx.TensorProto(dims=proto.dims, data_type=proto.data_type, raw_data=raw)
        else:
            self._meter.add_bytes(proto.ByteSize(), "its weights have")
        array = np.array(self._onnx.numpy_helper.to_array(proto))
        if dtype == torch.bfloat16:
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        tensor = torch.from_numpy(array)
        if tensor.dtype != dtype or tuple(tensor.shape) != tuple(proto.dims):
            raise PredictorError(
                f"{self._name}: tensor {name!r} has data that do not fit its shape or type; export it again."
            )
        return tensor

    def _external(self, proto: Any, name: str) -> bytes:
        """Weights from another file in the model's folder; links and paths out of the folder are refused."""
        if self._folder is None:
            raise PredictorError(
                f"{self._name}: the weights {name!r} are in another file; give the path of the .onnx file "
                "instead of the model in memory, or onnx.load it together with its weights."
            )
        entries = {entry.key: entry.value for entry in proto.external_data}
        path = _inside(self._folder, entries.get("location", ""), f"{self._name}: weights {name!r}")
        offset = int(entries.get("offset", 0))
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                raise PredictorError(
                    f"{self._name}: weights {name!r}: {path.name} is not a plain file of its own (a hard "
                    "link, say); copy it."
                )
            length = int(entries.get("length", status.st_size - offset))
            if offset < 0 or length < 0 or offset + length > status.st_size:
                raise PredictorError(f"{self._name}: weights {name!r} reach beyond the end of {path.name}.")
            self._meter.add_bytes(length, "its weights have")
            file.seek(offset)
            return file.read(length)


def _inside(folder: Path, location: str, what: str) -> Path:
    """The path of a plain relative location below a folder; links are refused."""
    parts = PurePosixPath(location).parts
    foreign = PureWindowsPath(location)
    if (
        not parts
        or ".." in parts
        or ".." in foreign.parts
        or foreign.drive
        or location[0] in "/\\"
        or "\0" in location
    ):
        raise PredictorError(
            f"{what} are said to be in {location!r}; only files in the model's folder are read."
        )
    path = folder
    for part in parts:
        path = path / part
        if path.is_symlink():
            raise PredictorError(f"{what} are behind a link ({location!r}); put the file itself there.")
    if not path.is_file():
        raise PredictorError(
            f"{what} should be in {location!r} beside the model, where there is no such file."
        )
    return path
