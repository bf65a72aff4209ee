"""`dovetail.sweep`: checks its arguments, then runs the cases."""

from __future__ import annotations

import inspect
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO

import numpy as np

from dovetail.core.errors import OptionError
from dovetail.core.words import several
from dovetail.run.budget import Budget
from dovetail.run.environment import Interrupts, cores, processes
from dovetail.run.monitor import Monitor
from dovetail.run.processes import NotPicklable, WorkerLost, pooled
from dovetail.solving.options import log_stream
from dovetail.sweeping.sweep_result import COLUMNS, Case, SweepResult, SweepRow, cases_of, key_of

IMPORT_ADVICE = (
    "new processes import it by its name, so it has to be a function of a file: def it at the top of a "
    "module or of the program that is run (no lambda, no function in a function, nothing typed into a "
    "notebook)"
)


NOT_BEGUN = (
    "a process for build {name!r} {end} before it began: the program that is run is imported by every "
    'process, so put what it does, dovetail.sweep included, under `if __name__ == "__main__":`.'
)
LONGEST_ERROR = 2000
"""Largest number of characters of an error's text."""


def sweep(
    build: Callable[..., Any],
    grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    out: str | Path | None = None,
    n_jobs: int = 1,
    keep_results: bool = True,
    cluster: None = None,
    log: bool | TextIO = True,
) -> SweepResult:
    """Solve the model that `build` makes for each case of `grid`, several cases at a time (docs/sweep.md).

    `grid` maps names to lists of values, of which all combinations are cases, or is a list of mappings.
    `build(**case)` runs in another process, so it must be a function at the top level of a file. It returns
    a model for `dovetail.solve`, optionally with a mapping of keywords (``{"time_limit": 10}``). Cases are
    JSON values; tuples arrive as lists. `n_jobs` is the number of processes, at most one per core.

    Each row is written to the file `out` (JSON lines) as it comes. A sweep with an existing file solves only
    missing and failed cases. A case that raises an error, or whose process dies, is a row with `error`.
    Ctrl-C and SIGTERM return the rows so far; after a SIGTERM the next solve or sweep ends the process.
    `keep_results=False` leaves solutions and traces out of rows and file.

    >>> import dovetail as dt
    >>> from dovetail.testing.problems import busy
    >>> table = dt.sweep(busy, {"n": [2, 3], "seed": [0]}, log=False)
    >>> table, table.column("n"), table.column("status")
    (<SweepResult: 2 of 2 cases, 0 failed>, [2, 3], ['optimal', 'optimal'])
    >>> table[0].result.x[:2].tolist()
    [1.0, 1.0]
    """
    cases = cases_of(grid, COLUMNS)
    name = name_of(build, cases)
    n_jobs = processes(n_jobs)
    if not isinstance(keep_results, (bool, np.bool_)):
        raise OptionError(f"keep_results is {keep_results!r}; give True or False.")
    if cluster is not None:
        raise OptionError(f"cluster is {cluster!r}; cases run on this machine's cores: leave it out.")
    monitor = Monitor(Budget(inf), log_stream(log))
    jobs = min(n_jobs, cores())
    if n_jobs > jobs:
        monitor.say(f"  n_jobs: {n_jobs} processes were requested; {jobs} are used, one per core")
    file = None if out is None else ResultsFile.open(_path(out), name)
    begun = _Sweep(name, cases, file, monitor)
    return begun.run(solved_cases(name, build, begun.due, jobs, bool(keep_results)))


def _path(out: Any) -> Path:
    if not isinstance(out, (str, os.PathLike)):
        raise OptionError(f"out is {out!r}; give the path of a file.")
    return Path(out)


class _Sweep:
    def __init__(self, name: str, cases: list[Case], file: ResultsFile | None, monitor: Monitor) -> None:
        self._keys = [key_of(case) for case in cases]
        self._file, self._monitor = file, monitor
        kept = {} if file is None else file.rows
        self._done = {key: kept[key] for key in self._keys if key in kept and not kept[key].error}
        self.due = [case for case, key in zip(cases, self._keys, strict=True) if key not in self._done]
        monitor.say(f"sweep of {name}: {several(len(cases), 'case')}, {len(self.due):,} to solve")
        if file is not None and self._done:
            monitor.say(f"  {len(self._done)} are in {file.path} already")
        if file is not None and file.cut_off:
            monitor.say(
                f"  the last line of {file.path} was cut off: it is left out, its case is solved again"
            )

    def run(self, coming: Generator[SweepRow, None, None]) -> SweepResult:
        """Collect rows; an exception carries them. Ctrl-C and SIGTERM return the rows so far."""
        try:
            if self.due:
                with Interrupts(at_once=True), closing(coming) as rows:
                    for count, row in enumerate(rows, start=1):
                        self._take(row)
                        self._monitor.say(f"  {count}/{len(self.due)}  {row}")
        except KeyboardInterrupt:
            self._monitor.say("  interrupted: the rows so far are returned")
        except BaseException as failure:
            failure.result = self._result()  # type: ignore[attr-defined]
            raise
        return self._result()

    def _take(self, row: SweepRow) -> None:
        self._done[key_of(row.case)] = row  # printed first: a full disk must not lose it
        if self._file is not None:
            self._file.add(row)

    def _result(self) -> SweepResult:
        rows = tuple(self._done[key] for key in self._keys if key in self._done)
        return SweepResult(rows, len(self._keys), None if self._file is None else self._file.path)


