"""What was checked of the point, with no solver, and what a reader should be warned of."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dovetail.core.amounts import several
from dovetail.core.extrapolation import nearly_inside, notable
from dovetail.core.mip import TOLERANCE
from dovetail.report.page.visible_text import visible

MOST_NAMED = 20
"""Inputs outside the training data that are named."""


class Check(NamedTuple):
    """One thing that was looked at."""

    passed: bool | None
    """None for what is reported, not judged."""
    words: str
    amount: str


def checks(result: Any) -> list[Check]:
    """Of the point, kind by kind; nothing where there is none."""
    violation = result.violation
    if violation is None:
        return []
    facts = result.facts
    rows = "rows" if facts is None else several(facts.n_rows, "row")
    columns = "" if facts is None else f" of {several(facts.lower.size, 'column')}"
    integers = "integers" if facts is None else several(int(np.count_nonzero(facts.integer)), "integer")
    judged = (
        (rows, violation.rows),
        (f"bounds{columns}", violation.bounds),
        (integers, violation.integrality),
        ("outputs are what the predictors say, as deployed", violation.prediction),
    )
    told = (
        ("the same in float64", violation.precision),
        ("samples one by one, or on another processor", violation.rounding),
    )
    return [Check(worst.amount <= TOLERANCE, words, _amount(worst)) for words, worst in judged] + [
        Check(None, words, _amount(worst)) for words, worst in told
    ]


def _amount(worst: Any) -> str:
    name = f" ({visible(worst.name)})" if worst.name else ""
    if math.isnan(worst.amount):
        return f"not measured{name}"
    return "exact" if worst.amount == 0.0 else f"off by {worst.amount:.1e}{name}"


def sentence(message: str) -> str:
    """A message of a solve as it stands on a page."""
    return visible(f"{message[:1].upper()}{message[1:]}.", 2000)


def warnings(result: Any) -> list[str]:
    """What may need a second look, the most urgent first."""
    words = [] if result.x is not None else [sentence(result.message)]
    violation = result.violation
    if violation is not None and violation.within() and not violation.steady():
        words.append(
            f"Evaluated one by one, or on another processor, the point may miss "
            f"{visible(violation.rounding.name)} by {violation.rounding.amount:.1e}: predictors round."
        )
    outside = notable(result.extrapolations)
    if outside:
        words.append(
            f"{several(len(outside), 'input lies', 'inputs lie')} outside the training data, "
            "where nothing stands behind what the predictors say."
        )
    near = nearly_inside(result.extrapolations)
    if near:
        lie = several(len(near), "input lies", "inputs lie")
        words.append(f"{lie} outside the training data, by no more than 1 % of its range.")
    failed = "A part failed, and the solve went on without it"
    return words + [f"{failed}: {visible(str(failure), 600)}." for failure in result.failures]


def hints(result: Any) -> list[str]:
    """What to try next, if the run showed anything."""
    return [visible(hint, 600) for hint in result.hints]


def extrapolations(result: Any) -> tuple[list[str], int]:
    """Inputs beyond their training range, the farthest first, and how many more there are."""
    outside = notable(result.extrapolations)
    named = [visible(str(where), 200) for where in outside[:MOST_NAMED]]
    return named, len(outside) - len(named)
