"""A row that a binary switches on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.core.errors import ModelError


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

    def __post_init__(self) -> None:
        if self.active not in (0, 1):
            raise ModelError(f"indicator constraint {self.name}: the active value must be 0 or 1.")
        nonsense = math.isnan(self.lower) or math.isnan(self.upper)
        if nonsense or self.lower == math.inf or self.upper == -math.inf:
            raise ModelError(
                f"indicator constraint {self.name}: its row has the limits [{self.lower}, {self.upper}]; "
                "give numbers, with -inf or inf for no limit."
            )
