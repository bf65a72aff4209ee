"""Reading ONNX: a file or a `ModelProto` to a plain graph of the nodes that one output needs.

A file may come from a stranger. Nothing in it is run here, it is measured before it is parsed, and
whatever is damaged ends in a typed error. The one file that imports `onnx`.

What an ONNX file would become in memory, seen from its bytes before they are parsed.

Two bytes can be an empty message, which takes a hundred once parsed, and a list of small whole numbers
takes thirty times its size on the way to an array. Only the bytes of weights stay what they are. So the
file is walked once, weights skipped, and what is left may not be large. Knows nothing of `onnx`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dovetail.core.errors import DovetailError, MissingDependencyError, PredictorError
from dovetail.core.file_limits import FileLimits, Meter
from dovetail.predictors.onnx.graph_traits import OnnxGraph
from dovetail.predictors.onnx.reader import ModelReader

LIMITS = FileLimits(bytes=1 << 30, elements=1 << 28, seconds=60.0)
"""Of the file and its weights; what is computed from them while reading takes as much again, or twice."""


LARGEST_STRUCTURE = 1 << 25
"""Bytes of a file that are not weights: nodes, names, attributes. A network of 200,000 nodes has less."""
MOST_FIELDS = 4_000_000
"""Parts of messages: a node has about ten."""
DEEPEST = 100
"""How far messages lie within messages: protobuf's own limit."""

WITHIN = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
    "tensor": {},
}
"""Where tensors may lie: the fields of each message that lead to them."""
RAW = 9
LISTED = {4: 4, 5: 1, 7: 1, 10: 8, 11: 1}
"""Fields of a tensor that list its numbers, and the fewest bytes of one number."""


def metered(source: Any, limits: FileLimits | None) -> Meter:
    """A meter for reading a file or a `ModelProto`."""
    name = Path(source).name if isinstance(source, (str, Path)) else source.graph.name or "ONNX model"
    return Meter(name, (limits or FileLimits()).before(LIMITS), "load_predictor", PredictorError)


def read_graph(source: Any, output: str | None, meter: Meter) -> OnnxGraph:
    """The graph behind `output` (or the only output) of a file or a `ModelProto`."""
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


def measured(content: bytes) -> tuple[int, int]:
    """How many bytes of a model are no weights, and how many numbers it lists one by one."""
    structure, listed, count = len(content), 0, 0
    ahead = [(0, len(content), "model", 0)]
    while ahead:
        start, stop, kind, depth = ahead.pop()
        if depth > DEEPEST:
            raise ValueError(f"messages lie more than {DEEPEST} deep within each other")
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
    """The number and the place of every field of a message that has a length of its own."""
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
    """A whole number in groups of seven bits, and the place behind it."""
    value = shift = 0
    while place < stop and shift < 70:
        byte = content[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value, place
        shift += 7
    raise ValueError("a number reaches beyond the end: the file is cut short or damaged")
