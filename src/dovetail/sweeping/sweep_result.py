"""What a sweep returns: a table whose rows are cases.

One row of a sweep: a case and what came of it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any, overload

from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.file_writing import write_file
from dovetail.run.record import LONGEST_REASON
from dovetail.run.result import Result
from dovetail.run.trace import frame
from dovetail.sweeping.cases import Case, said
from dovetail.version import __version__

COLUMNS = (
    "status", "stop_reason", "objective", "bound", "bound_kind", "gap", "iterations",
    "build_seconds", "seconds", "error",
)  # fmt: skip
"""Of the table, after the names of the grid."""


@dataclass(frozen=True, eq=False)
class SweepRow:
    """A case and what came of it: what `solve` said, or why it said nothing."""

    case: Case
    build: str
    """What was called, by name: rows of two functions are not mixed in one file."""
    dovetail: str = __version__
    status: str | None = None
    """As in `Result`, like the fields that follow; None where there is no result."""
    stop_reason: str | None = None
    objective: float | None = None
    bound: float | None = None
    bound_kind: str | None = None
    gap: float | None = None
    iterations: int | None = None
    build_seconds: float | None = None
    seconds: float | None = None
    """Of the solve."""
    error: str = ""
    """Why there is no result: the case is tried again when the sweep is."""
    full: dict[str, Any] | None = None
    """The whole result as `Result.to_json` writes it, if it was kept."""

    @classmethod
    def solved(cls, case: Case, build: str, result: Result, build_seconds: float, *, keep: bool) -> SweepRow:
        """The row of a case that has a result."""
        return cls(
            case,
            build,
            status=result.status.value,
            stop_reason=result.stop_reason.value,
            objective=result.objective,
            bound=result.bound,
            bound_kind=result.bound_kind.value,
            gap=result.gap,
            iterations=result.iterations,
            build_seconds=build_seconds,
            seconds=result.seconds,
            full=json.loads(result.to_json()) if keep else None,
        )

    @cached_property
    def result(self) -> Result:
        """The whole result, with its point; an error where there is none or it was not kept."""
        if self.full is None:
            why = self.error or "the sweep was run with keep_results=False"
            raise DovetailError(f"there is no result of {said(self.case)}: {why}")
        return Result.from_json(json.dumps(self.full))

    def record(self) -> dict[str, Any]:
        """The row of a table: the names of the grid, then `COLUMNS`."""
        return {**self.case, **{name: getattr(self, name) for name in COLUMNS}}

    def to_line(self) -> str:
        """One line of JSON, without its end."""
        return json.dumps({field.name: getattr(self, field.name) for field in fields(self)}, allow_nan=False)

    @classmethod
    def from_line(cls, line: str) -> SweepRow:
        """What `to_line` wrote; a line that somebody else wrote is an `OptionError`."""
        try:
            row = cls(**json.loads(line))
            for name, kind in (("case", dict), ("build", str), ("error", str), ("status", (str, type(None)))):
                if not isinstance(getattr(row, name), kind):
                    raise TypeError(f"{name} is {getattr(row, name)!r}")
            if not isinstance(row.full, (dict, type(None))):
                raise TypeError("full is no result")
        except (TypeError, ValueError, RecursionError) as reason:
            raise OptionError(f"no row of a sweep ({str(reason)[:LONGEST_REASON]})") from None
        return row

    def __str__(self) -> str:
        if self.error:
            return f"{said(self.case)}: failed, {self.error}"
        objective = "no point" if self.objective is None else f"objective {self.objective:.6g}"
        bound = "" if self.bound is None else f", bound {self.bound:.6g}"
        return f"{said(self.case)}: {self.status}, {objective}{bound}, {self.seconds or 0.0:.1f} s"


@dataclass(frozen=True, eq=False)
class SweepResult(Sequence[SweepRow]):
    """The rows of `dovetail.sweep` in the order of its grid, read like a list.

    >>> import dovetail as dt
    >>> from dovetail.sweeping.sweep_result import SweepRow
    >>> row = SweepRow({"budget": 2.0}, "build", status="optimal", objective=3.5)
    >>> table = dt.SweepResult((row,), planned=1)
    >>> table[0].case, table.column("objective"), table.failed
    ({'budget': 2.0}, [3.5], ())
    """

    rows: tuple[SweepRow, ...]
    planned: int
    """Cases of the grid; fewer have rows where Ctrl-C ended the sweep."""
    path: Path | None = None
    """The file that has the rows too."""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[SweepRow]:
        return iter(self.rows)

    @overload
    def __getitem__(self, k: int) -> SweepRow: ...
    @overload
    def __getitem__(self, k: slice) -> tuple[SweepRow, ...]: ...
    def __getitem__(self, k: int | slice) -> SweepRow | tuple[SweepRow, ...]:
        return self.rows[k]

    @property
    def failed(self) -> tuple[SweepRow, ...]:
        """Rows of cases that ended in an error, or whose process did."""
        return tuple(row for row in self.rows if row.error)

    def column(self, name: str) -> list[Any]:
        """One column of the table; None where a case does not have it."""
        return [row.record().get(name) for row in self.rows]

    def to_csv(self, path: str | Path) -> Path:
        """Write the table: the names of the grid, then what came of the cases. Lists are written as JSON."""
        names = dict.fromkeys(name for row in self.rows for name in row.case)  # an ordered set
        text = StringIO(newline="")
        writer = csv.DictWriter(text, [*names, *COLUMNS], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(v) for name, v in row.record().items()} for row in self.rows)
        return write_file(path, text.getvalue())

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        return frame("SweepResult.to_frame", [row.record() for row in self.rows])

    def __repr__(self) -> str:
        return f"<SweepResult: {len(self)} of {self.planned} cases, {len(self.failed)} failed>"


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, dict)) else value
