"""A row that a binary switches on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Indicator:
    """If column `binary` is `active`, then lower <= coefficients'x[columns] <= upper; infinities allowed."""

    binary: int
    active: int
    columns: Sequence[int]
    coefficients: Sequence[float]
    lower: float
    upper: float
    name: str
