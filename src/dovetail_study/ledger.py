"""The results file: JSON lines, one per run, written as soon as the run ends.

The first line says which version wrote it and under which settings; every other line names the commit and the
machine that made it. Nothing is ever rewritten: an interrupted bench loses at most the run it was in, and a
line that was cut off by a crash is dropped when the file is opened again.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Collection
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import dovetail as dt
from dovetail_study.experiment import THREADS, BenchSettings, Record, Run

FORMAT = 2
"""Increased when rows of old files change their meaning; older files can be read, not continued."""
NAME = "results.jsonl"


PACKAGES = (Path(dt.__file__).parent, Path(__file__).parent)
"""The library and the study: a row depends on both."""
VARIABLE = "DOVETAIL_COMMIT"
"""The environment variable with the commit, if the code was copied without its history."""


class Ledger:
    """The rows so far, and a way to add one."""

    def __init__(
        self, path: Path, header: dict[str, Any], records: list[Record], provenance: Provenance
    ) -> None:
        self.path, self.header, self.records, self.provenance = path, header, records, provenance
        self._by_key = {record["key"]: record for record in records}

    @classmethod
    def create(cls, folder: Path, settings: BenchSettings, shared: int = 1) -> Ledger:
        """A new file; an old one is never overwritten."""
        path = folder / NAME
        if path.exists():
            raise dt.OptionError(f"{path} is there already; go on with --resume, or give another --out.")
        provenance = Provenance.here(shared)
        header = {
            "format": FORMAT,
            "dovetail": dt.__version__,
            "settings": said(settings),
            "jobs": shared,
            "machine": _machine(),
            "commit": provenance.commit,
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(_line(header), encoding="utf-8")
        except OSError as reason:
            raise dt.OptionError(
                f"{path} cannot be written ({reason.strerror}); give another --out."
            ) from None
        return cls(path, header, [], provenance)

    @classmethod
    def open(cls, folder: Path, *, shared: int = 1, any_version: bool = False) -> Ledger:
        """The file of an earlier bench; one of another version only for reading."""
        path = folder / NAME
        header, records, whole = _read(path)
        kind, wrote = header["format"], header["dovetail"]
        known = kind <= FORMAT if any_version else (kind, wrote) == (FORMAT, dt.__version__)
        if not known:
            raise dt.OptionError(
                f"{path} was written by dovetail {wrote} (format {kind}), this is {dt.__version__} "
                f"(format {FORMAT}): its rows cannot be mixed with new ones. Give another --out."
            )
        if not any_version and path.stat().st_size > whole:
            os.truncate(path, whole)
        return cls(path, header, records, Provenance.here(shared))

    def has(self, run: Run) -> bool:
        """Whether this run is done."""
        return run.key in self._by_key

    def due(self, run: Run) -> bool:
        """Whether this run is not done and may begin: the run it depends on found a point.

        As long as that run is not done, the answer is unknown.
        """
        if self.has(run):
            return False
        return run.given is None or bool(self._by_key.get(run.given, {}).get("found"))

    def add(self, record: Record) -> None:
        """Append a run with where it comes from, and make sure it is on the disk."""
        self._append([{**record, **asdict(self.provenance)}])

    def of(self, experiment: str) -> list[Record]:
        """The rows of one experiment."""
        return [record for record in self.records if record["experiment"] == experiment]

    def require_one_commit(self) -> None:
        """Refuse to add rows of another commit without the option for this."""
        for record in self.records:
            if record["commit"] != self.provenance.commit:
                raise dt.OptionError(
                    f"{self.path} has rows of commit {record['commit']}, this is {self.provenance.commit}; "
                    "go back to that commit, give another --out, or add --mix-commits: every row keeps its "
                    "own, and the page says which tables are mixed."
                )

    def merge(self, path: Path, experiments: Collection[str], *, mix_commits: bool = False) -> int:
        """Copy the rows of these experiments from another file, all or none; returns how many were new.

        An identical row is left out.
        """
        header, records, _ = _read(path)
        for name in ("format", "dovetail", "settings"):
            if header[name] != self.header[name]:
                raise dt.OptionError(
                    f"{path} has {name} {header[name]}, {self.path} has {self.header[name]}: their rows "
                    "cannot be mixed. Run the missing ones with the settings of the first."
                )
        wanted = [record for record in records if record["experiment"] in experiments]
        new = [record for record in wanted if self._by_key.get(record["key"]) != record]
        for record in new:
            if record["key"] in self._by_key:
                raise dt.OptionError(
                    f"the run {record['key']!r} is in {self.path} and, with another outcome, in {path}; "
                    "remove one of the lines."
                )
        commits = {record["commit"] for record in (*self.records, *new)}
        if len(commits) > 1 and not mix_commits:
            raise dt.OptionError(
                f"{path} and {self.path} have rows of the commits {', '.join(sorted(commits))}; add "
                "--mix-commits if that is meant: every row keeps its own."
            )
        self._append(new)
        return len(new)

    def _append(self, records: list[Record]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(map(_line, records)))
            file.flush()
            os.fsync(file.fileno())
        self.records.extend(records)
        self._by_key.update((record["key"], record) for record in records)


def said(settings: BenchSettings) -> dict[str, Any]:
    """The settings that every row of a file must share, from its first line."""
    return {
        "quick": settings.quick,
        "data": "look-alike" if settings.data is None else "real",
        "time_limit": settings.time_limit,
        "baseline_limit": settings.baseline_limit,
        "writing_limit": settings.writing_limit,
    }


def _read(path: Path) -> tuple[dict[str, Any], list[Record], int]:
    """First line, rows, and their size in bytes: the rest was cut off."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        raise dt.OptionError(
            f"{path} is not there; leave out --resume, --merge and --report-only to begin."
        ) from None
    whole = text[: text.rfind("\n") + 1]
    try:
        header, *records = [json.loads(line) for line in whole.splitlines()]
        header["settings"], header["format"] + 0, header["dovetail"] + ""
        keys = [record["key"] for record in records]
    except (ValueError, KeyError, TypeError):
        raise dt.OptionError(f"{path} is not a results file of dovetail bench; give another.") from None
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise dt.OptionError(f"{path} has the run {twice!r} twice; remove one of the lines.")
    return header, records, len(whole.encode("utf-8", errors="surrogateescape"))


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
    return json.dumps(_json_value(record), allow_nan=False) + "\n"


