"""Predictors in files: formats from untrusted sources are parsed, and formats that run code need
`trust=True`.

A pickle is a program: reading a pickle runs it. `.pt` files are read only with torch's loader for plain
tensors, without a fallback. Pickles, joblib files, TorchScript and `.pt2` archives are read only with
`trust=True`, which declares that the file is as trustworthy as the user's own code.
"""

from __future__ import annotations

import logging
import os
import pickle
import zipfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
from torch import nn

from dovetail.core.errors import DovetailError, MissingDependencyError, OptionError, PredictorError
from dovetail.core.files import FileLimits, Meter

TREES = (".json", ".ubj", ".txt")
LARGEST_FILE = 1 << 32
"""Largest number of bytes of weights and estimators from strangers, unpacked."""

LINE = "\n"
_log = logging.getLogger("dovetail")


class UntrustedFileError(PredictorError):
    """A file that can run code when it is loaded, without `trust=True`."""


def load_predictor(
    path: str | Path,
    module: nn.Module | None = None,
    *,
    trust: bool = False,
    limits: FileLimits | None = None,
) -> Any:
    """Load the module, estimator or model in a file, ready for `add_predictor`.

    `.pt`, `.pth` and `.safetensors` hold weights: pass the `module` that they belong to; it is filled and
    returned. `.onnx`, `.skops`, and the trees of XGBoost (`.json`, `.ubj`) and LightGBM (`.txt`) are read
    without running code. `.pkl`, `.pickle`, `.joblib`, `.pt2`, and `.pt` files with a whole module or
    TorchScript can run any code when they are loaded, and need `trust=True`.

    Size and time of reading are limited; `limits=dovetail.FileLimits(bytes=..., elements=..., seconds=...)`
    raises the limits for a file that you trust.

    >>> import tempfile, dovetail as dt, torch
    >>> net = torch.nn.Linear(2, 1)
    >>> with tempfile.NamedTemporaryFile(suffix=".pt") as file:
    ...     torch.save(net.state_dict(), file.name)
    ...     loaded = dt.load_predictor(file.name, module=torch.nn.Linear(2, 1))
    >>> torch.equal(loaded.weight, net.weight)
    True
    """
    file = _path(path)
    found = _contents(file, trust, limits)
    if module is not None or isinstance(found, Mapping):
        return _with_weights(file, module, found)
    return found


def load_weights(path: str | Path) -> dict[str, torch.Tensor]:
    """The tensors in a `.pt`, `.pth` or `.safetensors` file, in order, without running code."""
    file = _path(path)
    return _weights(file, _contents(file, False, None))


def _contents(file: Path, trust: bool, limits: FileLimits | None) -> Any:
    if limits is not None and not isinstance(limits, FileLimits):
        raise OptionError(f"limits is {limits!r}; give dovetail.FileLimits(...).")
    _require_file(file)
    suffix = file.suffix.lower()
    if suffix not in _READERS:
        known = ", ".join(sorted(_READERS))
        raise PredictorError(
            f"{file} is no kind of file dovetail reads ({known}); load it with the library that wrote it, "
            "and pass the object."
        )
    if suffix in _PROGRAMS and not trust:
        raise _untrusted(file)
    try:
        if not trust and suffix not in TREES:  # these files have limits of their own
            _require_size(file, limits)
        return _READERS[suffix](file, trust, limits)
    except DovetailError:
        raise
    except Exception as reason:
        raise PredictorError(
            f"{file} cannot be read as {suffix} ({type(reason).__name__}: {str(reason).partition(LINE)[0]}); "
            "is it whole?"
        ) from reason


def _path(path: object) -> Path:
    if isinstance(path, (str, os.PathLike)) and "\0" not in str(path):
        return Path(path)
    raise PredictorError(f"load_predictor takes the path of a file, not {path!r}.")


def _require_size(file: Path, limits: FileLimits | None) -> None:
    """Refuse files that are too large when unpacked: `.pt` and `.skops` are archives."""
    allowed = (limits or FileLimits()).before(FileLimits(bytes=LARGEST_FILE))
    meter = Meter(str(file), allowed, "load_predictor", PredictorError)
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            meter.add_bytes(sum(part.file_size for part in archive.infolist()), "it unpacks to")
    else:
        meter.add_bytes(file.stat().st_size, "it has")


def _require_file(file: Path) -> None:
    if not file.exists():
        raise PredictorError(f"there is no file {file}; check the path.")
    if not file.is_file():
        raise PredictorError(f"{file} is a directory or the like, not a file; give the file itself.")


