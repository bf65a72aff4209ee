"""Tensors of a file, those included that are kept in other files beside it.

Such weights are read only from plain files inside the model's own folder, never through a link.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.file_limits import Meter
from dovetail.predictors.onnx.node import DTYPES


class WeightReader:
    """Turns a `TensorProto` into a tensor, and counts its bytes."""

    def __init__(self, onnx: Any, meter: Meter, folder: Path | None) -> None:
        self._onnx = onnx
        self._name = meter.name
        self._meter = meter
        self._folder = folder

    def tensor(self, proto: Any, owner: str = "") -> Tensor:
        """The numbers of a tensor of the file; one without a name goes by its owner's."""
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