def _json_value(value: Any) -> Any:
    """JSON has neither NaN nor infinity: such a number is left out."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    return [_json_value(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Provenance:
    """The origin of each row."""

    commit: str
    """The commit of the code, with a "+" if files had been changed since; the version if there is no git."""
    machine: str
    threads: int
    """The seed of the solve."""
    shared: int
    """Number of runs at the same time."""
    dovetail: str
    """The version."""

    @classmethod
    def here(cls, shared: int = 1) -> Provenance:
        """The origin of current runs, with this number at a time."""
        machine = f"{platform.machine()}, {os.cpu_count()} cores"
        return cls(commit(*PACKAGES), machine, THREADS, shared, dt.__version__)


@lru_cache(maxsize=1)
def commit(*packages: Path) -> str:
    """The commit of the code in these folders, read once, at the start."""
    # a wheel may be installed below another repository: the right one tracks our files
    known = [_git(package, "ls-files", "--error-unmatch", "__init__.py") for package in packages]
    head = _git(packages[0], "rev-parse", "HEAD")
    if None in known or head is None:
        return os.environ.get(VARIABLE) or dt.__version__
    changed = any(_git(package, "status", "--porcelain", "--", ".") for package in packages)
    return head + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str | None:
    """The answer of git, or None if there is none."""
    try:
        said = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:  # git is not installed
        return None
    return said.stdout.strip() if said.returncode == 0 else None
