"""Predictors in files: weights are read, programs are not, and damage ends in a typed error."""

import io
import os
import pickle
import re
import sys
import types
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

import dovetail as dt
from dovetail.core.predictor import as_predictor

X = np.random.default_rng(0).uniform(-1, 1, (5, 2))


def net(width=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 1))


def touch(marker):
    Path(marker).write_text("code has run")


class Evil:
    """Runs code when it is unpickled."""

    def __init__(self, marker):
        self._marker = str(marker)

    def __reduce__(self):
        return touch, (self._marker,)


def tied(predictor):
    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, 1.0], lower=-9.0, upper=9.0))
    return problem.add_predictor(predictor, [0, 1], [2])


# --- evil files, each written by a function of (path, marker) ----------------------------------------


def plain_pickle(path, marker):
    path.write_bytes(pickle.dumps(Evil(marker)))


def old_pickle(path, marker):
    path.write_bytes(pickle.dumps(Evil(marker), protocol=0))


def pickle_inside_a_dict(path, marker):
    path.write_bytes(pickle.dumps({"0.weight": Evil(marker)}))


def torch_zip(path, marker):
    torch.save(Evil(marker), path)


def torch_legacy(path, marker):
    torch.save({"state_dict": Evil(marker)}, path, _use_new_zipfile_serialization=False)


def state_dict_with_a_passenger(path, marker):
    torch.save({**net().state_dict(), "extra": Evil(marker)}, path)


def state_dict_with_metadata(path, marker):
    state = net().state_dict()
    state._metadata = Evil(marker)
    torch.save(state, path)


def whole_module_with_a_passenger(path, marker):
    module = net()
    module.extra = Evil(marker)
    torch.save(module, path)


def joblib_file(path, marker):
    joblib.dump(Evil(marker), path)


def joblib_compressed(path, marker):
    joblib.dump([Evil(marker)], path, compress=3)


def repacked(source, replace, path):
    """A zip archive with some of its members replaced."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, replace(name, old.read(name)))


def torch_zip_tampered(path, marker):
    """A state dict whose pickle was exchanged."""
    buffer = io.BytesIO()
    torch.save(net().state_dict(), buffer)
    repacked(buffer, lambda n, b: pickle.dumps(Evil(marker)) if n.endswith("data.pkl") else b, path)


def archive_of_pickles(path, marker):
    """Shaped like a .pt2: every member that may be unpickled is evil."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/archive_format", "pt2")
        for name in ("model.pt", "data/sample_inputs/model.pt", "data.pkl", "version"):
            archive.writestr(f"archive/{name}", pickle.dumps(Evil(marker)))


WRITERS = [
    plain_pickle,
    old_pickle,
    pickle_inside_a_dict,
    torch_zip,
    torch_legacy,
    state_dict_with_a_passenger,
    state_dict_with_metadata,
    whole_module_with_a_passenger,
    joblib_file,
    joblib_compressed,
    torch_zip_tampered,
    archive_of_pickles,
]
pytestmark = pytest.mark.filterwarnings("ignore:Detected pickle protocol:UserWarning")
SUFFIXES = [
    ".pt",
    ".pth",
    ".pkl",
    ".pickle",
    ".joblib",
    ".pt2",
    ".PT",
    ".Pkl",
    ".skops",
    ".safetensors",
    ".onnx",
]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("write", WRITERS, ids=lambda writer: writer.__name__)
def test_evil_files_run_nothing(write, suffix, tmp_path):
    marker, path = tmp_path / "marker", tmp_path / f"net{suffix}"
    write(path, marker)
    for attempt in (
        lambda: dt.load_predictor(path),
        lambda: dt.load_predictor(str(path), module=net()),
        lambda: tied(path),
        lambda: tied(str(path)),
    ):
        with pytest.raises((dt.PredictorError, dt.MissingDependencyError)):
            attempt()
        assert not marker.exists()


