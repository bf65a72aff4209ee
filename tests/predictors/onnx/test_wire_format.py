"""The bytes of a file, counted before they are parsed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import dovetail as dt
from dovetail.predictors.onnx import file as wire_format
from tests.robustness.damage import model

node = helper.make_node


def number(value):
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def part(field, content):
    return number(field << 3 | 2) + number(len(content)) + content


def test_the_bytes_are_counted_as_onnx_itself_finds_them():
    rng = np.random.default_rng(0)
    for _ in range(20):
        arrays = {f"w{k}": rng.normal(size=int(rng.integers(1, 99))).astype(np.float32) for k in range(3)}
        listed = helper.make_tensor("l", onnx.TensorProto.FLOAT, [7], [1.5] * 7)
        proto = model([node("Constant", [], ["c"], value=listed), node("Add", ["x", "c"], ["y"])], arrays)
        content = proto.SerializeToString()
        structure, numbers = wire_format.measured(content)
        assert structure == len(content) - 4 * sum(a.size for a in arrays.values()) - 4 * 7
        assert numbers == 7


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (part(7, part(1, b"") * 5000), "more than 4000 parts"),
        (part(14, b"") * 5000, "more than 4000 parts"),
        (part(7, part(1, part(7, b"x" * 200_000))), "not weights"),
        (part(7, part(5, part(7, b"\x01" * 50_000))), "one by one"),
        (part(7, b"\x0a\xff"), "cut short"),
        (part(7, b"\x0b"), "a kind that ONNX does not have"),
        (b"\xff" * 20, "cut short"),
    ],
)
def test_bytes_that_would_grow(content, said, tmp_path, monkeypatch):
    monkeypatch.setattr(wire_format, "MOST_FIELDS", 4000)
    monkeypatch.setattr("dovetail.predictors.onnx.file.LARGEST_STRUCTURE", 100_000)
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(dt.PredictorError, match=said):
        dt.load_predictor(path, limits=dt.FileLimits(elements=1 << 16))
