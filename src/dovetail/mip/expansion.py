"""Proximal terms on columns written into a linear program, so that only its costs ever change.

    w/2 (x - u)^2 = w/2 s^2 - w (u - r) s + const,   s = x - r for a fixed reference r per column

- An integer column with few values: x = lo + sum of binaries d_k, where d_k costs the rise of
  the parabola from lo + k to lo + k + 1. Rises grow with k, so the d_k fill in order: exact. A
  column with two values needs no new column at all.
- Any other column: an extra column t >= s^2, approached from below by tangents
  t >= 2 p s - p^2. Tangents do not contain u, w or the cost: they stay valid for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import SMALLEST, Mip
from dovetail.mip.program import LinearProgram
from dovetail.run.engine import Quadratic

FEW_VALUES = 64
"""Integer columns with at most this many steps become binaries; for more steps tangents need fewer rows."""


def _middle(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """The middle of each interval, or its point nearest to 0 if it is infinite."""
    finite = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):  # an infinite interval has no middle, and `where` drops it
        return np.where(finite, 0.5 * (lower + upper), np.clip(0.0, lower, upper))


@dataclass(frozen=True, eq=False)
class Expansion:
    """A program with room for proximal terms: the original columns, then binaries d, then squares t."""

    mip: Mip
    pairs: IntArray
    """Weighted integer columns with at most two values."""
    steps_of: IntArray
    """For each binary d, its original column."""
    step_level: FloatArray
    """For each binary d, the value of its column before the step."""
    squares_of: IntArray
    """For each square t, its original column."""
    reference: FloatArray
    """For each square t, the reference r of its column."""

    @classmethod
    def of(cls, mip: Mip, columns: IntArray) -> Expansion:
        """Distribute the weighted columns over the three ways of writing them."""
        columns = np.unique(columns)
        whole = mip.integer[columns]
        lower = np.where(whole, np.ceil(mip.lower[columns]), mip.lower[columns])
        upper = np.where(whole, np.floor(mip.upper[columns]), mip.upper[columns])
        span = upper - lower
        pairs = columns[whole & (span <= 1.0)]
        stepped = columns[whole & (span > 1.0) & (span <= FEW_VALUES)]
        squared = columns[~whole | (span > FEW_VALUES)]
        squared = squared[mip.upper[squared] > mip.lower[squared]]
        low = np.ceil(mip.lower[stepped])
        counts = np.floor(mip.upper[stepped]).astype(np.int64) - low.astype(np.int64)
        level = np.concatenate([np.empty(0), *(a + np.arange(c) for a, c in zip(low, counts, strict=True))])
        reference = _middle(mip.lower[squared], mip.upper[squared])
        return cls(mip, pairs, np.repeat(stepped, counts), level, squared, reference)

    @property
    def weighted(self) -> IntArray:
        """All original columns that have a weight and can move."""
        return np.unique(np.concatenate([self.pairs, self.steps_of, self.squares_of]))

    @property
    def first_square(self) -> int:
        """Index of the first column t."""
        return self.mip.n_columns + self.steps_of.size

    @property
    def columns(self) -> int:
        """Number of columns of the expanded program."""
        return self.first_square + self.squares_of.size

    def program(self) -> LinearProgram:
        """The expanded program."""
        mip, steps = self.mip, self.steps_of.size
        stepped, first = np.unique(self.steps_of, return_index=True)
        sums = sp.coo_array(
            (
                np.concatenate([np.ones(stepped.size), -np.ones(steps)]),
                (
                    np.concatenate([np.arange(stepped.size), np.searchsorted(stepped, self.steps_of)]),
                    np.concatenate([stepped, mip.n_columns + np.arange(steps)]),
                ),
            ),
            shape=(stepped.size, self.columns),
        ).tocsr()
        wide = sp.csr_array((mip.A.data, mip.A.indices, mip.A.indptr), shape=(mip.n_rows, self.columns))
        base = self.step_level[first]
        return LinearProgram(
            sp.csr_array(sp.vstack([wide, sums], format="csr")),
            np.concatenate([mip.row_lower, base]),
            np.concatenate([mip.row_upper, base]),
            *self.limits(mip.lower, mip.upper),
            np.concatenate([mip.integer, np.ones(steps, bool), np.zeros(self.squares_of.size, bool)]),
        )

    def limits(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Column limits of the expanded program for given limits of the original columns."""
        steps, squares = self.steps_of.size, self.squares_of.size
        return (
            np.concatenate([lower, np.zeros(steps + squares)]),
            np.concatenate([upper, np.ones(steps), np.full(squares, np.inf)]),
        )

    def cost(self, objective: Quadratic) -> tuple[FloatArray, float]:
        """Costs and offset of the expanded program for this objective."""
        weight, centre = objective.weight, objective.centre
        cost = np.zeros(self.columns)
        cost[: self.mip.n_columns] = objective.cost
        offset = objective.offset

        j = self.pairs
        low = np.ceil(self.mip.lower[j])
        slope = 0.5 * weight[j] * (1.0 + 2.0 * (low - centre[j]))
        cost[j] += slope
        offset += float(np.sum(0.5 * weight[j] * (low - centre[j]) ** 2 - slope * low))

        k, level = self.steps_of, self.step_level
        rise = 0.5 * weight[k] * (1.0 + 2.0 * (level - centre[k]))
        cost[self.mip.n_columns : self.first_square] = rise
        stepped, first = np.unique(k, return_index=True)
        offset += float(np.sum(0.5 * weight[stepped] * (level[first] - centre[stepped]) ** 2))

        q, r = self.squares_of, self.reference
        slope = weight[q] * (centre[q] - r)
        cost[q] -= slope
        cost[self.first_square :] = 0.5 * weight[q]
        offset += float(np.sum(slope * r + 0.5 * weight[q] * (centre[q] - r) ** 2))

        fixed = self._fixed_columns()
        offset += float(np.sum(0.5 * weight[fixed] * (self.mip.lower[fixed] - centre[fixed]) ** 2))
        return cost, offset

    def _fixed_columns(self) -> IntArray:
        """Fixed continuous columns, whose proximal term is a constant."""
        handled = np.zeros(self.mip.n_columns, dtype=bool)
        handled[self.pairs] = handled[self.steps_of] = handled[self.squares_of] = True
        return np.flatnonzero(~handled & (self.mip.lower == self.mip.upper))

    def lift(self, x: FloatArray) -> FloatArray:
        """A point of the original program as a point of the expanded one."""
        steps = (x[self.steps_of] > self.step_level + 0.5).astype(np.float64)
        squares = (x[self.squares_of] - self.reference) ** 2
        return np.concatenate([x, steps, squares])

    def tangents(self, which: IntArray, points: FloatArray) -> tuple[sp.csr_array, FloatArray, FloatArray]:
        """Rows t >= 2 p s - p^2 for squares `which`, touching at the original values `points`."""
        p = points - self.reference[which]
        p[np.abs(2.0 * p) < SMALLEST] = 0.0  # HiGHS would drop the entry and keep the right side
        count = which.size
        rows = np.arange(count)
        matrix = sp.coo_array(
            (
                np.concatenate([np.ones(count), -2.0 * p]),
                (
                    np.concatenate([rows, rows]),
                    np.concatenate([self.first_square + which, self.squares_of[which]]),
                ),
            ),
            shape=(count, self.columns),
        ).tocsr()
        return sp.csr_array(matrix), -p * p - 2.0 * p * self.reference[which], np.full(count, np.inf)