@pytest.mark.parametrize("suffix", [".pt", ".pkl", ".joblib"])
def test_the_evil_files_are_evil(suffix, tmp_path):
    marker, path = tmp_path / "marker", tmp_path / f"net{suffix}"
    {".pt": torch_zip, ".pkl": plain_pickle, ".joblib": joblib_file}[suffix](path, marker)
    dt.load_predictor(path, trust=True)
    assert marker.exists()


def test_loaders_that_run_code_are_called_in_one_file_only():
    calls = (
        r"weights_only=(?!True)|pickle\.loads?\(|joblib\b.*\.load|export\.load|jit\.load|\beval\(|\bexec\("
    )
    files = Path(dt.__file__).parents[1].glob("dovetail*/**/*.py")
    found = {p.name for p in files if re.search(calls, re.sub(r"\.eval\(", "", p.read_text()))}
    # beside files: what a process and the workers that it started tell each other
    assert found == {"files.py", "processes.py"}


# --- weights ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".pt", ".pth"])
def test_weights_go_into_a_module(suffix, tmp_path):
    path, source = tmp_path / f"net{suffix}", net()
    source[0].weight.data += 1.0
    torch.save(source.state_dict(), path)
    target = net()
    assert dt.load_predictor(path, module=target) is target
    assert np.array_equal(tied(target).predictor.predict(X), as_predictor(source).predict(X))


def test_weights_alone_are_no_predictor(tmp_path):
    path = tmp_path / "net.pt"
    torch.save(net().state_dict(), path)
    for attempt in (lambda: tied(path), lambda: dt.load_predictor(path), lambda: tied(str(path))):
        with pytest.raises(dt.PredictorError, match=r"holds weights.*load_predictor\(.*module=net\)"):
            attempt()


def test_weights_of_another_network_leave_the_module_as_it_was(tmp_path):
    path, target = tmp_path / "net.pt", net()
    other = net(7).state_dict()
    other["2.bias"] += 5.0  # it has the right shape, so torch has copied it when it finds the others
    torch.save(other, path)
    before = {name: value.clone() for name, value in target.state_dict().items()}
    with pytest.raises(dt.PredictorError, match=r"not those of this Sequential(.|\n)*size mismatch"):
        dt.load_predictor(path, module=target)
    assert all(torch.equal(before[name], value) for name, value in target.state_dict().items())


def test_a_checkpoint_says_what_it_holds(tmp_path):
    path = tmp_path / "net.pt"
    torch.save({"epoch": 3, "model": net().state_dict()}, path)
    with pytest.raises(dt.PredictorError, match=r"a dictionary \(epoch, model\), not weights alone"):
        dt.load_predictor(path, module=net())


def test_a_file_of_another_dtype_is_cast_and_said(tmp_path, caplog):
    path = tmp_path / "net.pt"
    torch.save(net().double().state_dict(), path)
    with caplog.at_level("INFO", "dovetail"):
        dt.load_predictor(path, module=net())
    assert "weights of torch.float64 cast to the dtype of the module" in caplog.text


def test_a_module_for_a_file_that_needs_none(tmp_path):
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(LinearRegression().fit(X, X[:, 0])))
    with pytest.raises(dt.PredictorError, match="LinearRegression, no weights; leave module= out"):
        dt.load_predictor(path, module=net(), trust=True)
    torch.save(net().state_dict(), tmp_path / "net.pt")
    with pytest.raises(dt.PredictorError, match="module= is LinearRegression"):
        dt.load_predictor(tmp_path / "net.pt", module=LinearRegression())


# --- whole objects ----------------------------------------------------------------------------------


def save_pickle(model, path):
    path.write_bytes(pickle.dumps(model))


