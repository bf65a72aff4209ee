"""What a predictor saw in training, and where an answer goes beyond it.

A network says something about every point, also about those far from its training data, where nothing
stands behind what it says. With `data=` the result names them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError

if TYPE_CHECKING:
    from dovetail.core.problem import Problem

HAIR = 1e-9
"""Of a feature's range: what may be rounding is not named."""


@dataclass(frozen=True, eq=False)
class TrainingRange:
    """The range of each feature in the training inputs."""

    lower: FloatArray
    upper: FloatArray
    names: tuple[str, ...]

    @classmethod
    def of(cls, block: str, data: Any, features: int) -> TrainingRange:
        """Ranges of (m, d) training inputs, an array or a frame; missing values are passed over."""
        columns = getattr(data, "columns", None)
        try:
            table = np.atleast_2d(np.asarray(data, dtype=np.float64))
        except (TypeError, ValueError) as reason:
            raise PredictorError(f"{block}: data is no array of numbers ({reason}).") from None
        if table.ndim != 2 or table.shape[1] != features or len(table) == 0:
            raise PredictorError(
                f"{block}: data has shape {table.shape}, but the predictor has {features} inputs; give the "
                f"training inputs as (n_samples, {features})."
            )
        known = np.isfinite(table)
        if not np.all(known.any(axis=0)):
            raise PredictorError(
                f"{block}: data has no finite value in column {int(np.argmin(known.any(0)))}."
            )
        names = [f"feature {k}" for k in range(features)] if columns is None else [str(c) for c in columns]
        lower = np.where(known, table, np.inf).min(axis=0)
        return cls(lower, np.where(known, table, -np.inf).max(axis=0), tuple(names))


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
            f"{self.block}, sample {self.sample}: {self.feature} = {self.value:.6g} is {self.amount:.3g} "
            f"{side} {limit:.6g}"
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
