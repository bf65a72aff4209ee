"""What completed points are worth when rows may be missed: a rough measure to choose by, never a judge."""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.linearised.propagation import times
from dovetail.linearised.scaled_problem import ScaledProblem

DEAR = 10.0
"""Missing a row by its size costs so many times what all columns together are worth."""


class Merit:
    """The objective of points whose outputs are true, plus what rows and bounds are missed by."""

    def __init__(self, scaled: ScaledProblem) -> None:
        self._host = host = scaled.host
        size = abs(host.A).max(axis=1).toarray().ravel() if host.n_rows else np.empty(0)
        self._row_scale = np.where(size > 0, size, 1.0)
        at_stake = float(np.sqrt(np.sum((host.cost * np.minimum(scaled.width, 1e6)) ** 2)))
        self._weight = DEAR * (at_stake or 1.0)

    def of(self, Z: FloatArray) -> FloatArray:
        """(T,) one for each row of `Z`; infinite where a network gave no number."""
        host = self._host
        missed = np.sum(np.maximum(0.0, np.maximum(host.lower - Z, Z - host.upper) - 1e-9), axis=1)
        if host.n_rows:
            activity = times(host.A, Z)
            beyond = np.maximum(host.row_lower - activity, activity - host.row_upper) / self._row_scale
            missed += np.sum(np.maximum(0.0, beyond - 1e-9), axis=1)
        merit = Z @ host.cost + self._weight * (missed + (missed > 1e-7))
        return np.where(np.isfinite(merit), merit, np.inf)
