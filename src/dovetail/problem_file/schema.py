"""What a problem file may say: its tables, their keys, and what kind of value each takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.core.suggestion import did_you_mean
from dovetail.problem_file.document import Document, Place
from dovetail.solving.solve import solve


@dataclass(frozen=True)
class ValueKind:
    """What a value may be."""

    words: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class Key:
    """One key of a table."""

    kind: ValueKind
    required: bool = False
    inner: Mapping[str, Key] | None = None
    """The keys of the table, or of each table, that it holds; None leaves them to others."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_name_or_number(value: Any) -> bool:
    return isinstance(value, str) or _is_number(value)


def _are_inputs(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list)
        and len(value) > 0
        and (
            all(map(_is_name_or_number, value))
            or all(isinstance(row, list) and row and all(map(_is_name_or_number, row)) for row in value)
        )
    )


def _are_outputs(value: Any) -> bool:
    rows = value if isinstance(value, list) else []
    entries = [entry for row in rows for entry in (row if isinstance(row, list) else [row])]
    return _are_inputs(value) and all(isinstance(entry, str) for entry in entries)


TEXT = ValueKind("text in quotes", lambda value: isinstance(value, str) and value != "")
NUMBER = ValueKind("a number", _is_number)
COUNT = ValueKind("a whole number", _is_count)
INPUTS = ValueKind("a list of names and numbers, or a list of such lists, one for each sample", _are_inputs)
OUTPUTS = ValueKind("a list of names, or a list of such lists, one for each sample", _are_outputs)
TABLE = ValueKind("a table", lambda value: isinstance(value, dict))
TABLES = ValueKind(
    "one or more tables",
    lambda value: isinstance(value, list) and all(isinstance(table, dict) for table in value),
)

_KIND_OF_OPTION = {"float": NUMBER, "float | None": NUMBER, "int": COUNT, "int | None": COUNT,
                   "str | None": TEXT}  # fmt: skip
"""By the type of an option of `dovetail.solve`; others (objects, functions) cannot be said in a file."""

SOLVE = {
    name: Key(_KIND_OF_OPTION[option.annotation])
    for name, option in inspect.signature(solve).parameters.items()
    if option.annotation in _KIND_OF_OPTION
}
"""The options of `dovetail.solve` that are numbers or text."""

PREDICTOR = {
    "file": Key(TEXT, required=True),
    "inputs": Key(INPUTS, required=True),
    "outputs": Key(OUTPUTS, required=True),
    "name": Key(TEXT),
    "output_type": Key(TEXT),
    "threshold": Key(NUMBER),
    "epsilon": Key(NUMBER),
    "data": Key(TEXT),
    "activation": Key(TEXT),
}
PROBLEM_FILE = {
    "model": Key(TEXT, required=True),
    "predictor": Key(TABLES, inner=PREDICTOR),
    "method": Key(TABLE),
    "solve": Key(TABLE, inner={**SOLVE, "start": Key(TEXT)}),
    "output": Key(TABLE, inner={name: Key(TEXT) for name in ("solution", "report", "certificate")}),
}


def require_schema(document: Document) -> None:
    """Refuse a file that says something else, or in another way; the error names the line."""
    _require_table(document, (), document.content, PROBLEM_FILE)


def _require_table(
    document: Document, place: Place, table: Mapping[str, Any], keys: Mapping[str, Key]
) -> None:
    where = f"[{'.'.join(str(part) for part in place if isinstance(part, str))}]" if place else "this file"
    for name in table:
        if name not in keys:
            meant = did_you_mean(name, keys) or f"; its keys are {', '.join(keys)}."
            raise document.wrong((*place, name), f"{where} has no key {name!r}{meant}")
    for name, key in keys.items():
        if name in table:
            _require_value(document, (*place, name), table[name], key)
        elif key.required:
            raise document.wrong(place, f"{where} needs the key {name!r}.")


def _require_value(document: Document, place: Place, value: Any, key: Key) -> None:
    name = place[-1]
    if not key.kind.fits(value):
        said = (
            f"; write [[{name}]]" if key.kind is TABLES else f"; write [{name}]" if key.kind is TABLE else ""
        )
        raise document.wrong(place, f"{name} is {_shown(value)}, but takes {key.kind.words}{said}.")
    if key.inner is not None:
        tables = value if isinstance(value, list) else [value]
        for k, table in enumerate(tables):
            inner = (*place, k) if isinstance(value, list) else place
            _require_table(document, inner, table, key.inner)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
