"""LightGBM boosters as gurobi-machinelearning means them: the sum of their leaves.

dovetail takes a booster that was trained for two classes as a classifier. The peer adds its leaves up, and
its outputs are margins (`raw_score`); a copy that says so gives them, and is read as trees like any other.
"""

from __future__ import annotations

import re
from typing import Any

_TWO_CLASSES = re.compile(r"^objective=binary\b.*$", re.MULTILINE)
"""The line of a model that puts a curve behind the sum."""


def margins(booster: Any) -> Any:
    """The booster itself, or a copy without the curve behind its sum."""
    text = booster.model_to_string()
    plain = _TWO_CLASSES.sub("objective=regression", text)
    return booster if plain == text else type(booster)(model_str=plain)
