"""Reading ONNX: a file or a `ModelProto` to a plain graph of the nodes that one output needs.

A file may come from a stranger. Nothing in it is run here; weights in other files are read only from
plain files inside the model's own folder; whatever is damaged ends in a typed error.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dovetail.core.errors import DovetailError, MissingDependencyError, PredictorError, UnsupportedError
from dovetail.core.file_limits import FileLimits, Meter
from dovetail.predictors.onnx.node import DTYPES, Attribute, Node
from dovetail.predictors.onnx.wire import LARGEST_STRUCTURE, measured

OLDEST, NEWEST = 13, 28
"""Opsets whose operators mean what is computed here."""
LIMITS = FileLimits(bytes=1 << 30, elements=1 << 28, seconds=60.0)
"""Of the file and its weights; what is computed from them while reading takes as much again, or twice."""
MOST_NODES = 200_000
MOST_WORDS = 4_000_000
"""Names of inputs and outputs of all nodes, calls of functions written out."""
LONGEST_NAME = 1024
LONGEST_LABEL = 80
"""Characters of a function's name that the names inside it begin with."""
LONGEST_LIST = 1 << 20
"""Entries of a list of numbers or words among the attributes of a node; tensors may be longer."""
DEEPEST = 32
"""How far functions may call functions."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A network: one input, one output, and the nodes between them in the order of their computation."""

    name: str
    input: str
    dtype: torch.dtype
    sizes: tuple[int | None, ...]
    """The input's shape; None where the file leaves it open."""
    output: str
    nodes: tuple[Node, ...]
    constants: dict[str, Tensor]
    grain: torch.dtype
    """The narrowest float type in use."""


def metered(source: Any, limits: FileLimits | None) -> Meter:
    """A meter for reading a file or a `ModelProto`."""
    name = Path(source).name if isinstance(source, (str, Path)) else source.graph.name or "ONNX model"
    return Meter(name, (limits or FileLimits()).before(LIMITS), "load_predictor", PredictorError)


def read_graph(source: Any, output: str | None, meter: Meter) -> Graph:
    """The graph behind `output` (or the only output) of a file or a `ModelProto`."""
    onnx = _import_onnx()
    with readable(meter.name):
        if isinstance(source, (str, Path)):
            parsed = _parsed(onnx, Path(source), meter)
            return _Reader(onnx, meter, parsed, Path(source).parent).graph(output)
        return _Reader(onnx, meter, source, None).graph(output)


