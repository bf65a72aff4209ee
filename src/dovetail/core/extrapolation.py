"""Inputs of a solution outside the range of the training data.

A network answers every input, also far from its training data, where nothing supports the answer. With
`data=` the result lists these inputs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.mip import TOLERANCE
from dovetail.core.problem import Problem

HAIR = 1e-9
"""Relative to a feature's range: smaller distances may be rounding and are not listed."""
WARNING_DISTANCE = 0.01
"""Relative to a feature's range: smaller distances are recorded without a warning, because the smallest value
of a sample is often slightly above a true minimum of 0."""


@dataclass(frozen=True)
class Extrapolation:
    """One input of one sample that lies outside the range its predictor was trained on."""

    block: str
    sample: int
    feature: str
    value: float
    lower: float
    upper: float
    column: str = ""
    """The name of the input's variable; "" in older files."""

    @property
    def amount(self) -> float:
        """How far outside, in the feature's own units."""
        return max(self.lower - self.value, self.value - self.upper)

    @property
    def notable(self) -> bool:
        """Whether the distance is worth a warning."""
        rounding = TOLERANCE * max(1.0, abs(self.value))
        return self.amount > max(WARNING_DISTANCE * (self.upper - self.lower), rounding)

    def __str__(self) -> str:
        named = self.feature if self.column in ("", self.feature) else f"{self.column} ({self.feature})"
        side, limit = ("below", self.lower) if self.value < self.lower else ("above", self.upper)
        return (
            f"{self.block}, sample {self.sample}: {named} = {self.value + 0.0:.6g} is "
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
        width[np.isinf(width)] = 1.0  # text has no range
        beyond = np.maximum(training_range.lower - values, values - training_range.upper) / width
        for i, k in np.argwhere(beyond > HAIR):
            where = Extrapolation(
                block.name,
                int(i),
                training_range.names[k],
                float(values[i, k]),
                float(training_range.lower[k]),
                float(training_range.upper[k]),
                problem.stated.column_name(int(block.inputs[i, k])),
            )
            found.append((-float(beyond[i, k]), where))
    return tuple(where for _, where in sorted(found, key=lambda pair: pair[0]))


def nearly_inside(found: Iterable[Extrapolation]) -> tuple[Extrapolation, ...]:
    """Those that are outside the training data by more than rounding, but too little for a warning."""
    return tuple(
        where
        for where in found
        if not where.notable and where.amount > TOLERANCE * max(1.0, abs(where.value))
    )


def notable(found: Iterable[Extrapolation]) -> tuple[Extrapolation, ...]:
    """Those that are worth a warning, in the same order."""
    return tuple(where for where in found if where.notable)
