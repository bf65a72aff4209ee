"""Results in files: dataclasses to JSON and back.

A file may be truncated or edited, so `read` checks every part before use; a `ValueError`, `KeyError` or
`TypeError` names the fault. The fields of the dataclass define the types of the parts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

LONGEST_REASON = 200
"""Largest number of characters of a reason in a message, because a reason may quote a whole file."""
FIELDS_WITH_DEFAULTS = ("precision", "rounding", "column", "part", "evaluations")
"""Fields that files of earlier versions do not have: these keep their defaults."""


def unreadable(text: str | bytes, reason: Exception) -> str:
    """Why the text of a result could not be read: usually the text is incomplete."""
    said = text.decode(errors="replace") if isinstance(text, bytes) else text
    said = said.strip()
    fails_at = reason.pos if isinstance(reason, json.JSONDecodeError) and said.startswith("{") else -1
    if fails_at >= 0 and (not said.endswith("}") or fails_at >= len(said)):
        return (
            f"the result ends in the middle, after {len(said):,} characters: it was not written or "
            "copied to its end; write or copy it again."
        )
    what = "it is empty" if not said else f"{type(reason).__name__}: {reason}"[:LONGEST_REASON]
    return f"this is not a result as --solution and Result.to_json write it ({what}); give one of those."


def sayable(value: Any) -> Any:
    """A value in JSON form: NaN and infinity, which JSON lacks, are written as text."""
    if is_dataclass(value):
        return {part.name: sayable(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {key: sayable(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = value if isinstance(value, (list, tuple)) else list(value)
        kinds = set(map(type, items))  # a million finite numbers or names need no conversion
        if kinds == {str} or (kinds == {float} and all(map(math.isfinite, items))):
            return items
        return [sayable(item) for item in items]
    return value


def read(what: str, value: Any, kind: Any) -> Any:
    """A value from a file as a `kind`: a dataclass, an enum, a number, a word, an array, or a list of
    these."""
    outer, inner = get_origin(kind), get_args(kind)
    if outer in (Union, UnionType):
        return None if value is None else read(what, value, next(one for one in inner if one is not NoneType))
    if outer is np.ndarray:
        return _array(what, value, np.dtype(get_args(inner[1])[0]))
    if outer in (tuple, list, Sequence):
        items = [read(what, item, inner[0]) for item in _required(what, value, list)]
        return items if outer is list else tuple(items)
    if outer is Mapping:
        _required(what, value, dict)
        return {
            read(what, key, inner[0]): read(f"{what} of {key}", item, inner[1]) for key, item in value.items()
        }
    if is_dataclass(kind):
        return _dataclass_of(what, value, kind)
    if issubclass(kind, Enum):
        return kind(value)
    return _number(what, value) if kind is float else _required(what, value, kind)


def _dataclass_of(what: str, value: Any, kind: Any) -> Any:
    """The dataclass, if the record has its fields, and no others."""
    known = _hints(kind)
    for name in _required(what, value, dict):
        if name not in known:
            raise ValueError(f"{what} has {name!r}, which is not a key of it")
    for name in known:
        if name not in value and name not in FIELDS_WITH_DEFAULTS:
            raise ValueError(f"{what} has no {name!r}")
    return kind(**{name: read(f"{what}.{name}", item, known[name]) for name, item in value.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _required(what: str, value: Any, kind: type) -> Any:
    """The value, if it has that type; true does not count as a number."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{what} is {str(value)[:40]!r}, no {kind.__name__}")
    return value


def _number(what: str, value: Any) -> float:
    """A number; NaN and infinity were written as words."""
    if isinstance(value, bool) or not (isinstance(value, (int, float)) or value in ("nan", "inf", "-inf")):
        raise ValueError(f"{what} is {str(value)[:40]!r}, no number")
    return float(value)


def _array(what: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Numbers in lists of lists of equal length."""
    array = np.array(_required(what, value, list))
    if array.dtype.kind not in "iuf":  # words, ragged lists, whole numbers beyond all floats
        told = np.array(value, dtype=object)
        array = np.vectorize(lambda item: _number(what, item), otypes=[np.float64])(told)
    if dtype.kind == "i" and array.size and array.dtype.kind == "f":
        raise ValueError(f"{what} is {str(value)[:40]!r}, no whole numbers")
    return array.astype(dtype)