def _untrusted(file: Path, because: str = "") -> PredictorError:
    return UntrustedFileError(
        f"{file} {because}can run any code when it is loaded. If it comes from a source you trust as your "
        f"own code, load it with dovetail.load_predictor({str(file)!r}, trust=True) and pass the result. For "
        "exchange, keep a state dict (.pt), ONNX or skops instead."
    )


# --- weights ----------------------------------------------------------------------------------------


def _with_weights(file: Path, module: nn.Module | None, found: Any) -> nn.Module:
    """The module with the weights loaded; on an error it is unchanged."""
    weights = _weights(file, found)
    if module is None:
        raise PredictorError(
            f"{file} holds weights, not the network they belong to; build the module and fill it: "
            f"dovetail.load_predictor({str(file)!r}, module=net)."
        )
    if not isinstance(module, nn.Module):
        raise PredictorError(f"module= is {type(module).__name__}; give the torch.nn.Module to fill.")
    before = {name: value.detach().clone() for name, value in module.state_dict().items()}
    try:
        module.load_state_dict(weights)
    except Exception as reason:
        module.load_state_dict(before)
        raise PredictorError(
            f"the weights in {file} are not those of this {type(module).__name__}: {reason}"
        ) from reason
    cast = {str(weights[name].dtype) for name in before if weights[name].dtype != before[name].dtype}
    if cast:
        _log.info("%s: weights of %s cast to the dtype of the module", file, " and ".join(sorted(cast)))
    return module


def _weights(file: Path, found: Any) -> dict[str, torch.Tensor]:
    if not isinstance(found, Mapping):
        raise PredictorError(f"{file} holds {type(found).__name__}, no weights; leave module= out.")
    if not all(isinstance(value, torch.Tensor) for value in found.values()):
        raise PredictorError(
            f"{file} holds a dictionary ({', '.join(map(str, [*found][:5]))}), not weights alone; read it "
            "with torch.load(path, weights_only=True), and give the part that is the state dict to the "
            "module's load_state_dict."
        )
    return dict(found)


def _torch_file(file: Path, trust: bool, limits: FileLimits | None) -> Any:
    """Weights; with trust, also whole modules and TorchScript."""
    try:
        return torch.load(file, map_location="cpu", weights_only=not trust)
    except (pickle.UnpicklingError, RuntimeError) as reason:
        if trust or "weights_only" not in str(reason):  # otherwise the file holds more than numbers
            raise
        raise _untrusted(file, "holds more than weights (or is damaged), and ") from reason


# --- whole objects ----------------------------------------------------------------------------------


def _skops(file: Path, trust: bool, limits: FileLimits | None) -> Any:
    """An estimator of types that skops knows to be harmless; with trust, of any types."""
    skops = _library(file, "skops.io", "skops")
    strange = skops.get_untrusted_types(file=file)
    if strange and not trust:
        raise UntrustedFileError(
            f"{file} holds types that skops does not know to be harmless ({', '.join(strange[:5])}); if you "
            f"trust them, load it with dovetail.load_predictor({str(file)!r}, trust=True)."
        )
    return skops.load(file, trusted=strange)


def _library(file: Path, module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as reason:
        raise MissingDependencyError(f"reading {file} takes {package}: pip install {package}") from reason


_READERS: dict[str, Callable[[Path, bool, FileLimits | None], Any]] = {
    ".onnx": lambda file, trust, limits: _reader("onnx.model:onnx_predictor")(file, limits=limits),
    **dict.fromkeys(TREES, lambda file, trust, limits: _reader("trees.file:load_trees")(file, limits)),
    ".pt": _torch_file,
    ".pth": _torch_file,
    ".safetensors": lambda file, trust, limits: _library(file, "safetensors.torch", "safetensors").load_file(
        file, device="cpu"
    ),
    ".skops": _skops,
    ".pkl": lambda file, trust, limits: pickle.loads(file.read_bytes()),
    ".pickle": lambda file, trust, limits: pickle.loads(file.read_bytes()),
    ".joblib": lambda file, trust, limits: _library(file, "joblib", "joblib").load(file),
    ".pt2": lambda file, trust, limits: torch.export.load(file).module(),
}


def _reader(place: str) -> Callable[..., Any]:
    read: Callable[..., Any] = resolve_name(f"dovetail.predictors.{place}")
    return read


_PROGRAMS = (".pkl", ".pickle", ".joblib", ".pt2")
"""File types that can run code."""
