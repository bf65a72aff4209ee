"""Weights in other files: read from the model's folder, and from nowhere else."""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import dovetail as dt
from dovetail.core.predictor import as_predictor
from tests.predictors.onnx.oracle import gemm_model


def external_model(folder, location, **entries):
    """A model in `folder` whose weights W are said to be at `location`."""
    model = gemm_model([[1.0, 2.0]], [0.5])
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_external_weights_are_read(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(b"1234" + np.float32([3.0, 4.0]).tobytes())
    predictor = as_predictor(external_model(tmp_path, "sub/w.bin", offset=4, length=8))
    assert predictor.predict(np.ones((1, 2))).tolist() == [[7.5]]


def test_what_onnx_itself_writes_beside_a_model_is_read(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(
        gemm_model([[3.0, 4.0]], [0.5]), path, save_as_external_data=True, location="w.bin", size_threshold=0
    )
    assert as_predictor(path).predict(np.ones((1, 2))).tolist() == [[7.5]]
    in_memory = onnx.load(path, load_external_data=False)
    with pytest.raises(dt.PredictorError, match="in another file; give the path"):
        as_predictor(in_memory)


def test_external_weights_stay_in_the_folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.float32([3.0, 4.0]).tobytes())
    os.symlink(secret, folder / "soft.bin")
    os.link(secret, folder / "hard.bin")
    os.symlink(tmp_path, folder / "dir")
    (folder / "pipe").mkdir()
    plain = folder / "plain.bin"
    plain.write_bytes(np.float32([3.0, 4.0]).tobytes())
    for location, culprit in (
        ("../secret.bin", "only files in the model's folder"),
        ("sub/../../secret.bin", "only files in the model's folder"),
        ("..\\secret.bin", "only files in the model's folder"),
        (str(secret), "only files in the model's folder"),
        ("C:\\secret.bin", "only files in the model's folder"),
        ("", "only files in the model's folder"),
        ("a\0b", "only files in the model's folder"),
        ("soft.bin", "behind a link"),
        ("dir/secret.bin", "behind a link"),
        ("hard.bin", "not a plain file of its own"),
        ("pipe", "no such file"),
        ("absent.bin", "no such file"),
    ):
        with pytest.raises(dt.PredictorError, match=culprit):
            as_predictor(external_model(folder, location))
    for entries, culprit in (
        ({"offset": 4, "length": 8}, "beyond the end"),
        ({"offset": -4, "length": 8}, "beyond the end"),
        ({"offset": "x"}, "cannot be read"),
        ({"length": 4}, "cannot be read"),
    ):
        with pytest.raises(dt.PredictorError, match=culprit):
            as_predictor(external_model(folder, "plain.bin", **entries))


def test_weights_have_a_largest_size(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.zeros(1000, np.float32).tobytes())
    path = external_model(tmp_path, "w.bin")
    with pytest.raises(
        dt.PredictorError, match=r"its weights have 4000 bytes; the limit is 3,000 bytes.*limits="
    ):
        dt.load_predictor(path, limits=dt.FileLimits(bytes=3000))
    with pytest.raises(dt.PredictorError, match=r"has \d+ bytes; the limit is 50 bytes"):
        dt.load_predictor(path, limits=dt.FileLimits(bytes=50))
