"""The results file: JSON lines, one per run, written as soon as the run ends.

The first line says which version wrote it and under which settings. Nothing is ever rewritten: an
interrupted bench loses at most the run it was in, and a line that was cut off by a crash is dropped
when the file is opened again.
"""

from __future__ import annotations

import json
import math
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import dovetail as dt
from dovetail.experiments.run import Record, Run, Settings

FORMAT = 1
"""Raised when rows of old files no longer mean the same."""
NAME = "results.jsonl"


class Ledger:
    """The rows so far, and a way to add one."""

    def __init__(self, path: Path, header: dict[str, Any], records: list[Record]) -> None:
        self.path, self.header, self.records = path, header, records
        self._keys = {record["key"] for record in records}

    @classmethod
    def create(cls, folder: Path, settings: Settings, jobs: int = 1) -> Ledger:
        """A new file; an old one is never overwritten."""
        path = folder / NAME
        if path.exists():
            raise dt.OptionError(f"{path} is there already; go on with --resume, or give another --out.")
        header = {
            "format": FORMAT,
            "dovetail": dt.__version__,
            "settings": said(settings),
            "jobs": jobs,
            "machine": _machine(),
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(_line(header), encoding="utf-8")
        except OSError as reason:
            raise dt.OptionError(
                f"{path} cannot be written ({reason.strerror}); give another --out."
            ) from None
        return cls(path, header, [])

    @classmethod
    def open(cls, folder: Path, *, any_version: bool = False) -> Ledger:
        """The file of an earlier bench; of another version only to be read, never to be gone on with."""
        path = folder / NAME
        try:
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            raise dt.OptionError(f"{path} is not there; leave out --resume to begin.") from None
        whole, cut = text.rsplit("\n", 1) if "\n" in text else ("", text)
        try:
            header, *records = [json.loads(line) for line in whole.splitlines()]
            kind, wrote = header["format"], header["dovetail"]
        except (ValueError, KeyError, TypeError):
            raise dt.OptionError(
                f"{path} is not a results file of dovetail bench; give another --out."
            ) from None
        if kind != FORMAT or (wrote != dt.__version__ and not any_version):
            raise dt.OptionError(
                f"{path} was written by dovetail {wrote} (format {kind}), this is {dt.__version__} "
                f"(format {FORMAT}): its rows cannot be mixed with new ones. Give another --out."
            )
        keys = [record["key"] for record in records]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise dt.OptionError(f"{path} has the run {twice!r} twice; remove one of the lines.")
        if cut and not any_version:
            os.truncate(path, len(whole.encode("utf-8", errors="surrogateescape")) + 1)
        return cls(path, header, records)

    def has(self, run: Run) -> bool:
        """Whether this run is done."""
        return run.key in self._keys

    def add(self, record: Record) -> None:
        """Append a run, and make sure it is on the disk."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(record))
            file.flush()
            os.fsync(file.fileno())
        self.records.append(record)
        self._keys.add(record["key"])

    def of(self, experiment: str) -> list[Record]:
        """The rows of one experiment."""
        return [record for record in self.records if record["experiment"] == experiment]


def said(settings: Settings) -> dict[str, Any]:
    """The settings that every row of a file must share, as they stand in its first line."""
    return {
        "quick": settings.quick,
        "data": "look-alike" if settings.data is None else "real",
        "time_limit": settings.time_limit,
        "baseline_limit": settings.baseline_limit,
    }


def _machine() -> dict[str, Any]:
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("torch", "highspy", "piqp", "pyscipopt", "pyscipopt-ml")},
    }


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"


def _line(record: Record) -> str:
    return json.dumps(_plain(record), allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """JSON has neither NaN nor infinity: such a number is not there."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
