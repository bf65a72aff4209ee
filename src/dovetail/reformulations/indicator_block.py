"""An indicator constraint as a predictor: by how much its row is missed while it is switched on.

A row that nothing limits has no finite big M, so that no linear program can hold it. As a block whose output
is fixed at 0 it is one more thing that points have to satisfy: exact, checked like any other, found by
the same search; only proofs are out of reach.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dovetail.core.indicator import Indicator


class IndicatorViolation(nn.Module):
    """(binary, columns) -> what is missing to lower <= coefficients'x <= upper, or 0 where it is off."""

    coefficients: Tensor

    def __init__(self, indicator: Indicator) -> None:
        super().__init__()
        self._active, self._lower, self._upper = indicator.active, indicator.lower, indicator.upper
        self.register_buffer("coefficients", torch.tensor(indicator.coefficients, dtype=torch.float64))

    def forward(self, rows: Tensor) -> Tensor:
        """One row per sample."""
        on = rows[:, 0] if self._active else 1.0 - rows[:, 0]
        activity = rows[:, 1:] @ self.coefficients
        missing = torch.zeros_like(activity)
        if self._upper < float("inf"):
            missing = missing + torch.relu(activity - self._upper)
        if self._lower > -float("inf"):
            missing = missing + torch.relu(self._lower - activity)
        return (on * missing)[:, None]
