"""The bundle: earlier linearisations that are kept as one-sided cuts (Lemarechal; Kiwiel).

Optima sit on kinks, and at a kink one slope tells half of the truth. On the side that the objective presses
an output to, linearisations of the other pieces bound it too, and together they model a concave kink (of a
maximum; a convex one of a minimum) without any binary.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.linearised.networks import Linearisation
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.linearised.trust_region import Cut

NEAR = 3.0
"""A cut is used within so many trust-region radii of the point where its linearisation was made: the end of a
rejected step, 1 / 0.35 radii away once the region has shrunk, is; what lies farther off is another piece."""
TOUCHING = 1e-9
"""Relative to max(1, |value|): a linearisation this close to the value here is of a piece that meets here."""


class Bundle:
    """The last linearisations, with the points they were made at."""

    def __init__(self, scaled: ScaledProblem, size: int) -> None:
        self._scaled = scaled
        self._kept: deque[tuple[FloatArray, Linearisation]] = deque(maxlen=max(size, 1))
        self._size = size

    def add(self, z: FloatArray, linearisation: Linearisation) -> None:
        """Keep one more; the oldest goes where there are too many."""
        if self._size:
            self._kept.append((z[self._scaled.networks.columns], linearisation))

    def __len__(self) -> int:
        return len(self._kept)

    def cuts(
        self, z: FloatArray, linearisation: Linearisation, senses: FloatArray, radius: float
    ) -> tuple[Cut, ...]:
        """Those that are near or touch here, and lie on the right side of the values at `z`.

        Pieces that meet at `z` count whatever the radius: forgotten in turn, they would send it in circles.
        """
        networks, width = self._scaled.networks, self._scaled.width
        if not self._kept:
            return ()
        here, values = z[networks.columns], linearisation.values
        room = TOUCHING * np.maximum(1.0, np.abs(values))
        apart = np.abs(np.array([there for there, _ in self._kept]) - here) / width[networks.columns]
        near = np.maximum.reduceat(apart, networks.first_entry[:-1], axis=1) <= NEAR * radius
        model = np.array([networks.model_values(kept, here) for _, kept in self._kept])
        touching = np.abs(model - values) <= room
        above = (senses < 0) & (model >= values - room)
        below = (senses > 0) & (model <= values + room)
        used = (near | touching) & (above | below)
        return tuple(Cut(kept, outputs) for (_, kept), outputs in zip(self._kept, used, strict=True))