@pytest.mark.parametrize(
    ("suffix", "save"), [(".pkl", save_pickle), (".pickle", save_pickle), (".joblib", joblib.dump)]
)
def test_estimators_take_trust(suffix, save, tmp_path):
    path, model = tmp_path / f"model{suffix}", LinearRegression().fit(X, X[:, 0])
    save(model, path)
    with pytest.raises(dt.PredictorError) as raised:
        tied(str(path))
    assert "can run any code when it is loaded" in str(raised.value)
    assert f"dovetail.load_predictor({str(path)!r}, trust=True)" in str(raised.value)
    block = tied(dt.load_predictor(path, trust=True))
    assert np.array_equal(block.predictor.predict(X)[:, 0], model.predict(X))


def test_a_whole_module_takes_trust(tmp_path):
    path = tmp_path / "net.pt"
    torch.save(net(), path)
    with pytest.raises(dt.PredictorError, match="can run any code when it is loaded"):
        tied(path)
    block = tied(dt.load_predictor(path, trust=True))
    assert np.array_equal(block.predictor.predict(X), as_predictor(net()).predict(X))


def test_a_class_that_its_owner_allowed_is_read_safely(tmp_path):
    path = tmp_path / "net.pt"
    torch.save(nn.Tanh(), path)
    with torch.serialization.safe_globals([nn.Tanh, set]):
        assert isinstance(dt.load_predictor(path), nn.Tanh)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_torchscript_takes_trust(tmp_path):
    path = tmp_path / "net.pt"
    torch.jit.trace(net(), torch.zeros(3, 2)).save(path)
    with pytest.raises(dt.PredictorError, match="can run any code when it is loaded"):
        tied(path)
    block = tied(dt.load_predictor(path, trust=True))
    assert np.array_equal(block.predictor.predict(X), as_predictor(net()).predict(X))


def test_an_exported_program_takes_trust(tmp_path, monkeypatch):
    path = tmp_path / "net.pt2"
    path.write_bytes(b"anything")
    with pytest.raises(dt.PredictorError, match="can run any code when it is loaded"):
        tied(path)
    monkeypatch.setattr(torch.export, "load", lambda file: types.SimpleNamespace(module=net))
    assert isinstance(dt.load_predictor(path, trust=True), nn.Sequential)


def library(monkeypatch, **functions):
    """A stand-in for skops, which is not installed here."""
    monkeypatch.setitem(sys.modules, "skops", types.ModuleType("skops"))
    module = types.ModuleType("skops.io")
    module.__dict__.update(functions)
    monkeypatch.setitem(sys.modules, "skops.io", module)


def test_skops_reads_what_it_knows_and_the_rest_with_trust(tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    path.write_bytes(b"-")
    given = []

    def load(file, trusted):
        given.append(trusted)
        return LinearRegression().fit(X, X[:, 0])

    library(monkeypatch, get_untrusted_types=lambda file: [], load=load)
    tied(path)
    library(monkeypatch, get_untrusted_types=lambda file: ["os.system"], load=load)
    with pytest.raises(dt.PredictorError, match=r"harmless \(os.system\).*trust=True"):
        tied(path)
    assert given == [[]]
    dt.load_predictor(path, trust=True)
    assert given == [[], ["os.system"]]


@pytest.mark.parametrize(("suffix", "package"), [(".skops", "skops"), (".safetensors", "safetensors")])
def test_a_library_that_is_not_there(suffix, package, tmp_path, monkeypatch):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"-")
    for name in (package, f"{package}.torch"):  # the part may have been imported before
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(dt.MissingDependencyError, match=f"pip install {package}"):
        tied(path)


def test_safetensors_go_into_a_module(tmp_path, monkeypatch):
    path = tmp_path / "net.safetensors"
    path.write_bytes(b"-")
    module = types.ModuleType("safetensors.torch")
    module.load_file = lambda file, device: {k: v + 1.0 for k, v in net().state_dict().items()}
    monkeypatch.setitem(sys.modules, "safetensors", types.ModuleType("safetensors"))
    monkeypatch.setitem(sys.modules, "safetensors.torch", module)
    filled = dt.load_predictor(path, module=net())
    assert torch.equal(filled[2].bias, net()[2].bias + 1.0)
    with pytest.raises(dt.PredictorError, match="holds weights"):
        tied(path)


