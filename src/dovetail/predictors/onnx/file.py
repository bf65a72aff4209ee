"""Reading ONNX: a file or a `ModelProto` to a plain graph of the nodes that one output needs.

A file may come from a stranger. Nothing in it is run here, it is measured before it is parsed, and
whatever is damaged ends in a typed error. The one file that imports `onnx`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dovetail.core.errors import DovetailError, MissingDependencyError, PredictorError
from dovetail.core.file_limits import FileLimits, Meter
from dovetail.predictors.onnx.graph import Graph
from dovetail.predictors.onnx.reader import ModelReader
from dovetail.predictors.onnx.wire_format import LARGEST_STRUCTURE, measured

LIMITS = FileLimits(bytes=1 << 30, elements=1 << 28, seconds=60.0)
"""Of the file and its weights; what is computed from them while reading takes as much again, or twice."""


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
