"""Constraints that PySCIPOpt cannot be asked about: special ordered sets, cardinality, exclusive or."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.core.arrays import IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.special_constraints import SpecialConstraints

KINDS = frozenset({"SOS1", "SOS2", "cardinality", "xor"})

BY_HAND = "write it with binary variables and linear constraints"
"""What to do about a constraint that nothing can be made of."""

_VARIABLE = re.compile(r"<x(\d+)>")
_LAST_NUMBER = re.compile(r"<?= (\d+)$")


@dataclass(frozen=True)
class Listed:
    """One such constraint: its kind, its variables by their places in the model, and its number."""

    name: str
    kind: str
    variables: list[int]
    number: int
    """Of a special ordered set its type, else the limit."""

    def write(self, written: SpecialConstraints, place: IntArray) -> None:
        """Where variables are columns by `place`."""
        columns = [int(place[j]) for j in self.variables]
        if self.kind.startswith("SOS"):
            written.ordered(self.name, self.number, columns)
        elif self.kind == "xor":
            written.parity(self.name, columns, bool(self.number))
        else:
            written.at_most(self.name, columns, self.number)


def listed(texts: Mapping[int, tuple[str, str]], names: Mapping[int, str]) -> list[Listed]:
    """Constraints by their numbers; an `UnsupportedError` for one that is written in another way."""
    return [_read(name, *texts.get(number, ("", ""))) for number, name in names.items()]


def _read(name: str, kind: str, text: str) -> Listed:
    variables = [int(number) for number in _VARIABLE.findall(text)]
    limit = _LAST_NUMBER.search(text)
    if kind not in KINDS or not variables or len(variables) != text.count("<") - text.count("<="):
        raise UnsupportedError(
            f"the constraint {name} is one that SCIP writes down as {text!r}, which cannot be read; "
            f"{BY_HAND}."
        )
    if kind.startswith("SOS"):
        return Listed(name, kind, variables, int(kind[-1]))
    if limit is None:
        raise UnsupportedError(f"the constraint {name} has no limit that is a number; give one.")
    return Listed(name, kind, variables, int(limit[1]))
