"""`dovetail.sweep`, as the user calls it: everything is looked at, then the cases are run."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from math import inf
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from dovetail.core.amounts import several
from dovetail.core.errors import OptionError
from dovetail.core.options import require_count
from dovetail.run.budget import Budget
from dovetail.run.environment import Interrupts, cores
from dovetail.run.monitor import Monitor
from dovetail.solving.options import log_stream
from dovetail.sweeping.build_function import name_of
from dovetail.sweeping.cases import Case, cases_of, key_of
from dovetail.sweeping.results_file import ResultsFile
from dovetail.sweeping.row import COLUMNS, SweepRow
from dovetail.sweeping.solved_cases import solved_cases
from dovetail.sweeping.sweep_result import SweepResult


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
    """Solve the problem that `build` makes of each case of `grid`, several at a time.

    `grid` is a mapping of names to lists of values, of which all combinations are cases, or a list of
    mappings. `build(**case)` is called in another process, so it has to be a function of a file; it returns
    what `dovetail.solve` takes, or that and a mapping of keywords for `solve` (``{"time_limit": 10}``).
    Cases are what JSON can say; tuples arrive as lists. There are `n_jobs` processes, at most one per core.

    Every row is written to the file `out` as it comes (JSON lines). A sweep with a file that is there
    already solves what is missing in it, and what failed, and leaves the rest alone. A case that raises an
    error or takes its process with it is a row that says so. Ctrl-C and SIGTERM return the rows there are;
    after a SIGTERM the next solve or sweep ends the process.
    `keep_results=False` leaves points and traces out of rows and file.

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
    require_count("n_jobs", n_jobs, at_least=1)
    if not isinstance(keep_results, (bool, np.bool_)):
        raise OptionError(f"keep_results is {keep_results!r}; give True or False.")
    if cluster is not None:
        raise OptionError(f"cluster is {cluster!r}; cases run on this machine's cores: leave it out.")
    monitor = Monitor(Budget(inf), log_stream(log))
    jobs = min(int(n_jobs), cores())
    if n_jobs > jobs:
        monitor.say(f"  n_jobs: {n_jobs} processes were asked for; {jobs} are used, one per core there is")
    file = None if out is None else ResultsFile.open(_path(out), name)
    begun = _Sweep(name, cases, file, monitor)
    return begun.run(solved_cases(name, build, begun.due, jobs, bool(keep_results)))


def _path(out: Any) -> Path:
    if not isinstance(out, (str, os.PathLike)):
        raise OptionError(f"out is {out!r}; give the path of a file.")
    return Path(out)


class _Sweep:
    """Cases on their way to rows."""

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
        """Take rows as they come; what is raised carries them. Ctrl-C and SIGTERM return the rows so far."""
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
        self._done[key_of(row.case)] = row  # first: a full disk does not take it away
        if self._file is not None:
            self._file.add(row)

    def _result(self) -> SweepResult:
        rows = tuple(self._done[key] for key in self._keys if key in self._done)
        return SweepResult(rows, len(self._keys), None if self._file is None else self._file.path)
