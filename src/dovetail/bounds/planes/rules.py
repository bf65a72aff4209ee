"""What a bound has to know of each function of single values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from dovetail.bounds.planes.curve import Curve
from dovetail.bounds.planes.relaxation import Between, Relaxation, relu_lines, relu_range
from dovetail.core.errors import UnsupportedError
from dovetail.networks.functions import FUNCTIONS


@dataclass(frozen=True)
class Rule:
    """Lines, and the range of values, between two (N, size) bounds."""

    lines: Callable[[Tensor, Tensor], Relaxation]
    range: Callable[[Tensor, Tensor], Between]


RULES: dict[str, Rule] = {
    kind: Rule(relu_lines, relu_range) if kind == "relu" else Rule((curve := Curve(known)).lines, curve.range)
    for kind, known in FUNCTIONS.items()
}


def rule_of(kind: str) -> Rule:
    """The rule of a function, by its name."""
    if kind not in RULES:
        raise UnsupportedError(f"there are no planes for {kind}")
    return RULES[kind]
