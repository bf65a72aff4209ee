"""Checkpoints: what a solve knows, in a file, so that another process can continue it.

The file is a zip of `checkpoint.json` and of arrays in numpy's format; reading it runs no code (the format is
in docs/long_solves.md). It has the best solution, the best bound with its support, multipliers, the course so
far, the options, and the fingerprint of the problem. Search trees and columns are not in it: a
resumed solve builds them again and knows solution and bound from the beginning.

A file is written under a temporary name and then renamed, so that a process that is killed at any moment
leaves a complete file. A file that cannot be written costs the checkpoint and not the solve.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError
from dovetail.core.files import require_writable, write_file
from dovetail.core.options import require_number
from dovetail.core.stated_program import StatedProgram
from dovetail.report.gains import Gain
from dovetail.run.bound import NO_BOUND, Bound, Scope, Support
from dovetail.run.failures import expendable
from dovetail.run.incumbent import Incumbent
from dovetail.run.monitor import Monitor, Ticker
from dovetail.run.record import read, sayable
from dovetail.run.result import Multipliers

FORMAT = 1
HEADER, X, PRICES, ARCHIVE = "checkpoint.json", "x", "prices", "archive"
INPUTS, OUTPUTS = "inputs", "outputs"
"""Names of the parts of a file; multipliers are numbered by block."""
SAVED = 100
"""Largest number of verified solutions in a file."""
SECONDS, FIRST = 60.0, 1.0
"""Largest pause between two files, and the first one: pauses double, so that at most half of the work, or a
minute, is lost."""


@dataclass(frozen=True)
class SavedOptions:
    """The options of a solve, for the one that continues it."""

    time_limit: float
    """In seconds, from the first start; infinite without a limit."""
    gap: float
    absolute_gap: float
    target: float | None
    seed: int
    n_jobs: int
    device: str | None
    solutions: int
    distance: float


@dataclass(frozen=True)
class SavedBound:
    """A bound, in minimisation form; its prices are an array of the file."""

    value: float
    source: str
    scope: Scope
    support: Support


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What is known at one moment of a solve."""

    version: str
    """The version of dovetail that wrote it."""
    problem: str
    """The fingerprint of the problem."""
    command: tuple[str, ...]
    """The files of the problem, if the solve was started on the command line."""
    method: str
    """The name of the method; "" for a method object."""
    options: SavedOptions
    columns: int
    seconds: float
    """Seconds of work so far, those before an earlier checkpoint included."""
    objective: float | None
    source: str
    """The source of the solution."""
    bound: SavedBound | None
    """None without a bound, or if the fingerprint does not cover what a predictor computes."""
    blocks: tuple[str, ...]
    """The blocks that have multipliers."""
    rho: float | None
    incumbents: list[Gain]
    bounds: list[Gain]
    x: FloatArray | None
    prices: FloatArray | None
    """(rows,) of the bound."""
    multipliers: Multipliers | None
    archive: FloatArray | None = None
    """(solutions, columns) verified solutions, if several are asked for; the best of them."""

    @property
    def proof(self) -> Bound:
        """The bound."""
        if self.bound is None:
            return NO_BOUND
        known = self.bound
        return Bound(known.value, known.source, known.scope, known.support, self.prices)

    def to_bytes(self) -> bytes:
        """The contents of the file."""
        header = {name: getattr(self, name) for name in _KINDS}
        arrays = {X: self.x, PRICES: self.prices, ARCHIVE: self.archive}
        given = self.multipliers
        for k, name in enumerate(self.blocks if given is not None else ()):
            assert given is not None
            arrays[f"{INPUTS}.{k}"] = given.inputs[name]
            arrays[f"{OUTPUTS}.{k}"] = given.outputs.get(name)
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as file:
            file.writestr(HEADER, json.dumps(sayable({"format": FORMAT, **header}), allow_nan=False))
            for name, array in arrays.items():
                if array is not None:
                    part = io.BytesIO()
                    np.lib.format.write_array(part, np.asarray(array, dtype="<f8"), allow_pickle=False)
                    file.writestr(f"{name}.npy", part.getvalue())
        return content.getvalue()