def _import_onnx() -> Any:
    try:
        import onnx
        import onnx.numpy_helper
    except ImportError:
        raise MissingDependencyError('an ONNX model needs onnx: pip install "dovetail[onnx]".') from None
    return onnx


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Whatever a damaged file sets off, as an error of ours."""
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
            f"{path.name}: {structure} of its bytes are no weights; at most {LARGEST_STRUCTURE} may be."
        )
    meter.add_elements(8 * listed, "numbers listed one by one take eight times their room:")
    meter.bytes = 0  # from here on the weights themselves are counted, as they are made
    return onnx.load_from_string(content)


class _Reader:
    """One model on its way to a graph."""

    def __init__(self, onnx: Any, meter: Meter, model: Any, folder: Path | None) -> None:
        self._onnx = onnx
        self._name = meter.name
        self._meter = meter
        self._model = model
        self._folder = folder
        self._functions = {(f.domain, f.name, f.overload): f for f in model.functions}
        self._count = 0
        self._words = 0

    def graph(self, output: str | None) -> Graph:
        model = self._model.graph
        if not model.output:
            raise PredictorError(f"{self._name} holds no ONNX graph; it is damaged or of another format.")
        if model.sparse_initializer:
            raise UnsupportedError(f"{self._name}: sparse weights are not supported; export dense ones.")
        _require_text(*(item.name for item in [*model.input, *model.output, *model.initializer]))
        initial = {tensor.name: tensor for tensor in model.initializer}
        opset = self._opset(self._model.opset_import, "the model")
        input_name, dtype, sizes = self._input(initial)
        chosen = self._output(output)
        nodes = self._needed(self._expanded(model.node, opset), chosen, {input_name, *initial})
        used = {name for node in nodes for name in node.inputs} | {chosen}
        constants = {name: self._tensor(tensor) for name, tensor in initial.items() if name in used}
        grain = _narrowest(dtype, nodes, constants.values())
        nodes = tuple(replace(node, grain=grain) for node in nodes)
        return Graph(self._name, input_name, dtype, sizes, chosen, nodes, constants, grain)

    def _opset(self, imports: Iterable[Any], where: str) -> int:
        version = max((item.version for item in imports if item.domain in ("", "ai.onnx")), default=0)
        if version < OLDEST:
            raise UnsupportedError(
                f"{self._name}: {where} uses opset {version}; {OLDEST} to {NEWEST} are supported. Export it "
                f"again, or convert it: onnx.version_converter.convert_version(model, {OLDEST + 4})."
            )
        if version > NEWEST:
            raise UnsupportedError(
                f"{self._name}: {where} uses opset {version}, newer than this dovetail knows; export it with "
                f"opset_version={NEWEST} or lower."
            )
        return int(version)

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
        if wanted in names:
            return str(wanted)
        listed = ", ".join(repr(name) for name in names)
        if wanted is not None:
            raise PredictorError(f"{self._name} has no output {wanted!r}; it has {listed}.")
        raise UnsupportedError(
            f"{self._name} has {len(names)} outputs ({listed}); choose one: "
            f"dovetail.predictors.onnx.model.OnnxPredictor(model, output={names[0]!r})."
        )

    # Nodes

    def _expanded(self, protos: Iterable[Any], opset: int) -> Iterator[Node]:
        yield from self._within(protos, opset, {}, "", {}, 0)

    def _within(
        self,
        protos: Iterable[Any],
        opset: int,
        bound: Mapping[str, str],
        prefix: str,
        given: Mapping[str, Any],
        depth: int,
    ) -> Iterator[Node]:
        """The nodes of a graph or of a function's body, calls of functions written out."""

        def renamed(names: Iterable[str]) -> tuple[str, ...]:
            return tuple(bound.get(name, prefix + name) if name else "" for name in names)

        for proto in protos:
            self._count += 1
            if self._count > MOST_NODES:
                raise UnsupportedError(f"{self._name} has more than {MOST_NODES} nodes.")
            self._words += len(proto.input) + len(proto.output)
            if self._words > MOST_WORDS:
                raise UnsupportedError(f"{self._name}: its nodes have more than {MOST_WORDS} inputs in all.")
            self._meter.require_time()
            _require_text(proto.name, proto.op_type, proto.domain, *proto.input, *proto.output)
            label = prefix + (proto.name or f"{proto.op_type}_{self._count}")
            inputs, outputs = renamed(proto.input), renamed(proto.output)
            attributes = self._bound_attributes(proto.attribute, given)
            function = self._functions.get((proto.domain, proto.op_type, proto.overload))
            if function is None:
                domain = "" if proto.domain == "ai.onnx" else proto.domain
                values = {name: self._attribute(a, label) for name, a in attributes.items()}
                yield Node(proto.op_type, label, inputs, outputs, opset, values, domain)
                continue
            if depth == DEEPEST:
                raise UnsupportedError(f"{self._name}: functions call each other more than {DEEPEST} deep.")
            inside = self._opset(function.opset_import, f"function {function.name!r}")
            inner = f"{label[:LONGEST_LABEL]}#{self._count}/"
            padded = inputs + ("",) * (len(function.input) - len(inputs))
            names = dict(zip(function.input, padded, strict=True))
            handed_on = set(function.output) & set(names)
            names |= {
                n: o for n, o in zip(function.output, outputs, strict=False) if n not in handed_on and o
            }
            defaults = {a.name: a for a in function.attribute_proto}
            yield from self._within(function.node, inside, names, inner, defaults | attributes, depth + 1)
            for name, target in zip(function.output, outputs, strict=False):
                if name in handed_on:
                    yield Node("Identity", label, (names[name],), (target,), inside, {})

    def _bound_attributes(self, attributes: Iterable[Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """Attributes by name, those that stand for a function's own attributes replaced."""
        found = {a.name: given.get(a.ref_attr_name) if a.ref_attr_name else a for a in attributes}
        return {name: attribute for name, attribute in found.items() if attribute is not None}

    def _attribute(self, proto: Any, label: str) -> Attribute:
        kinds = self._onnx.AttributeProto
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
            return self._tensor(proto.t, label)
        return f"an attribute of kind {proto.type}"  # a subgraph, say: the operator is refused by name

    def _needed(self, nodes: Iterable[Node], output: str, known: set[str]) -> tuple[Node, ...]:
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

    # Tensors

    def _tensor(self, proto: Any, owner: str = "") -> Tensor:
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
                f"{self._name}: tensor {name!r} does not hold what it says; export it again."
            )
        return tensor

    def _external(self, proto: Any, name: str) -> bytes:
        """Weights from another file in the model's folder: nothing outside it, and nothing by a back way."""
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
    """The path of a plain relative location below a folder, no step of it a link."""
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


def _require_text(*words: Any) -> None:
    """Refuse names that are not text: protobuf hands them over as bytes."""
    for word in words:
        if not isinstance(word, str):
            raise PredictorError(f"a name in the model is not text ({word!r}); the file is damaged.")
        if len(word) > LONGEST_NAME:
            raise PredictorError(f"a name in the model has {len(word)} characters ({word[:40]!r}...).")


def _narrowest(dtype: torch.dtype, nodes: Iterable[Node], constants: Iterable[Tensor]) -> torch.dtype:
    """The narrowest float type that appears anywhere."""
    found = {dtype, *(tensor.dtype for tensor in constants)}
    for node in nodes:
        found |= {value.dtype for value in node.attributes.values() if isinstance(value, Tensor)}
        to = node.attributes.get("to")
        if node.operator == "Cast" and isinstance(to, int) and to in DTYPES:
            found.add(DTYPES[to])
    floats = [kind for kind in found if kind.is_floating_point]
    return min(floats, key=lambda kind: (torch.finfo(kind).bits, str(kind)))
