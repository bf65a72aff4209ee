"""Where the leaves of a tree are."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.arrays import BoolArray, FloatArray, IntArray

Chosen = IntArray | BoolArray | slice
"""Some of many, by index or by flag."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Where the leaves are: bounds of the part's columns, and signs of its neurons."""

    lower: FloatArray
    """(N, columns)."""
    upper: FloatArray
    signs: FloatArray
    """(N, neurons): 1 and -1 where a sign is decided, else 0; no columns where none is."""

    def take(self, chosen: Chosen) -> Boxes:
        """Some of them."""
        return Boxes(self.lower[chosen], self.upper[chosen], self.signs[chosen])