ARRAYS = ("x", "prices", "multipliers", "archive")
_KINDS = {name: kind for name, kind in get_type_hints(Checkpoint).items() if name not in ARRAYS}
"""The types of the fields that the header has."""


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint in a file; an `OptionError` if the file is none, or is damaged."""
    place = Path(path)
    try:
        with zipfile.ZipFile(place) as file:
            return _read(file)
    except FileNotFoundError:
        raise OptionError(f"there is no file {place}.") from None
    except (KeyError, ValueError, TypeError, OSError, EOFError, RecursionError, zipfile.BadZipFile) as reason:
        raise OptionError(f"{place} is not a checkpoint, or it is damaged ({reason}).") from None


def _read(file: zipfile.ZipFile) -> Checkpoint:
    if any(part.compress_type != zipfile.ZIP_STORED for part in file.infolist()):
        raise ValueError("its parts are compressed")  # so that it unpacks to no more than its own size
    header = json.loads(file.read(HEADER))
    if header["format"] != FORMAT:
        raise ValueError(f"its format {header['format']!r} is not known")
    given: dict[str, Any] = {name: read(name, header[name], kind) for name, kind in _KINDS.items()}
    x, prices = _array(file, X, (given["columns"],)), _array(file, PRICES)
    if (x is None) != (given["objective"] is None):
        raise ValueError("solution and objective do not belong together")
    if not given["seconds"] >= 0.0 or any(np.isnan(gain.value) for gain in given["bounds"]):
        raise ValueError("a number in it is impossible")
    multipliers = None
    if given["rho"] is not None:
        inputs, outputs = (
            {name: _array(file, f"{kind}.{k}") for k, name in enumerate(given["blocks"])}
            for kind in (INPUTS, OUTPUTS)
        )
        known = {name: values for name, values in outputs.items() if values is not None}
        multipliers = Multipliers(
            {name: values for name, values in inputs.items() if values is not None}, known, given["rho"]
        )
    archive = _array(file, ARCHIVE)
    if archive is not None and (archive.ndim != 2 or archive.shape[1] != given["columns"]):
        raise ValueError(f"{ARCHIVE} is damaged")
    return Checkpoint(**given, x=x, prices=prices, multipliers=multipliers, archive=archive)


def _array(file: zipfile.ZipFile, name: str, shape: tuple[int, ...] | None = None) -> FloatArray | None:
    """A finite array of this shape, if the file has it."""
    if f"{name}.npy" not in file.namelist():
        return None
    array = np.lib.format.read_array(io.BytesIO(file.read(f"{name}.npy")), allow_pickle=False)
    if array.dtype != np.dtype("<f8") or not np.all(np.isfinite(array)) or shape not in (None, array.shape):
        raise ValueError(f"{name} is damaged")
    return np.asarray(array, dtype=np.float64)


@dataclass(frozen=True)
class CheckpointFile:
    """Where and how often checkpoints are written."""

    path: Path
    seconds: float = SECONDS
    command: tuple[str, ...] = ()
    """How the command line stated the problem, for `dovetail resume`."""

    @classmethod
    def checked(cls, given: object) -> CheckpointFile | None:
        """What `checkpoint=` names; an error if it cannot be written, or would overwrite something else."""
        if given is None:
            return None
        if isinstance(given, (str, os.PathLike)) and os.fspath(given):
            given = cls(Path(os.fsdecode(given)))
        if not isinstance(given, cls):
            raise OptionError(f"checkpoint is {given!r}; give the path of a file.")
        require_number("checkpoint: seconds", given.seconds, above=0.0)
        try:
            require_writable(given.path)
        except (OptionError, ValueError) as reason:  # a null character in the path
            raise OptionError(f"checkpoint: {reason}") from None
        if given.path.is_file() and given.path.stat().st_size and not _is_checkpoint(given.path):
            raise OptionError(f"{given.path} is no checkpoint and would be overwritten; give another name.")
        return given


def _is_checkpoint(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as file:
            return HEADER in file.namelist()
    except zipfile.BadZipFile:
        return False


class CheckpointWriter:
    """Writes checkpoints of a solve while it is used as a context manager, and one at the end."""

    def __init__(
        self,
        file: CheckpointFile,
        first: Checkpoint,
        incumbent: Incumbent,
        program: StatedProgram,
        monitor: Monitor,
        multipliers: Callable[[], Multipliers | None],
        *,
        bounded: bool,
    ) -> None:
        """`first` has everything that stays the same; `bounded`: whether bounds are written."""
        self._file, self._first, self._incumbent, self._program = file, first, incumbent, program
        self._monitor, self._multipliers, self._bounded = monitor, multipliers, bounded
        self._ticker = Ticker(self._attempt, file.seconds, FIRST)
        self._failed = False

    def __enter__(self) -> CheckpointWriter:
        self._ticker.start()
        return self

    def __exit__(self, *trouble: object) -> None:
        self._ticker.stop()
        self._attempt()

    def _attempt(self) -> None:
        """Write a checkpoint; the first failure is logged, and later ones may succeed."""
        with expendable("checkpoint"):
            try:
                write_file(self._file.path, self._now().to_bytes())
            except (OptionError, MemoryError) as reason:
                if not self._failed:
                    self._failed = True
                    said = str(reason) or "no memory"
                    self._monitor.say(f"checkpoint: {said} The solve continues.", "warning")

    def _now(self) -> Checkpoint:
        # the bound is read before the solution: a bound may come from the solution that was known then
        proof, incumbent = self._incumbent.proof, self._incumbent
        x, given = incumbent.x, self._multipliers()
        known = self._bounded and np.isfinite(proof.value)
        return replace(
            self._first,
            seconds=self._monitor.elapsed,
            objective=None if x is None else self._program.objective(x),
            source=incumbent.source,
            bound=SavedBound(proof.value, proof.source, proof.scope, proof.support) if known else None,
            blocks=() if given is None else tuple(given.inputs),
            rho=None if given is None else given.rho,
            incumbents=list(incumbent.incumbents),
            bounds=list(incumbent.bounds) if self._bounded else [],
            x=x,
            prices=proof.prices if known else None,
            multipliers=given,
            archive=None
            if incumbent.verified is None
            else incumbent.verified.best(SAVED, self._first.columns),
        )