# --- no such file, and damage -----------------------------------------------------------------------


def test_there_must_be_a_file(tmp_path):
    with pytest.raises(dt.PredictorError, match="there is no file .*missing.pt; check the path"):
        tied(tmp_path / "missing.pt")
    with pytest.raises(dt.PredictorError, match="builtins.str is not a predictor.*the path of a file"):
        tied("relu")
    (tmp_path / "folder.pt").mkdir()
    with pytest.raises(dt.PredictorError, match="is a directory"):
        tied(tmp_path / "folder.pt")
    os.symlink(tmp_path / "nowhere", tmp_path / "link.pt")
    with pytest.raises(dt.PredictorError, match="there is no file"):
        tied(tmp_path / "link.pt")


@pytest.mark.parametrize("as_given", [str, Path])
@pytest.mark.parametrize("name", ["net", "net.keras", "net.h5", "net.csv", "net.npz"])
def test_other_kinds_of_files(name, as_given, tmp_path):
    (tmp_path / name).write_bytes(b"-")
    with pytest.raises(dt.PredictorError, match="no kind of file dovetail reads.*pass the object"):
        tied(as_given(tmp_path / name))


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".onnx"])
def test_garbage(suffix, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / f"net{suffix}"
    for size in (0, 1, 10, 1000, 20_000):
        path.write_bytes(rng.bytes(size))
        with pytest.raises(dt.DovetailError):
            dt.load_predictor(path, module=None)


@pytest.mark.parametrize("suffix", [".pt", ".pkl", ".joblib"])
def test_truncated_files_even_with_trust(suffix, tmp_path):
    path = tmp_path / f"net{suffix}"
    model = LinearRegression().fit(X, X[:, 0])
    {".pt": lambda: torch.save(net().state_dict(), path), ".pkl": lambda: save_pickle(model, path)}.get(
        suffix, lambda: joblib.dump(model, path)
    )()
    whole = path.read_bytes()
    for part in np.linspace(0, len(whole) - 1, 12).astype(int):
        path.write_bytes(whole[:part])
        for trust in (False, True):
            with pytest.raises(dt.PredictorError):
                dt.load_predictor(path, trust=trust)


def test_flipped_bytes_in_weights(tmp_path):
    path = tmp_path / "net.pt"
    torch.save(net().state_dict(), path)
    whole, rng = path.read_bytes(), np.random.default_rng(1)
    for _ in range(200):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(damaged))
        try:
            module = dt.load_predictor(path, module=net())
        except dt.PredictorError:
            continue
        assert isinstance(module, nn.Sequential)  # a weight changed: torch keeps no sum over them


def test_weights_that_are_no_numbers(tmp_path):
    path, source = tmp_path / "net.pt", net()
    source[0].bias.data[0] = np.nan
    torch.save(source.state_dict(), path)
    with pytest.raises(dt.PredictorError, match="0.bias holds NaN"):
        tied(dt.load_predictor(path, module=net()))


def test_an_archive_is_measured_unpacked(tmp_path):
    """A `.pt` file is a zip archive: ten megabytes of zeros are ten kilobytes in it."""
    buffer, path = io.BytesIO(), tmp_path / "net.pt"
    torch.save({"weight": torch.zeros(1 << 20, dtype=torch.float64)}, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert path.stat().st_size < 100_000
    with pytest.raises(dt.PredictorError, match=r"it unpacks to \d+ bytes; the limit is 1,000,000 bytes"):
        dt.load_predictor(path, net(), limits=dt.FileLimits(bytes=1_000_000))
    with pytest.raises(dt.PredictorError, match="not those of this Sequential"):
        dt.load_predictor(path, net())
