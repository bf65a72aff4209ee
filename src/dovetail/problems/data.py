"""Where the real data is, if it is anywhere: the caller's folder, or the one DOVETAIL_DATA names."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from dovetail.core.errors import OptionError

VARIABLE = "DOVETAIL_DATA"


def find(name: str, folder: str | Path | None = None) -> Path | None:
    """The real file `name`, or None when no folder was given: then look-alike data is made.

    A folder that was given and does not hold the file is an error, not a reason to make up data.
    """
    chosen = folder if folder is not None else os.environ.get(VARIABLE)
    if not chosen:
        return None
    path = Path(chosen) / name
    if not path.is_file():
        raise OptionError(
            f"{path} is not there; give the folder that holds {name} by --data or {VARIABLE}, "
            "or neither to use look-alike data."
        )
    return path


def read_records(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a header."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def column(path: Path, records: list[dict[str, str]], name: str) -> list[str]:
    """One column, or an error that names the file and what it lacks."""
    if not records or name not in records[0]:
        raise OptionError(f"{path} has no column {name!r}.")
    return [record[name] for record in records]
