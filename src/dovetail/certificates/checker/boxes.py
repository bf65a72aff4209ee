"""Where the leaves of a tree are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray

Chosen = IntArray | BoolArray | slice
"""Some of many, by index or by flag."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Where the leaves are: bounds of the part's columns and, where a tree divides some, of its neurons."""

    lower: FloatArray
    """(N, columns), or (N, columns and neurons)."""
    upper: FloatArray

    @property
    def size(self) -> FloatArray:
        """(N, columns) the largest absolute values."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def take(self, chosen: Chosen) -> Boxes:
        """Some of them."""
        return Boxes(self.lower[chosen], self.upper[chosen])
