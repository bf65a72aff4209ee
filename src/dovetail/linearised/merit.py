"""Merit functions: one number for a point that misses something, to choose by and never to judge by.

A descent keeps the host's rows and may miss the networks: `l1_merit`. A completed point has true outputs and
may miss rows: `CompletedMerit`.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.linearised.scaled_problem import ScaledProblem

ROW_PENALTY = 10.0
"""Missing a row by its largest entry costs so many times what all columns together are worth: enough that no
saving elsewhere pays for it, little enough that the cost still counts among points that miss the same."""
WIDEST = 1e6
"""A column counts for its cost times its width, but no wider than this: free columns may be endless."""
DECREASE = 1e-9
"""Relative to 1 + |merit|: what falls by less is rounding."""
ROUNDING = 1e-9
"""Rows and bounds missed by less are held: that is what engines hold them to."""
MISSED = 1e-7
"""Points that miss more than this in sum pay the penalty once more, so that a held point beats any that
misses next to nothing."""


def l1_merit(scaled: ScaledProblem, Z: FloatArray, values: FloatArray, penalty: FloatArray) -> FloatArray:
    """(T,) the exact penalty function of each row of `Z`: cost'z + penalty'|y - f(x)|.

    `values` (T, m) are the networks' values there. A class counts by what its logits fall short of.
    """
    networks = scaled.networks
    apart = np.abs(Z[:, networks.outputs] - values) * ~networks.classes
    merit = Z @ scaled.host.cost + apart @ penalty
    conditions = networks.conditions
    if conditions.count:
        merit += conditions.shortfall(Z, values) @ np.asarray(conditions.weights @ penalty)
    return np.asarray(merit)


class CompletedMerit:
    """The cost of points whose outputs are true, plus what they miss rows and bounds by."""

    def __init__(self, scaled: ScaledProblem) -> None:
        self.host = host = scaled.host
        size = abs(host.A).max(axis=1).toarray().ravel() if host.n_rows else np.empty(0)
        self.row_scale = np.where(size > 0, size, 1.0)
        at_stake = float(np.sqrt(np.sum((host.cost * np.minimum(scaled.width, WIDEST)) ** 2)))
        self._penalty = ROW_PENALTY * (at_stake or 1.0)

    def of(self, Z: FloatArray) -> FloatArray:
        """(T,) one for each row of `Z`; infinite where a network gave no number."""
        host = self.host
        violation = np.sum(np.maximum(0.0, host.bound_violation(Z) - ROUNDING), axis=1)
        if host.n_rows:
            beyond = host.row_violation(Z) / self.row_scale
            violation += np.sum(np.maximum(0.0, beyond - ROUNDING), axis=1)
        return self.with_missed(Z @ host.cost, violation)

    def with_missed(self, cost: FloatArray, missed: FloatArray) -> FloatArray:
        """The merit of points that cost so much and miss rows and bounds by so much in sum."""
        merit = cost + self._penalty * (missed + (missed > MISSED))
        return np.where(np.isfinite(merit), merit, np.inf)
