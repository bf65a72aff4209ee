"""The table that a sweep returns, with cases as rows."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any, overload

import numpy as np

from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.files import write_file
from dovetail.run.record import LONGEST_REASON
from dovetail.run.result import Result
from dovetail.run.trace import frame
from dovetail.version import __version__

COLUMNS = (
    "status", "stop_reason", "objective", "bound", "bound_kind", "gap", "iterations",
    "build_seconds", "seconds", "error",
)  # fmt: skip
"""Columns of the table after the names of the grid."""


@dataclass(frozen=True, eq=False)
class SweepRow:
    """A case with its result, or the reason why it has none."""

    case: Case
    build: str
    """The name of `build`, so that rows of two functions are not mixed in one file."""
    dovetail: str = __version__
    status: str | None = None
    """This field and the following ones are those of `Result`; None without a result."""
    stop_reason: str | None = None
    objective: float | None = None
    bound: float | None = None
    bound_kind: str | None = None
    gap: float | None = None
    iterations: int | None = None
    build_seconds: float | None = None
    seconds: float | None = None
    """Number of seconds of the solve."""
    error: str = ""
    """Why there is no result; the case is tried again by the next sweep."""
    full: dict[str, Any] | None = None
    """The whole result as `Result.to_json` writes it, if kept."""

    @classmethod
    def solved(cls, case: Case, build: str, result: Result, build_seconds: float, *, keep: bool) -> SweepRow:
        """The row of a case with a result."""
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
        """The whole result with its solution; an error if there is none or it was not kept."""
        if self.full is None:
            why = self.error or "the sweep was run with keep_results=False"
            raise DovetailError(f"there is no result of {case_in_words(self.case)}: {why}")
        return Result.from_json(json.dumps(self.full))

    def record(self) -> dict[str, Any]:
        """The row of a table: the names of the grid, then `COLUMNS`."""
        return {**self.case, **{name: getattr(self, name) for name in COLUMNS}}

    def to_line(self) -> str:
        """One line of JSON without its end."""
        return json.dumps({field.name: getattr(self, field.name) for field in fields(self)}, allow_nan=False)

    @classmethod
    def from_line(cls, line: str) -> SweepRow:
        """Read what `to_line` wrote; an `OptionError` for other lines."""
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
            return f"{case_in_words(self.case)}: failed, {self.error}"
        objective = "no solution" if self.objective is None else f"objective {self.objective:.6g}"
        bound = "" if self.bound is None else f", bound {self.bound:.6g}"
        return f"{case_in_words(self.case)}: {self.status}, {objective}{bound}, {self.seconds or 0.0:.1f} s"


@dataclass(frozen=True, eq=False)
class SweepResult(Sequence[SweepRow]):
    """The rows of `dovetail.sweep`, in the order of its grid; reads like a list.

    >>> import dovetail as dt
    >>> from dovetail.sweeping.sweep_result import SweepRow
    >>> row = SweepRow({"budget": 2.0}, "build", status="optimal", objective=3.5)
    >>> table = dt.SweepResult((row,), planned=1)
    >>> table[0].case, table.column("objective"), table.failed
    ({'budget': 2.0}, [3.5], ())
    """

    rows: tuple[SweepRow, ...]
    planned: int
    """Number of cases of the grid; fewer have rows after Ctrl-C."""
    path: Path | None = None
    """The file with the rows."""

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
        """Rows of cases that ended in an error, or whose process died."""
        return tuple(row for row in self.rows if row.error)

    def column(self, name: str) -> list[Any]:
        """One column of the table; None for cases without it."""
        return [row.record().get(name) for row in self.rows]

    def to_csv(self, path: str | Path) -> Path:
        """Write the table: the names of the grid, then the results. Lists are written as JSON."""
        names = dict.fromkeys(name for row in self.rows for name in row.case)  # an ordered set
        text = StringIO(newline="")
        writer = csv.DictWriter(text, [*names, *COLUMNS], lineterminator="\n")
        writer.writeheader()
        for row in self.rows:
            cells = row.record().items()
            writer.writerow({k: json.dumps(v) if isinstance(v, (list, dict)) else v for k, v in cells})
        return write_file(path, text.getvalue())

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        return frame("SweepResult.to_frame", [row.record() for row in self.rows])

    def __repr__(self) -> str:
        return f"<SweepResult: {len(self)} of {self.planned} cases, {len(self.failed)} failed>"


Case = dict[str, Any]
"""A JSON value, so that a case is the same when it is read from a file."""

GRID = "give a mapping of names to lists of values, or a list of mappings of names to values"


def cases_of(grid: Any, taken: Collection[str]) -> list[Case]:
    """All combinations of a mapping's values, or the mappings of a sequence; `taken` names are refused."""
    if isinstance(grid, Mapping):
        given = _product(grid) if grid else []
    elif isinstance(grid, Iterable) and not isinstance(grid, (str, bytes)):
        given = list(grid)
    else:
        raise OptionError(f"grid is {grid!r}; {GRID}.")
    if not given:
        raise OptionError(f"grid is empty; {GRID}.")
    cases = [_case(f"case {number} of grid", case) for number, case in enumerate(given)]
    _require_free(cases, taken)
    _require_different(cases)
    return cases


def key_of(case: Case) -> str:
    """A key that identifies a case, here and in a file."""
    return json.dumps(case, sort_keys=True, allow_nan=False)


def case_in_words(case: Case) -> str:
    """A case in one line of the log."""
    return ", ".join(f"{name} {json.dumps(value)}" for name, value in case.items()) or "the only case"


def _product(grid: Mapping[Any, Any]) -> list[Case]:
    for name, values in grid.items():
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise OptionError(f"grid: the values of {name!r} are {values!r}; give a list of them.")
    lists = {name: list(values) for name, values in grid.items()}
    for name, values in lists.items():
        if not values:
            raise OptionError(f"grid: there are no values of {name!r}; give a list with at least one.")
    return [dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())]


def _case(what: str, case: Any) -> Case:
    if not isinstance(case, Mapping):
        raise OptionError(f"{what} is {case!r}; {GRID}.")
    plain = {_name(what, name): _as_json(f"{what}: {name}", value) for name, value in case.items()}
    read: Case = json.loads(json.dumps(plain))  # an enum becomes a string or a number
    return read


def _name(what: str, name: Any) -> str:
    if not isinstance(name, str):
        raise OptionError(f"{what} has the name {name!r}; names are strings, the keywords of build.")
    return str(name)


def _as_json(what: str, value: Any) -> Any:
    """The value as in JSON: numpy's numbers and arrays as Python's, tuples as lists."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (list, tuple)):
        return [_as_json(what, item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _as_json(what, item) for name, item in value.items()}
    raise OptionError(
        f"{what} is {value!r}, which JSON cannot "
        f"represent; give finite numbers, strings, True, False, None, "
        "or lists and mappings of them, and let build convert them."
    )


def _require_free(cases: list[Case], taken: Collection[str]) -> None:
    for name in sorted({name for case in cases for name in case}):
        if name in taken:
            raise OptionError(
                f"grid names {name!r}, which is a column of the table of results ({', '.join(taken)}); "
                "call it something else."
            )


def _require_different(cases: list[Case]) -> None:
    seen: dict[str, int] = {}
    for number, case in enumerate(cases):
        first = seen.setdefault(key_of(case), number)
        if first != number:
            raise OptionError(
                f"cases {first} and {number} of grid are the same ({case_in_words(case)}); leave one out."
            )
