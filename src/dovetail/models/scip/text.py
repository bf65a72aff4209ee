"""What only SCIP's own text tells of constraints: PySCIPOpt cannot be asked for it.

SCIP writes a model down in its own format, with variables and constraints numbered in their order.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

_LINE = re.compile(r"^\s*\[(\w+)\] <c(\d+)>: (.*);\s*$")
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_CONSTANT = re.compile(rf"^(?:{_NUMBER} <= )?({_NUMBER})(?=[-+])")


def constraint_texts(model: Any) -> dict[int, tuple[str, str]]:
    """Kind and text of every constraint, by its number."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cip"
        model.writeProblem(str(path), trans=False, genericnames=True, verbose=False)
        lines = path.read_text().splitlines()
    return {int(match[2]): (match[1], match[3]) for match in map(_LINE.match, lines) if match}


def constant_in(text: str) -> float:
    """The constant of a quadratic expression, which SCIP writes before its terms.

    >>> constant_in("-1 <= 3.5+(<x0>)^2+2*<x1> <= 5"), constant_in("2*<x0>*<x1> <= 5")
    (3.5, 0.0)
    """
    match = _CONSTANT.match(text)
    return float(match[1]) if match else 0.0
