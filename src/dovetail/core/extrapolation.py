"""Where an answer goes beyond what its predictors saw in training.

A network says something about every point, also about those far from its training data, where nothing
stands behind what it says. With `data=` the result names them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.problem import Problem

HAIR = 1e-9
"""Of a feature's range: what may be rounding is not named."""


@dataclass(frozen=True)
class Extrapolation:
    """One input of one sample that lies outside the range its predictor was trained on."""

    block: str
    sample: int
    feature: str
    value: float
    lower: float
    upper: float

    @property
    def amount(self) -> float:
        """How far outside, in the feature's own units."""
        return max(self.lower - self.value, self.value - self.upper)

    def __str__(self) -> str:
        side, limit = ("below", self.lower) if self.value < self.lower else ("above", self.upper)
        return (
            f"{self.block}, sample {self.sample}: {self.feature} = {self.value + 0.0:.6g} is "
            f"{self.amount:.3g} {side} {limit:.6g}"
        )


def extrapolations(problem: Problem, x: FloatArray) -> tuple[Extrapolation, ...]:
    """Every input of `x` beyond its training range; the farthest, by the range's width, first."""
    found: list[tuple[float, Extrapolation]] = []
    for block in problem.blocks:
        if block.training_range is None:
            continue
        training_range, values = block.training_range, x[block.inputs]
        width = np.maximum(
            training_range.upper - training_range.lower, 1e-12 * np.maximum(1.0, np.abs(training_range.upper))
        )
        beyond = np.maximum(training_range.lower - values, values - training_range.upper) / width
        for i, k in np.argwhere(beyond > HAIR):
            where = Extrapolation(
                block.name,
                int(i),
                training_range.names[k],
                float(values[i, k]),
                float(training_range.lower[k]),
                float(training_range.upper[k]),
            )
            found.append((-float(beyond[i, k]), where))
    return tuple(where for _, where in sorted(found, key=lambda pair: pair[0]))
