"""Constraints that PySCIPOpt cannot be asked about (special ordered sets, cardinality, exclusive or).

SCIP writes them down, though: in its own format, with variables and constraints numbered in their order. That
text is read where a model has such constraints.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dovetail.core.arrays import IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.special_constraints import SpecialConstraints

KINDS = frozenset({"SOS1", "SOS2", "cardinality", "xor"})

_LINE = re.compile(r"^\s*\[(\w+)\] <c(\d+)>: (.*);\s*$")
_VARIABLE = re.compile(r"<x(\d+)>")
_LAST_NUMBER = re.compile(r"<?= (\d+)$")


@dataclass(frozen=True)
class Listed:
    """One such constraint: its kind, its variables by their places in the model, and its limit, if any."""

    name: str
    kind: str
    variables: list[int]
    limit: int

    def write(self, written: SpecialConstraints, place: IntArray) -> None:
        """Where variables are columns by `place`."""
        columns = [int(place[j]) for j in self.variables]
        if self.kind == "SOS2":
            written.neighbours(self.name, columns)
        elif self.kind == "xor":
            written.parity(self.name, columns, bool(self.limit))
        else:
            written.at_most(self.name, columns, self.limit)


def listed(model: Any, names: dict[int, str]) -> list[Listed]:
    """Constraints by their numbers; an `UnsupportedError` for one that is written in another way."""
    if not names:
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cip"
        model.writeProblem(str(path), trans=False, genericnames=True, verbose=False)
        lines = path.read_text().splitlines()
    found = {int(match[2]): match for match in map(_LINE.match, lines) if match}
    return [_read(name, found.get(number)) for number, name in names.items()]


def _read(name: str, match: re.Match[str] | None) -> Listed:
    kind, text = (match[1], match[3]) if match else ("", "")
    variables = [int(number) for number in _VARIABLE.findall(text)]
    limit = _LAST_NUMBER.search(text)
    if kind not in KINDS or not variables or len(variables) != text.count("<") - text.count("<="):
        raise UnsupportedError(
            f"the constraint {name} is one that SCIP writes down as {text!r}, which cannot be read; write it "
            "with binary variables and linear constraints."
        )
    if kind in ("SOS1", "SOS2"):
        return Listed(name, kind, variables, 1)
    if limit is None:
        raise UnsupportedError(f"the constraint {name} has no limit that is a number; give one.")
    return Listed(name, kind, variables, int(limit[1]))
