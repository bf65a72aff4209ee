"""Divisions of boxes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray


class Divisions(NamedTuple):
    """Divisions of boxes into two parts, each at one column."""

    columns: IntArray
    below: FloatArray
    """The last value of the lower part."""
    above: FloatArray
    """The first value of the upper part."""
    wrong: FloatArray
    """(outputs,) the error of the LP in the outputs of trees, in units of cost."""

    def sides(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The boxes of all parts: the lower part of each candidate, then the upper parts."""
        count, at = self.columns.size, np.arange(self.columns.size)
        low, high = np.tile(lower, (2 * count, 1)), np.tile(upper, (2 * count, 1))
        high[at, self.columns] = np.minimum(high[at, self.columns], self.below)
        low[count + at, self.columns] = np.maximum(low[count + at, self.columns], self.above)
        return low, high


NO_CUTS = Divisions(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), np.empty(0))
"""The divisions of a problem without trees."""
