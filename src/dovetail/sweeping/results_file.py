"""The file of a sweep: a line of JSON per row, written as they come, so that it can be gone on with."""

from __future__ import annotations

import os
from pathlib import Path

from dovetail.core.errors import OptionError
from dovetail.sweeping.cases import key_of
from dovetail.sweeping.row import SweepRow


class ResultsFile:
    """Rows on the disk. Of two rows of one case the later one counts."""

    def __init__(self, path: Path, rows: dict[str, SweepRow], cut_off: bool) -> None:
        self.path, self.rows = path, rows
        self.cut_off = cut_off
        """Whether the last line was half a line, as a killed sweep leaves it; it is gone."""

    @classmethod
    def open(cls, path: Path, build: str) -> ResultsFile:
        """The file, made where it is not there; one of another `build` is refused."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab"):  # made, or found to be writable
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
        """Append a row and make sure it is on the disk."""
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
