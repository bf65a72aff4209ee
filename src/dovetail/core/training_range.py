"""What a predictor saw in training: the range of each of its features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError


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
