"""The parts of a result as they stand in a file.

A file may have been cut, edited or made up, so every part is looked at before it is believed: a `ValueError`,
`KeyError` or `TypeError` says what is wrong with one.
"""

from __future__ import annotations

import json
import math
from typing import Any, overload

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.check import Violation, Worst
from dovetail.core.extrapolation import Extrapolation
from dovetail.report.gains import Gain
from dovetail.run.trace import Residual, Row
from dovetail.run.work import Work
from dovetail.run.written_model import ModelEnd, WrittenModel

LONGEST_REASON = 200
"""Characters of a reason that a message repeats: it may quote a whole file."""


def unreadable(text: str | bytes, reason: Exception) -> str:
    """Why the text of a result could not be read: most often it is there in part only."""
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
    """JSON has no NaN, no infinity and no numpy: the first two are written as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: sayable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        kinds = set(map(type, value))  # a million numbers or names that can all be said are not gone through
        if kinds == {str} or (kinds == {float} and all(map(math.isfinite, value))):
            return value
        return [sayable(item) for item in value]
    return value


def require(what: str, value: Any, kind: type) -> Any:
    """The value, if it is of that kind; true is no number."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{what} is {str(value)[:40]!r}, no {kind.__name__}")
    return value


@overload
def number(what: str, value: Any) -> float: ...
@overload
def number(what: str, value: Any, *, optional: bool) -> float | None: ...
def number(what: str, value: Any, *, optional: bool = False) -> float | None:
    """A number; those JSON cannot say were written as words."""
    if value is None and optional:
        return None
    if isinstance(value, bool) or not (isinstance(value, (int, float)) or value in ("nan", "inf", "-inf")):
        raise ValueError(f"{what} is {str(value)[:40]!r}, no number")
    return float(value)


def array_of(what: str, value: Any) -> FloatArray:
    """Numbers in lists of lists of equal length."""
    array = np.array(require(what, value, list))
    if array.dtype.kind not in "iuf":  # words, ragged lists, whole numbers beyond all floats
        told = np.array(value, dtype=object)
        array = np.vectorize(lambda item: number(what, item), otypes=[np.float64])(told)
    return array.astype(np.float64)


def texts(what: str, value: Any) -> list[str]:
    """A list of strings."""
    return [require(what, item, str) for item in require(what, value, list)]


def extrapolation(record: Any) -> Extrapolation:
    """Where one input left the training data."""
    numbers = {name: number(name, record[name]) for name in ("value", "lower", "upper")}
    require("block", record["block"], str)
    require("feature", record["feature"], str)
    require("sample", record["sample"], int)
    require("column", record.get("column", ""), str)
    return Extrapolation(**{**record, **numbers})


def written_model(record: Any) -> WrittenModel | None:
    """What became of a model that was written out, if one was."""
    if record is None:
        return None
    numbers = {name: number(name, record[name], optional=True) for name in ("solving_seconds", "memory_gb")}
    for name, kind in (("variables", int), ("constraints", int), ("said", str)):
        if record[name] is not None:
            require(name, record[name], kind)
    seconds = number("writing_seconds", record["writing_seconds"])
    return WrittenModel(**{**record, **numbers, "end": ModelEnd(record["end"]), "writing_seconds": seconds})


def violation(record: Any) -> Violation | None:
    """How far the point is from satisfying the problem, if there is a point."""
    if record is None:
        return None
    for kind in ("rows", "bounds", "integrality", "prediction"):
        require(f"violation.{kind}", record[kind], dict)
    kinds = {
        kind: Worst(number(f"violation.{kind}", worst["amount"]), require(kind, worst["name"], str))
        for kind, worst in record.items()
    }
    return Violation(**kinds)


_ROW_NUMBERS = (
    "objective", "incumbent", "rho", "lagrangian", "merit",
    "mip_seconds", "nn_seconds", "check_seconds", "elapsed",
)  # fmt: skip


def trace_row(record: Any) -> Row:
    """One iteration."""
    numbers = {name: number(name, record[name]) for name in _ROW_NUMBERS}
    residuals = tuple(_residual(residual) for residual in require("residuals", record["residuals"], list))
    require("iteration", record["iteration"], int)
    require("source", record["source"], str)
    require("proof", record["proof"], str)
    require("exact", record["exact"], bool)
    require("part", record.get("part", ""), str)
    require("evaluations", record.get("evaluations", 0), int)
    bound = number("bound", record["bound"], optional=True)
    return Row(**{**record, **numbers, "bound": bound, "residuals": residuals})


def counted(record: Any) -> Work:
    """The counts of a solve; None in a file of an earlier version."""
    if record is None:
        return Work()
    return Work(*(require(f"work.{name}", record[name], int) for name in ("nodes", "lps")))


def gain(record: Any) -> Gain:
    """One better point or bound."""
    seconds, value = (number(f"{name} of a gain", record[name]) for name in ("seconds", "value"))
    return Gain(seconds, value, require("source of a gain", record["source"], str))


def _residual(record: Any) -> Residual:
    block, kind = require("block", record["block"], str), require("kind", record["kind"], str)
    return Residual(block, kind, number("primal", record["primal"]), number("dual", record["dual"]))
