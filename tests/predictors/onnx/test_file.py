"""Files from strangers, and the one file that imports onnx."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.predictors.onnx import file as onnx_file
from dovetail.predictors.onnx.model import OnnxPredictor
from tests.conftest import FULL
from tests.predictors.onnx.exported import exported, random_network
from tests.predictors.onnx.oracle import gemm_model


def test_a_file_that_is_not_there_or_not_onnx(tmp_path):
    with pytest.raises(dt.PredictorError, match=r"absent\.onnx"):
        as_predictor(tmp_path / "absent.onnx")
    for content in (b"", b"hello, this is no protobuf", b"\0" * 100, b"\x80\x04K\x01."):
        path = tmp_path / "x.onnx"
        path.write_bytes(content)
        with pytest.raises(dt.PredictorError, match=r"x\.onnx"):
            OnnxPredictor(path)


@pytest.mark.parametrize("seed", [2, 4, 7])
def test_mutated_files_end_in_typed_errors(seed, tmp_path):
    content = exported(*random_network(seed), torch.float32).SerializeToString()
    draw = np.random.default_rng(seed)
    path = tmp_path / "net.onnx"
    X = np.zeros((2, 18 if seed == 2 else 12))
    refused = 0
    for trial in range(1000 if FULL else 36):
        mutant = bytearray(content)
        if trial % 3 == 0:
            mutant = mutant[: int(draw.integers(len(mutant)))]
        else:
            for place in draw.integers(len(mutant), size=int(draw.integers(1, 6))):
                mutant[place] = int(draw.integers(256))
        path.write_bytes(mutant)
        try:
            OnnxPredictor(path).predict(X)
        except dt.DovetailError:
            refused += 1
    assert refused > 12


def test_without_onnx_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    model = gemm_model([[1.0, 2.0]], [0.5])
    with pytest.raises(dt.MissingDependencyError, match="pip install onnx"):
        as_predictor(model)


def test_only_one_file_imports_onnx():
    folder = os.path.dirname(onnx_file.__file__)
    for root, _, files in os.walk(os.path.dirname(folder)):
        for name in files:
            if name.endswith(".py") and os.path.join(root, name) != onnx_file.__file__:
                with open(os.path.join(root, name)) as text:
                    lines = [line.split() for line in text if line.split()[:1] in (["import"], ["from"])]
                assert not any(line[1].split(".")[0] in ("onnx", "onnxruntime") for line in lines), name
