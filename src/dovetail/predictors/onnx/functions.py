"""The nodes of a model one after the other, calls of the model's own functions written out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.file_limits import Meter
from dovetail.predictors.onnx.node import Attribute, OnnxNode
from dovetail.predictors.onnx.weights import WeightReader

MOST_NODES = 200_000
"""Calls of functions written out: a few lines can call each other without end."""
MOST_WORDS = 4_000_000
"""Names of inputs and outputs of all nodes, calls of functions written out."""
LONGEST_NAME = 1024
"""Characters of a name: honest ones are paths of modules; every call of a function writes them again."""
LONGEST_LABEL = 80
"""Characters of a function's name that the names inside it begin with."""
LONGEST_LIST = 1 << 20
"""Entries of a list of numbers or words among the attributes of a node; tensors may be longer."""
DEEPEST = 32
"""How far functions may call functions."""


OLDEST, NEWEST = 7, 28
"""Opsets whose operators mean what is computed here. Up to 12, lists of axes and limits were attributes, and
a softmax was over all axes from one on: each operator's file says what it meant then. Before 7, arithmetic
broadcast in a way of its own."""


class _Scope(NamedTuple):
    """The graph, or one call of a function: what its own names stand for outside."""

    opset: int
    bound: Mapping[str, str]
    prefix: str
    given: Mapping[str, Any]
    depth: int

    def renamed(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names of values as the whole graph has them."""
        return tuple(self.bound.get(name, self.prefix + name) if name else "" for name in names)

    def attributes(self, attributes: Iterable[Any]) -> dict[str, Any]:
        """Attributes by name, those that stand for a function's own attributes replaced."""
        found = {a.name: self.given.get(a.ref_attr_name) if a.ref_attr_name else a for a in attributes}
        return {name: attribute for name, attribute in found.items() if attribute is not None}


class NodeReader:
    """Turns `NodeProto`s into nodes, and counts them."""

    def __init__(self, onnx: Any, meter: Meter, functions: Iterable[Any], weights: WeightReader) -> None:
        self._kinds = onnx.AttributeProto
        self._name = meter.name
        self._meter = meter
        self._functions = {(f.domain, f.name, f.overload): f for f in functions}
        self._weights = weights
        self._count = 0
        self._words = 0

    def nodes(self, protos: Iterable[Any], opset: int) -> Iterator[OnnxNode]:
        """The nodes of the graph in their order."""
        yield from self._within(protos, _Scope(opset, {}, "", {}, 0))

    def _within(self, protos: Iterable[Any], scope: _Scope) -> Iterator[OnnxNode]:
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
        yield from self._within(function.node, _Scope(opset, names, prefix, given, scope.depth + 1))
        for name, target in zip(function.output, outputs, strict=False):
            if name in handed_on:
                yield OnnxNode("Identity", label, (names[name],), (target,), opset, {})

    def _require_few(self, proto: Any) -> None:
        """Count a node, and refuse one too many."""
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
        return f"an attribute of kind {proto.type}"  # a subgraph, say: the operator is refused by name


def require_text(*words: Any) -> None:
    """Refuse names that are not text: protobuf hands them over as bytes."""
    for word in words:
        if not isinstance(word, str):
            raise PredictorError(f"a name in the model is not text ({word!r}); the file is damaged.")
        if len(word) > LONGEST_NAME:
            raise PredictorError(f"a name in the model has {len(word)} characters ({word[:40]!r}...).")


def supported_opset(imports: Iterable[Any], where: str) -> int:
    """The version that a model or function imports; `where` names both it and the file."""
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
