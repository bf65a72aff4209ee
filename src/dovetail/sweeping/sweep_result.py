"""What a sweep returns: a table whose rows are cases."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, overload

from dovetail.core.file_writing import write_file
from dovetail.run.trace import frame
from dovetail.sweeping.row import COLUMNS, SweepRow


@dataclass(frozen=True, eq=False)
class SweepResult(Sequence[SweepRow]):
    """The rows of `dovetail.sweep` in the order of its grid, read like a list.

    >>> import dovetail as dt
    >>> from dovetail.sweeping.row import SweepRow
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
