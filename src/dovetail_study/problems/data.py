"""The folder of the real data, if there is one: the caller's, or the one named by DOVETAIL_DATA."""

from __future__ import annotations

import csv
import os
import re
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError

VARIABLE = "DOVETAIL_DATA"
"""The environment variable that names a folder of real data for every problem."""

# Places in an .xlsx file by its standard (ECMA-376).
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATIONS = "xl/_rels/workbook.xml.rels"
_LINK = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


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


def read_sheet(path: Path, sheet: str) -> list[dict[str, str]]:
    """The rows of one sheet of an .xlsx file whose first row is a header; an empty cell is "".

    Such a file is a zip of XML, and a table of numbers and words needs no library beyond that.
    """
    try:
        with zipfile.ZipFile(path) as file:
            parts = {name: file.read(name) for name in file.namelist()}
        links = {tie.get("Id"): tie.get("Target", "") for tie in ET.fromstring(parts[_RELATIONS])}
        sheets = {
            found.get("name"): links[found.get(_LINK)]
            for found in ET.fromstring(parts["xl/workbook.xml"]).iter(f"{_MAIN}sheet")
        }
        if sheet not in sheets:
            raise OptionError(f"{path} has no sheet {sheet!r}.")
        words = [
            "".join(text.text or "" for text in entry.iter(f"{_MAIN}t"))
            for entry in ET.fromstring(parts.get("xl/sharedStrings.xml", b"<sst/>"))
        ]
        table = ET.fromstring(parts[f"xl/{sheets[sheet].removeprefix('/xl/')}"])
    except (zipfile.BadZipFile, ET.ParseError, KeyError) as reason:
        raise OptionError(f"{path} cannot be read as an .xlsx file ({reason}).") from None
    rows = [
        {re.sub("\\d", "", cell.get("r", "")): _content(cell, words) for cell in row.iter(f"{_MAIN}c")}
        for row in table.iter(f"{_MAIN}row")
    ]
    header = rows[0] if rows else {}
    return [
        {name: row.get(place, "") for place, name in header.items()} for row in rows[1:] if any(row.values())
    ]


def _content(cell: ET.Element, words: list[str]) -> str:
    """Texts are stored once in a separate list, and cells refer to this list."""
    if cell.get("t") == "inlineStr":
        return "".join(text.text or "" for text in cell.iter(f"{_MAIN}t"))
    value = cell.findtext(f"{_MAIN}v", "")
    return words[int(value)] if cell.get("t") == "s" else value


def numbers(path: Path, records: list[dict[str, str]], names: Sequence[str]) -> FloatArray:
    """(rows, names) the named columns as numbers; an empty entry is NaN, a text that is not a number
    raises an error that names it."""
    result = np.empty((len(records), len(names)))
    for k, name in enumerate(names):
        for i, entry in enumerate(column(path, records, name)):
            try:
                result[i, k] = float(entry or "nan")
            except (TypeError, ValueError):
                raise OptionError(f"{path}: {name!r} has the entry {entry!r}, not a number.") from None
    return result


def complete_rows(path: Path, features: Sequence[str], target: str) -> tuple[FloatArray, FloatArray]:
    """(rows, features) and (rows,) of a CSV file, without the rows that have a gap."""
    table = numbers(path, read_records(path), (*features, target))
    table = table[np.isfinite(table).all(axis=1)]
    return table[:, :-1], table[:, -1]


def column(path: Path, records: list[dict[str, str]], name: str) -> list[str]:
    """One column, or an error that names the file and what it lacks."""
    if not records or name not in records[0]:
        raise OptionError(f"{path} has no column {name!r}.")
    return [record[name] for record in records]