def name_of(build: Any, cases: Sequence[Case]) -> str:
    """The function's name, if other processes can import it and it takes every case."""
    if not callable(build):
        raise OptionError(f"build is {build!r}; give a function that returns a problem for each case.")
    name = _name(build)
    try:
        pickled = pickle.dumps(build)
    except Exception as reason:
        raise OptionError(
            f"build {name!r} cannot be sent to another process ({reason}): {IMPORT_ADVICE}."
        ) from None
    if b"__main__" in pickled and not _main_is_a_file():
        raise OptionError(f"build {name!r} is not in a file: {IMPORT_ADVICE}.")
    _require_accepted(name, build, cases)
    return name


def _name(build: Any) -> str:
    while isinstance(build, partial):
        build = build.func
    return str(getattr(build, "__qualname__", type(build).__qualname__))


def _main_is_a_file() -> bool:
    """Whether another process can import the main program, as `multiprocessing` would."""
    main = sys.modules["__main__"]
    if getattr(main, "__spec__", None) is not None:  # python -m
        return True
    file = getattr(main, "__file__", None)
    return file is not None and Path(file).exists()


def _require_accepted(name: str, build: Callable[..., Any], cases: Sequence[Case]) -> None:
    try:
        signature = inspect.signature(build)
    except (TypeError, ValueError):  # functions written in C have no signature
        return
    for number, case in enumerate(cases):
        try:
            signature.bind(**case)
        except TypeError as reason:
            raise OptionError(
                f"build {name!r} does not take case {number} of grid ({reason}); the names of grid are its "
                "keywords."
            ) from None


def solved_cases(
    name: str, build: Callable[..., Any], cases: Sequence[Case], jobs: int, keep: bool
) -> Generator[SweepRow, None, None]:
    """Rows as they come, in any order, one for each case; closing the generator ends running cases. A case
    that fails, or whose process dies, is a row with an error; only errors that affect every case are
    raised."""
    work, take = partial(solved, name, build, keep=keep), partial(next, iter(cases), None)
    try:
        with closing(pooled(work, take, jobs, program=True)) as answers:
            for case, row in answers:
                if not isinstance(row, WorkerLost):
                    yield row
                elif row.begun:
                    yield SweepRow(case, name, error=f"its process {row}")
                else:
                    raise OptionError(NOT_BEGUN.format(name=name, end=row))
    except NotPicklable as reason:
        raise OptionError(f"build {name!r} cannot be imported by another process: {reason}") from None


def solved(name: str, build: Callable[..., Any], case: Case, keep: bool) -> SweepRow:
    """The row of one case, solved here; exceptions of `build` or `solve` become its error."""
    from dovetail.solving.solve import solve

    begin = perf_counter()
    stage = "build"
    try:
        model, options = _model_and_options(build(**case))
        build_seconds = perf_counter() - begin
        stage = "solve"
        result = solve(model, **{"log": False, "load": False, **options})
        return SweepRow.solved(case, name, result, build_seconds, keep=keep)
    except (Exception, SystemExit) as reason:
        return SweepRow(case, name, error=f"{stage}: {_error_in_one_line(reason)}")


def _model_and_options(built: Any) -> tuple[Any, Mapping[str, Any]]:
    """The model and options that `build` returned."""
    if not isinstance(built, tuple):
        return built, {}
    if len(built) != 2 or not isinstance(built[1], Mapping):
        raise OptionError(
            "build returned a tuple; give a problem, or a problem and a mapping of keywords for solve."
        )
    return built


def _error_in_one_line(reason: BaseException) -> str:
    """An error in one line, with the place where it was raised."""
    text = "".join(traceback.format_exception_only(reason)).strip()
    frames = traceback.extract_tb(reason.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return text[:LONGEST_ERROR] + where


class ResultsFile:
    """The rows in the file. Of two rows of one case the later one counts."""

    def __init__(self, path: Path, rows: dict[str, SweepRow], cut_off: bool) -> None:
        self.path, self.rows = path, rows
        self.cut_off = cut_off
        """Whether the last line was incomplete, as after a killed sweep, and was removed."""

    @classmethod
    def open(cls, path: Path, build: str) -> ResultsFile:
        """Open or create the file; one of another `build` is refused."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab"):  # created, or found to be writable
                pass
            text = path.read_bytes()
        except OSError as reason:
            raise OptionError(
                f"out is {str(path)!r}, which cannot be written ({reason.strerror}); give another file."
            ) from None
        end = text.rfind(b"\n") + 1
        rows: dict[str, SweepRow] = {}
        for number, line in enumerate(text[:end].splitlines(), start=1):
            row = _row(path, number, line)
            if row.build != build:
                raise OptionError(
                    f"{path} has rows of {row.build!r}, this is a sweep of {build!r}: give another out=."
                )
            rows[key_of(row.case)] = row
        if end < len(text):
            os.truncate(path, end)
        return cls(path, rows, end < len(text))

    def add(self, row: SweepRow) -> None:
        """Append a row and flush it to the disk."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(row.to_line() + "\n")
            file.flush()
            os.fsync(file.fileno())


def _row(path: Path, number: int, line: bytes) -> SweepRow:
    try:
        return SweepRow.from_line(line.decode("utf-8"))
    except (UnicodeDecodeError, OptionError) as reason:
        raise OptionError(
            f"{path}, line {number}: {reason}; it was changed, or is another file: give another out=, or "
            "take the line out."
        ) from None
